/* next.c - wait for the next entry of the line, and lend the batch that it names. */
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "client/reader.h"
#include "core/clock.h"
#include "core/status.h"
#include "shm/stats.h"

/* The server's heartbeat comes once a second. A busy machine delays it, so silence counts only
 * after several missed beats. */
#define SILENCE_MIN_NS UINT64_C(5000000000)

/* By default. After so many vain spins in a row only one wait in a few spins: batches take longer
 * than that to come, and the server may have a use for the processor. */
#define SPIN_DEFAULT_NS INT64_C(20000)
enum { SPINS_IN_VAIN = 8, WAITS_PER_SPIN = 64 };

static tundish_status
tell_final(const tundish_reader *reader)
{
    return tnd_fail(reader->final, "%s", reader->final_text);
}

static void
set_final(tundish_reader *reader, tundish_status status, const char *text)
{
    tnd_reader_set_final(reader, status, text, strlen(text));
}

static const struct tnd_line *
own_line(const struct attachment *attachment)
{
    return tnd_view_line(&attachment->view, attachment->line);
}

/* The server has removed this group's cursor. It sent the reason first; if that does not arrive in
 * time, a general sentence takes its place. */
static tundish_status
take_detachment(tundish_reader *reader)
{
    int64_t deadline_ns = tnd_clock_deadline_ns(TND_RING_SLEEP_MAX_NS);

    while (reader->final == TUNDISH_OK && tnd_clock_left_ns(deadline_ns) > 0)
        if (tnd_reader_listen_for(reader, tnd_clock_left_ns(deadline_ns)) != TUNDISH_OK)
            break;
    if (reader->final == TUNDISH_OK)
        set_final(reader, TUNDISH_E_DETACHED, "the server detached this group");
    return tell_final(reader);
}

/* Take the messages that precede the next batch. OK: none of them stops the reader. */
static tundish_status
take_notices(tundish_reader *reader)
{
    struct attachment *attachment = reader->attachments;
    /* Acquire pairs with the addition in tnd_ring_notify: the server sends the message first, so it
     * is in the socket when the counter shows it. */
    uint32_t notice = atomic_load_explicit(&attachment->view.batches->notice, memory_order_acquire);

    if (notice != attachment->notice) {
        tundish_status status;

        /* Before the socket is read: a message that arrives meanwhile changes the counter again. */
        attachment->notice = notice;
        status = tnd_reader_listen(reader);
        if (status != TUNDISH_OK)
            return status;
    }
    if (reader->final != TUNDISH_OK)
        return tell_final(reader);
    if (atomic_load_explicit(&own_line(attachment)->told, memory_order_acquire) != 0)
        return take_detachment(reader);
    if (reader->is_lost_pending) {
        reader->is_lost_pending = false;
        return tnd_fail(TUNDISH_E_PEER_LOST, "%s", reader->lost_text);
    }
    return TUNDISH_OK;
}

static void
describe_wait(const struct attachment *attachment, struct tnd_ring_wait *wait)
{
    *wait = (struct tnd_ring_wait){
        .batches = attachment->view.batches,
        .returns = attachment->returns,
        .counter = attachment->is_queue ? &own_line(attachment)->granted
                                        : &attachment->view.batches->published,
        .position = attachment->taken,
        .notice = attachment->notice,
    };
}

/* Tell a sleeping server that this reader has nothing left. In a queue it then grants a batch. In a
 * lane without room it may then take a segment beyond the lane's usual memory: the others may
 * release their batches only after this reader has its own. */
static void
show_waiting(struct attachment *attachment)
{
    struct tnd_returns *returns = attachment->returns;
    bool is_new = false;

    if (atomic_load_explicit(&returns->waiting_since_ns, memory_order_relaxed) == 0) {
        atomic_store(&returns->waiting_since_ns, (uint64_t)tnd_clock_ns());
        is_new = true;
    }
    if (attachment->is_queue &&
        atomic_load_explicit(&returns->wanted, memory_order_relaxed) <= attachment->taken) {
        atomic_store(&returns->wanted, attachment->taken + 1);
        is_new = true;
    }
    /* The stores above and this load are seq_cst, as are the server's store of server_waits and its
     * loads of these words: either we see that it sleeps, or it sees that we wait. */
    if (is_new && atomic_load(&attachment->view.batches->server_waits) != 0)
        tnd_wake_server(attachment);
}

/* Count the wait that has ended, for the server's metrics. This reader alone writes these words, so
 * a load and a store suffice. */
static void
end_waiting(struct tnd_returns *returns)
{
    uint64_t since_ns = atomic_load_explicit(&returns->waiting_since_ns, memory_order_relaxed);
    uint64_t waited_ns;
    _Atomic uint32_t *count;

    if (since_ns == 0)
        return;
    waited_ns = (uint64_t)tnd_clock_ns() - since_ns;
    count = &returns->waits[tnd_stats_bucket(waited_ns)];
    atomic_store_explicit(count, atomic_load_explicit(count, memory_order_relaxed) + 1,
                          memory_order_relaxed);
    atomic_store_explicit(&returns->waited_ns,
                          atomic_load_explicit(&returns->waited_ns, memory_order_relaxed) +
                              waited_ns,
                          memory_order_relaxed);
    atomic_store_explicit(&returns->waiting_since_ns, 0, memory_order_relaxed);
}

static bool
is_silent(const tundish_reader *reader)
{
    uint64_t beat_ns = atomic_load_explicit(&reader->attachments->view.batches->heartbeat_ns,
                                            memory_order_relaxed);
    uint64_t now_ns = (uint64_t)tnd_clock_ns();
    uint64_t silent_ns = beat_ns < now_ns ? now_ns - beat_ns : 0;

    return silent_ns > SILENCE_MIN_NS && silent_ns > (uint64_t)reader->server_timeout_ns;
}

/* After a sleep that brought nothing: is the server still there? */
static tundish_status
check_server(tundish_reader *reader)
{
    tundish_status status = tnd_reader_listen(reader);

    if (status == TUNDISH_OK && !reader->attachments->is_gone && is_silent(reader)) {
        pthread_mutex_lock(&reader->lock);
        tnd_attachment_hang_up(reader->attachments);
        pthread_mutex_unlock(&reader->lock);
    }
    return status;
}

/* Make the descriptor unreadable until the server raises the event again. */
static void
quiet_descriptor(const tundish_reader *reader)
{
    uint64_t count;

    if (reader->descriptor >= 0 && !reader->attachments->is_gone &&
        read(reader->attachments->event, &count, sizeof count) < 0)
        return;
}

static tundish_status
nothing_in_time(void)
{
    return tnd_fail(TUNDISH_E_TIMEOUT, "no batch in time");
}

/* Nothing more comes from this server: the next call attaches again. */
static tundish_status
tell_gone(tundish_reader *reader)
{
    reader->is_gone_told = true;
    return tnd_fail(TUNDISH_E_SERVER_GONE,
                    "the server at %s is gone; the next call waits for its return", reader->path);
}

/* Look for an entry before a sleep. */
static bool
spin(tundish_reader *reader, const struct tnd_ring_wait *wait, int64_t left_ns)
{
    int64_t spin_ns = reader->spin_ns;
    bool is_ready;

    if (spin_ns == 0) {
        if (reader->vain_spins >= SPINS_IN_VAIN && reader->vain_spins % WAITS_PER_SPIN != 0) {
            reader->vain_spins++;
            return false;
        }
        spin_ns = SPIN_DEFAULT_NS;
    }
    is_ready = tnd_ring_spin(wait, left_ns < spin_ns ? left_ns : spin_ns);
    reader->vain_spins = is_ready ? 0 : reader->vain_spins + 1;
    return is_ready;
}

/* Wait until the line has an entry that we have not passed. */
static tundish_status
await_entry(tundish_reader *reader, int64_t deadline_ns)
{
    struct attachment *attachment = reader->attachments;
    struct tnd_ring_wait wait;
    bool has_spun = false;

    for (;;) {
        tundish_status status = take_notices(reader);

        describe_wait(attachment, &wait);
        if (status != TUNDISH_OK)
            return status;
        /* Acquire pairs with tnd_ring_publish: the slots below the counter are whole. */
        if (atomic_load_explicit(wait.counter, memory_order_acquire) > wait.position)
            break;
        /* Only now: batches that the server published before it died are still good. */
        if (attachment->is_gone)
            return tell_gone(reader);
        if (attachment->is_queue)
            show_waiting(attachment);
        if (!has_spun) {
            has_spun = true;
            if (spin(reader, &wait, tnd_clock_left_ns(deadline_ns)))
                continue;
        }
        show_waiting(attachment);
        tnd_siblings_tell(reader);
        if (tnd_clock_left_ns(deadline_ns) == 0) {
            /* The event is read first and the counter after it (tnd_ring_ready below): a batch
             * published in between is either seen here or raises the event again. */
            quiet_descriptor(reader);
            status = check_server(reader);
            if (status != TUNDISH_OK)
                return status;
            if (!attachment->is_gone && !tnd_ring_ready(&wait))
                return nothing_in_time();
            continue;
        }
        /* A sleep that brought nothing is the moment to look at the socket: a server that died
         * wakes nobody. */
        if (!tnd_ring_sleep(&wait, tnd_clock_left_ns(deadline_ns)))
            status = check_server(reader);
        if (status != TUNDISH_OK)
            return status;
    }
    end_waiting(attachment->returns);
    return TUNDISH_OK;
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
    return tnd_slot_view_check_buffers(&held->slot, held->mapping->segment_bytes);
}

/* Count an entry as taken. tnd_give_back moves `released` only over entries that are. */
static void
pass_entry(struct attachment *attachment)
{
    attachment->taken++;
    atomic_store(&attachment->returns->taken, attachment->taken);
}

/* Take an entry and give it back at once, without showing it to the caller. */
static void
skip_entry(tundish_reader *reader, struct held *held)
{
    struct attachment *attachment = reader->attachments;

    pthread_mutex_lock(&reader->lock);
    held->entry = attachment->taken;
    pass_entry(attachment);
    tnd_give_end_back(attachment);
    tnd_give_back(attachment, held->entry, held->index);
    pthread_mutex_unlock(&reader->lock);
}

/* Take an epoch's end, but give it back only with the first batch after it (reader.h). */
static void
keep_end(tundish_reader *reader, const struct held *held)
{
    struct attachment *attachment = reader->attachments;

    pthread_mutex_lock(&reader->lock);
    tnd_give_end_back(attachment);
    attachment->has_end = true;
    attachment->end_entry = attachment->taken;
    attachment->end_index = held->index;
    pass_entry(attachment);
    pthread_mutex_unlock(&reader->lock);
}

/* Pass an entry that an earlier server delivered already. An epoch's end is kept, as if it had been
 * told now: a successor's place may stand before it until the next batch is given back. */
static void
pass_over(tundish_reader *reader, struct held *held)
{
    if (held->slot.slot.kind == TND_SLOT_END && !reader->attachments->is_queue)
        keep_end(reader, held);
    else
        skip_entry(reader, held);
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
        pass_entry(attachment);
        /* seq_cst, as in lane_reader_cut_off: either the server sees `taken` and keeps the slot for
         * us, or we see `told` here and do not touch the slot. */
        *ret_cut_off = atomic_load(&own_line(attachment)->told) != 0;
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
        return tell_gone(reader);
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
        return take_detachment(reader);
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
    if (slot->kind != TND_SLOT_BATCH || reader->attachments->is_queue)
        return false;
    return slot->epoch < reader->epoch ||
           (slot->epoch == reader->epoch && slot->step < reader->step);
}

/* No batch may be missing between the last one returned and this one. */
static tundish_status
check_no_gap(const tundish_reader *reader, const struct tnd_slot *slot)
{
    if (!reader->has_started || reader->attachments->is_queue ||
        (slot->epoch == reader->epoch && slot->step == reader->step))
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
    if (reader->attachments->is_queue)
        skip_entry(reader, held); /* its readers wait for each other there */
    else
        keep_end(reader, held);
    tnd_reader_stand(reader, held->slot.slot.epoch + 1, 0);
    reader->place_bytes = 0;
    reader->in_epoch = reader->is_at_end = false;
    return TUNDISH_END;
}

static tundish_status
take_error(tundish_reader *reader, const struct held *held)
{
    char text[TND_SLOT_TEXT + 1];

    tnd_slot_view_text(&reader->attachments->view, held->index, &held->slot, text, sizeof text);
    set_final(reader, (tundish_status)held->slot.slot.status, text);
    return tell_final(reader);
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
        &attachment->view, attachment->is_queue ? attachment->line : 0, attachment->taken, &index);

    if (status != TUNDISH_OK)
        return status;
    held = attachment->slots[index];
    if (held->is_held)
        return tnd_fail(TUNDISH_E_CORRUPT, "the server filled a slot that is still in use");
    status = tnd_slot_view_read(&attachment->view, index, &held->slot);
    if (status != TUNDISH_OK)
        return status;
    if (!attachment->is_queue && held->slot.slot.position != attachment->taken)
        return tnd_fail(TUNDISH_E_CORRUPT, "a slot is out of order");
    *ret_held = held;
    return TUNDISH_OK;
}

/* END_OF_STREAM and STOPPED are returned from now on. Their names explain them. */
static tundish_status
take_last(tundish_reader *reader, tundish_status status)
{
    set_final(reader, status, tundish_status_text(status));
    return tell_final(reader);
}

static tundish_status
next_entry(tundish_reader *reader, int64_t deadline_ns, bool is_optional,
           const tundish_batch **ret_batch)
{
    for (;;) {
        struct held *held = NULL;
        tundish_status status = await_entry(reader, deadline_ns);

        if (status == TUNDISH_OK)
            status = read_entry(reader, &held);
        if (status == TUNDISH_OK && reader->restart_is_due)
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
        return tell_final(reader);
    deadline_ns = tnd_clock_deadline_ns(timeout_ns);
    if (reader->is_gone_told)
        status = attach_again(reader, deadline_ns);
    if (status != TUNDISH_OK)
        return status;
    status = check_held(reader);
    if (status != TUNDISH_OK)
        return status;
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
