/* delivery.c - the lane's readers, and the queue's. */
#include "client/delivery.h"
#include "core/clock.h"
#include "core/status.h"

void
tnd_delivery_pass(struct attachment *attachment)
{
    attachment->taken++;
    atomic_store(&attachment->returns->taken, attachment->taken);
}

void
tnd_delivery_skip(tundish_reader *reader, const struct held *held)
{
    struct attachment *attachment = reader->attachments;
    uint64_t entry;

    pthread_mutex_lock(&reader->lock);
    entry = attachment->taken;
    tnd_delivery_pass(attachment);
    tnd_release_end(attachment);
    tnd_release_entry(attachment, entry, held->index);
    pthread_mutex_unlock(&reader->lock);
}

static const _Atomic uint64_t *
lane_counter(const struct attachment *attachment)
{
    return &attachment->view.batches->published;
}

static uint32_t
lane_line(const struct attachment *attachment)
{
    (void)attachment;
    return 0;
}

/* An epoch's end is given back only with the first batch after it (reader.h). */
static void
lane_take_end(tundish_reader *reader, const struct held *held)
{
    struct attachment *attachment = reader->attachments;

    pthread_mutex_lock(&reader->lock);
    tnd_release_end(attachment);
    attachment->has_end = true;
    attachment->end_entry = attachment->taken;
    attachment->end_index = held->index;
    tnd_delivery_pass(attachment);
    pthread_mutex_unlock(&reader->lock);
}

const struct delivery tnd_delivery_lane = {
    .is_in_order = true,
    .counter = lane_counter,
    .line = lane_line,
    .take_end = lane_take_end,
};

static const _Atomic uint64_t *
queue_counter(const struct attachment *attachment)
{
    return &tnd_own_line(attachment)->granted;
}

static uint32_t
queue_line(const struct attachment *attachment)
{
    return attachment->line;
}

static bool
queue_ask(struct attachment *attachment)
{
    struct tnd_returns *returns = attachment->returns;

    if (atomic_load_explicit(&returns->wanted, memory_order_relaxed) > attachment->taken)
        return false;
    atomic_store(&returns->wanted, attachment->taken + 1);
    return true;
}

static bool
queue_starves(const struct attachment *attachment)
{
    return attachment->held_count > 0 && !attachment->is_gone &&
           atomic_load(&tnd_own_line(attachment)->starves) != 0;
}

static tundish_status
queue_ask_place(tundish_reader *reader)
{
    struct tnd_message_head ask = { .type = TND_ASK_QUEUE };
    int64_t deadline_ns = tnd_clock_deadline_ns(reader->server_timeout_ns);
    tundish_status status = tnd_reader_listen(reader);

    reader->has_queue = false;
    if (status == TUNDISH_OK)
        status = reader->attachments->is_gone
                     ? tnd_fail(TUNDISH_E_SERVER_GONE,
                                "only the server knows the place of a queue, and it is gone")
                     : tnd_channel_send(reader->attachments->socket, ask, NULL, NULL, 0);
    while (status == TUNDISH_OK && !reader->has_queue)
        status = tnd_reader_listen_for(reader, tnd_clock_left_ns(deadline_ns));
    if (status == TUNDISH_OK && reader->queue_status != TUNDISH_OK) {
        reader->has_queue = false;
        return tnd_fail(
            TUNDISH_E_TIMEOUT,
            "there is no place to save before the first batch: call tundish_next first");
    }
    return status;
}

const struct delivery tnd_delivery_queue = {
    .counter = queue_counter,
    .line = queue_line,
    .ask = queue_ask,
    .take_end = tnd_delivery_skip, /* the readers wait for each other there */
    .starves = queue_starves,
    .ask_place = queue_ask_place,
};
