/* next.c - lend the batch that the next entry of the line names. */
#include <inttypes.h>
#include <string.h>

#include "client/delivery.h"
#include "core/clock.h"
#include "core/status.h"

static void
set_final(tundish_reader *reader, tundish_status status, const char *text)
{
    tnd_reader_set_final(reader, status, text, strlen(text));
}

/* The segment that a slot's buffers are in. With the lock, which is released while the server's
 * message about it is waited for. */
static tundish_status
find_payload(tundish_reader *reader, struct held *held)
{
    uint32_t id = held->slot.slot.segment;
    tundish_status status = TUNDISH_OK;
    int64_t deadline_ns = 0;

    while ((held->mapping = tnd_mapping_find(reader->attachments, id)) == NULL) {
        pthread_mutex_unlock(&reader->lock);
        if (deadline_ns == 0)
            deadline_ns = tnd_clock_deadline_ns(reader->server_timeout_ns);
        status = tnd_reader_listen_for(reader, tnd_clock_left_ns(deadline_ns));
        pthread_mutex_lock(&reader->lock);
        if (status == TUNDISH_E_TIMEOUT)
            return tnd_fail(TUNDISH_E_CORRUPT,
                            "the server has not announced the segment of a batch");
        if (status != TUNDISH_OK)
            return status;
    }
    held->payload = held->mapping->bytes;
    return tnd_view_slot_check_buffers(&held->slot, held->mapping->segment_bytes);
}

/* Pass an entry that an earlier server delivered already. An epoch's end is kept, as if it had been
 * told now: a successor's place may stand before it until the next batch is given back. */
static void
pass_over(tundish_reader *reader, struct held *held)
{
    if (held->slot.slot.kind == TND_SLOT_END)
        reader->attachments->delivery->take_end(reader, held);
    else
        tnd_delivery_skip(reader, held);
}

/* Take the server's messages about a batch over the socket: the header that the places of its epoch
 * carry, and its segment. Both must be here before the caller has the batch, because it may save
 * its place at once. The segment last: a message that is taken after it might retire it. */
static tundish_status
hold_batch(tundish_reader *reader, struct held *held, bool *ret_cut_off)
{
    struct attachment *attachment = reader->attachments;
    const struct tnd_slot *slot = &held->slot.slot;
    tundish_status status = TUNDISH_OK;

    if (slot->place_bytes > 0)
        status = tnd_reader_await_epoch(reader, slot->epoch);
    if (status != TUNDISH_OK)
        return status;
    pthread_mutex_lock(&reader->lock);
    status = find_payload(reader, held);
    if (status == TUNDISH_OK) {
        held->entry = attachment->taken;
        held->is_held = true;
        attachment->held_count++;
        held->mapping->users++;
        tnd_delivery_pass(attachment);
        /* seq_cst, as in lane_reader_cut_off: either the server sees `taken` and keeps the slot for
         * us, or we see `told` here and do not touch the slot. */
        *ret_cut_off = atomic_load(&tnd_own_line(attachment)->told) != 0;
        if (!*ret_cut_off) {
            reader->has_started = true;
            reader->epoch = slot->epoch;
            reader->step = slot->step + 1;
        }
    }
    pthread_mutex_unlock(&reader->lock);
    return status;
}

static tundish_status
lend_batch(tundish_reader *reader, struct held *held, const tundish_batch **ret_batch)
{
    const struct tnd_slot *slot = &held->slot.slot;
    bool is_cut_off = false;
    tundish_status status = hold_batch(reader, held, &is_cut_off);

    /* If the server died before it sent its messages, the next one delivers the batch. */
    if (status == TUNDISH_E_SERVER_GONE)
        return tnd_reader_tell_gone(reader);
    if (status != TUNDISH_OK)
        return status;
    /* Tensors are made when they are asked for, so a column that nobody reads is never decoded. */
    for (uint32_t i = 0; i < slot->column_count; i++)
        held->columns[i].is_ready = held->columns[i].is_framed = false;
    held->batch = (tundish_batch){
        .sequence = reader->sequence,
        .epoch = slot->epoch,
        .step = slot->step,
        .tensor_count = slot->column_count,
        .flags = slot->flags,
        .shard = slot->shard,
        .visits = slot->visits,
    };
    /* The server may be writing into the slot already: hand out nothing of it. */
    if (is_cut_off) {
        tundish_release(reader, &held->batch);
        return tnd_reader_take_detachment(reader);
    }
    reader->sequence++;
    reader->in_epoch = true;
    reader->place_epoch = slot->epoch;
    reader->place_bytes = slot->place_bytes;
    *ret_batch = &held->batch;
    return TUNDISH_OK;
}

/* (epoch, step) is the next batch wanted. Batches before it came from an earlier server already, or
 * belong to an epoch that tundish_restart left. A queue's batches are shared among its readers: a
 * reader takes each one that it is granted. */
static bool
is_passed_over(const tundish_reader *reader, const struct tnd_slot *slot)
{
    if (slot->kind == TND_SLOT_END)
        return slot->epoch < reader->epoch;
    if (slot->kind != TND_SLOT_BATCH || !reader->attachments->delivery->is_in_order)
        return false;
    return slot->epoch < reader->epoch ||
           (slot->epoch == reader->epoch && slot->step < reader->step);
}

/* The other readers of an evaluation may have ended epochs without this one. */
static bool
is_later_evaluation(const tundish_reader *reader, const struct tnd_slot *slot)
{
    return slot->shard >= 0 && slot->epoch > reader->epoch && slot->step == 0 && reader->step == 0;
}

/* No batch may be missing between the last one returned and this one. */
static tundish_status
check_no_gap(const tundish_reader *reader, const struct tnd_slot *slot)
{
    if (!reader->has_started || !reader->attachments->delivery->is_in_order ||
        (slot->epoch == reader->epoch && slot->step == reader->step) ||
        is_later_evaluation(reader, slot))
        return TUNDISH_OK;
    return tnd_fail(TUNDISH_E_PLACE,
                    "the server continues at epoch %" PRIu64 ", step %" PRIu64
                    ", but this reader still needs epoch %" PRIu64 ", step %" PRIu64,
                    slot->epoch, slot->step, reader->epoch, reader->step);
}

static tundish_status
take_end(tundish_reader *reader, struct held *held, bool is_optional)
{
    if (is_optional) {
        reader->is_at_end = true;
        return TUNDISH_NO_VALUE;
    }
    reader->attachments->delivery->take_end(reader, held);
    tnd_reader_stand(reader, held->slot.slot.epoch + 1, 0);
    reader->place_bytes = 0;
    reader->in_epoch = reader->is_at_end = false;
    return TUNDISH_END;
}

static tundish_status
take_error(tundish_reader *reader, const struct held *held)
{
    char text[TND_SLOT_TEXT + 1];

    tnd_view_slot_text(&reader->attachments->view, held->index, &held->slot, text, sizeof text);
    set_final(reader, (tundish_status)held->slot.slot.status, text);
    return tnd_reader_tell_final(reader);
}

/* Copy and check the slot that the next entry names. The server's page is not trusted: a slot that
 * the caller still holds must not be filled again, and a lane's positions have no gaps. */
static tundish_status
read_entry(tundish_reader *reader, struct held **ret_held)
{
    struct attachment *attachment = reader->attachments;
    uint32_t index;
    struct held *held;
    tundish_status status = tnd_view_entry(
        &attachment->view, attachment->delivery->line(attachment), attachment->taken, &index);

    if (status != TUNDISH_OK)
        return status;
    held = attachment->slots[index];
    if (held->is_held)
        return tnd_fail(TUNDISH_E_CORRUPT, "the server filled a slot that is still in use");
    status = tnd_view_slot_read(&attachment->view, index, &held->slot);
    if (status != TUNDISH_OK)
        return status;
    if (attachment->delivery->is_in_order && held->slot.slot.position != attachment->taken)
        return tnd_fail(TUNDISH_E_CORRUPT, "a slot is out of order");
    *ret_held = held;
    return TUNDISH_OK;
}

/* END_OF_STREAM and STOPPED are returned from now on. Their names explain them. */
static tundish_status
take_last(tundish_reader *reader, tundish_status status)
{
    set_final(reader, status, tundish_status_text(status));
    return tnd_reader_tell_final(reader);
}

static tundish_status
next_entry(tundish_reader *reader, int64_t deadline_ns, bool is_optional,
           const tundish_batch **ret_batch)
{
    for (;;) {
        struct held *held = NULL;
        bool is_ours = true;
        tundish_status status = tnd_reader_await_entry(reader, deadline_ns);

        if (status == TUNDISH_OK)
            status = tnd_reader_claim(reader, &is_ours);
        if (status == TUNDISH_OK && !is_ours)
            continue;
        if (status == TUNDISH_OK)
            status = read_entry(reader, &held);
        if (status == TUNDISH_OK && (reader->restart_is_due || reader->passes_end))
            status = tnd_reader_restart_at(reader, &held->slot.slot);
        if (status != TUNDISH_OK)
            return status;
        if (is_passed_over(reader, &held->slot.slot)) {
            pass_over(reader, held);
            continue;
        }
        switch ((enum tnd_slot_kind)held->slot.slot.kind) {
        case TND_SLOT_BATCH:
            status = check_no_gap(reader, &held->slot.slot);
            return status == TUNDISH_OK ? lend_batch(reader, held, ret_batch) : status;
        case TND_SLOT_END:
            return take_end(reader, held, is_optional);
        case TND_SLOT_END_OF_STREAM:
            return take_last(reader, TUNDISH_END_OF_STREAM);
        case TND_SLOT_STOPPED:
            return take_last(reader, TUNDISH_STOPPED);
        case TND_SLOT_ERROR:
            return take_error(reader, held);
        }
    }
}

/* Attach to the restarted server, or to another one at the same path. */
static tundish_status
attach_again(tundish_reader *reader, int64_t deadline_ns)
{
    int64_t give_up_ns = tnd_clock_deadline_ns(reader->server_timeout_ns);
    tundish_status status;

    if (give_up_ns < deadline_ns)
        deadline_ns = give_up_ns;
    tnd_reader_stand_at_begin(reader);
    status = tnd_reader_attach(reader, reader->has_started, deadline_ns);
    if (status == TUNDISH_OK)
        reader->is_gone_told = false;
    return status;
}

/* Two slots are left for the server to fill; with fewer it could come to a halt. */
static tundish_status
check_held(tundish_reader *reader)
{
    uint32_t slot_count = reader->attachments->view.slot_count, held_count;

    pthread_mutex_lock(&reader->lock);
    held_count = reader->attachments->held_count;
    pthread_mutex_unlock(&reader->lock);
    if (held_count >= slot_count - 2)
        return tnd_fail(TUNDISH_E_ARGUMENT,
                        "%u batch%s held and the lane has %u slots: release one first, or raise "
                        "deliver.slots",
                        held_count, held_count == 1 ? " is" : "es are", slot_count);
    return TUNDISH_OK;
}

static tundish_status
next_batch(tundish_reader *reader, int64_t timeout_ns, bool is_optional,
           const tundish_batch **ret_batch)
{
    int64_t deadline_ns;
    tundish_status status = tnd_reader_check(reader);

    if (status != TUNDISH_OK)
        return status;
    if (ret_batch == NULL)
        return tnd_fail(TUNDISH_E_ARGUMENT, "ret_batch is NULL");
    if (reader->final != TUNDISH_OK)
        return tnd_reader_tell_final(reader);
    deadline_ns = tnd_clock_deadline_ns(timeout_ns);
    if (reader->is_gone_told)
        status = attach_again(reader, deadline_ns);
    if (status != TUNDISH_OK)
        return status;
    status = check_held(reader);
    if (status == TUNDISH_OK)
        status = tnd_reader_await_from(reader, deadline_ns);
    if (status != TUNDISH_OK)
        return status;
    tnd_claim_begin(reader->attachments);
    return next_entry(reader, deadline_ns, is_optional, ret_batch);
}

tundish_status
tundish_next(tundish_reader *reader, int64_t timeout_ns, const tundish_batch **ret_batch)
{
    return next_batch(reader, timeout_ns, false, ret_batch);
}

tundish_status
tundish_next_optional(tundish_reader *reader, int64_t timeout_ns, const tundish_batch **ret_batch)
{
    return next_batch(reader, timeout_ns, true, ret_batch);
}
