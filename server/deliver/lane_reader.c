/* lane_reader.c - cursors in a lane, and the trainers that read there. */
#include "deliver/lane_reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core/memory.h"
#include "core/must.h"
#include "core/status.h"
#include "deliver/lane_private.h"
#include "shm/channel.h"

tundish_status
lane_reader_open(struct lane *lane, uint64_t position, struct lane_reader **ret_reader)
{
    struct lane_reader *reader = NULL;

    tnd_lock_take(&lane->lock);
    lane_collect(lane);
    for (uint32_t i = 0; i < TND_CONSUMERS_MAX && reader == NULL; i++) {
        if (lane->readers[i] != NULL)
            continue;
        reader = lane->readers[i] = tnd_zalloc(1, sizeof *reader);
        reader->lane = lane;
        reader->line = i + 1;
        if (lane->reader_limit < reader->line)
            lane->reader_limit = reader->line;
        reader->returns = (struct tnd_segment)TND_SEGMENT_NONE;
        reader->event = reader->wakeup = -1;
        lane->delivery->open_reader(reader, position);
    }
    tnd_lock_release(&lane->lock);
    if (reader == NULL)
        return tnd_fail(TUNDISH_E_MEMORY, "lane %s has %d readers, the largest number allowed",
                        lane->name, TND_CONSUMERS_MAX);
    *ret_reader = reader;
    return TUNDISH_OK;
}

static void
forget_trainer(struct lane_reader *reader)
{
    struct lane *lane = reader->lane;
    bool held;

    must_hold(&reader->lane->lock);
    if (reader->connection == NULL)
        return;
    lane_collect(lane);
    held = lane->delivery->take_holdings(reader);
    if (lane->config.wakeup != NULL)
        wakeup_ignore(lane->config.wakeup, reader->wakeup);
    tnd_channel_close_descriptor(&reader->event);
    tnd_channel_close_descriptor(&reader->wakeup);
    lane_reader_count_waits(reader);
    memset(reader->page_waits, 0, sizeof reader->page_waits);
    tnd_segment_close(&reader->returns);
    /* The wait in which it died has been told: a counter may not go back. */
    reader->waited_ns = reader->waited_before_ns = lane_reader_waited_ns(reader);
    reader->connection = NULL;
    reader->waiting_since_ns = 0;
    lane->progress++;
    lane_wake(lane);
    if (held)
        lane->delivery->tell_holdings(lane);
}

void
lane_reader_detach(struct lane_reader *reader)
{
    struct lane *lane = reader->lane;

    tnd_lock_take(&lane->lock);
    forget_trainer(reader);
    tnd_lock_release(&lane->lock);
    if (lane->config.wakeup != NULL)
        wakeup_signal(lane->config.wakeup);
}

void
lane_reader_close(struct lane_reader *reader)
{
    struct lane *lane;

    if (reader == NULL)
        return;
    lane = reader->lane;
    tnd_lock_take(&lane->lock);
    forget_trainer(reader);
    /* The line may be reused at once, so clear its words before another reader opens it. */
    lane->readers[reader->line - 1] = NULL;
    atomic_store(&lane_line(lane, reader->line)->told, 0);
    atomic_store(&lane_line(lane, reader->line)->granted, 0);
    lane->progress++;
    lane_collect(lane);
    tnd_lock_release(&lane->lock);
    free(reader);
    if (lane->config.wakeup != NULL)
        wakeup_signal(lane->config.wakeup);
}

static tundish_status
make_page(struct lane_reader *reader)
{
    struct lane *lane = reader->lane;
    struct tnd_returns *page;
    tundish_status status =
        tnd_segment_create_returns(tnd_returns_bytes(lane->config.slots), &reader->returns);

    if (status != TUNDISH_OK)
        return status;
    page = lane_reader_page(reader);
    page->magic = TND_RETURNS_MAGIC;
    page->layout_major = TND_LAYOUT_MAJOR;
    page->layout_minor = TND_LAYOUT_MINOR;
    page->slot_count = lane->config.slots;
    atomic_store(&page->released, reader->released);
    /* A successor takes again what its predecessor took and did not release. */
    atomic_store(&page->taken, reader->released);
    return TUNDISH_OK;
}

static tundish_status
make_wakers(struct lane_reader *reader)
{
    reader->event = tnd_ring_event_open();
    reader->wakeup = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (reader->event < 0 || reader->wakeup < 0 ||
        (reader->lane->config.wakeup != NULL &&
         !wakeup_listen(reader->lane->config.wakeup, reader->wakeup)))
        return tnd_fail_errno(errno, "cannot create the descriptors that wake a trainer");
    return TUNDISH_OK;
}

bool
lane_look_at(const struct lane *lane, uint64_t position, struct lane_look *ret_look)
{
    bool found = position == lane->published && position > 0;

    must_hold(&lane->lock);
    if (found)
        *ret_look = (struct lane_look){ .epoch = lane->next_epoch, .step = lane->next_step };
    for (uint32_t i = 0; i < lane->config.slots && !found; i++) {
        const struct lane_slot *slot = &lane->slots[i];

        found = slot->state == SLOT_PUBLISHED && slot->position == position;
        if (found)
            *ret_look = (struct lane_look){
                .published = true, .kind = slot->kind, .epoch = slot->epoch, .step = slot->step
            };
    }
    return found;
}

static void
welcome_client(struct lane_reader *reader, struct tnd_welcome *welcome)
{
    struct lane *lane = reader->lane;
    int descriptors[] = { lane->segment.read_descriptor, reader->returns.read_descriptor,
                          reader->wakeup, reader->event };
    struct tnd_message_head head = { .type = TND_WELCOME, .bytes = sizeof *welcome };

    must_hold(&reader->lane->lock);
    welcome->line = reader->line;
    if (lane->config.takes_back)
        welcome->flags |= TND_WELCOME_CLAIMS;
    welcome->batches_bytes = lane->segment.segment_bytes;
    welcome->returns_bytes = reader->returns.segment_bytes;
    lane->delivery->welcome(reader, welcome);
    connection_post(reader->connection, head, welcome, descriptors, 4);
    lane_own_announce(lane, reader->connection);
}

tundish_status
lane_reader_attach(struct lane_reader *reader, struct connection *connection,
                   struct tnd_welcome *welcome)
{
    struct lane *lane = reader->lane;
    tundish_status status;

    must(reader->connection == NULL && !reader->cut_off);
    tnd_lock_take(&lane->lock);
    lane->delivery->reset_reader(reader);
    status = make_page(reader);
    if (status == TUNDISH_OK)
        status = make_wakers(reader);
    if (status == TUNDISH_OK) {
        reader->connection = connection;
        reader->back_from = reader->back_until = 0;
        if ((welcome->flags & TND_WELCOME_FROM) == 0)
            reader->passes = (struct lane_until){ 0 };
        lane->delivery->attach_reader(reader);
        welcome_client(reader, welcome);
        lane->progress++;
    } else {
        tnd_channel_close_descriptor(&reader->event);
        tnd_channel_close_descriptor(&reader->wakeup);
        tnd_segment_close(&reader->returns);
    }
    tnd_lock_release(&lane->lock);
    if (status == TUNDISH_OK && lane->delivery->always_waits)
        lane_set_waits(lane, true);
    if (status == TUNDISH_OK)
        lane_lie_near(lane, connection->pid);
    return status;
}

void
lane_reader_cut_off(struct lane_reader *reader)
{
    struct lane *lane = reader->lane;

    tnd_lock_take(&lane->lock);
    lane_collect(lane);
    if (reader->connection != NULL) {
        atomic_store(&lane_line(lane, reader->line)->told, TND_TOLD_DETACHED);
        tnd_ring_notify(lane->batches);
        /* The trainer stores `taken` before its last look at `told` (client/next.c). This thread
         * stores `told` first and reads `taken` after. Both are sequentially consistent: if the
         * trainer goes on to use a batch, it is seen here and stays pinned. */
        lane_reader_read(lane, reader);
    }
    reader->cut_off = true;
    lane->progress++;
    lane_collect(lane);
    lane_wake(lane);
    tnd_lock_release(&lane->lock);
    if (lane->config.wakeup != NULL)
        wakeup_signal(lane->config.wakeup);
}

void
lane_reader_notify(struct lane_reader *reader)
{
    struct lane *lane = reader->lane;

    tnd_lock_take(&lane->lock);
    tnd_ring_notify(lane->batches);
    lane_wake(lane);
    tnd_lock_release(&lane->lock);
}

void
lane_reader_tie(struct lane_reader *reader, struct lane_tie tie)
{
    tnd_lock_take(&reader->lane->lock);
    atomic_store(&tie.released[tie.index], reader->released);
    reader->tie = tie;
    tnd_lock_release(&reader->lane->lock);
}

void
lane_reader_move(struct lane_reader *reader, uint64_t position)
{
    struct lane *lane = reader->lane;

    tnd_lock_take(&lane->lock);
    must(reader->connection == NULL);
    must(position >= lane->released || lane_reader_passes(reader));
    reader->released = reader->taken = position > lane->released ? position : lane->released;
    lane_collect(lane);
    tnd_lock_release(&lane->lock);
}

void
lane_reader_pass(struct lane_reader *reader, struct lane_until until)
{
    struct lane *lane = reader->lane;

    tnd_lock_take(&lane->lock);
    if (reader->passes.epoch < until.epoch ||
        (reader->passes.epoch == until.epoch && reader->passes.step < until.step))
        reader->passes = until;
    lane_collect(lane);
    tnd_lock_release(&lane->lock);
    if (lane->config.wakeup != NULL)
        wakeup_signal(lane->config.wakeup);
}

void
lane_reader_pass_no_more(struct lane_reader *reader)
{
    tnd_lock_take(&reader->lane->lock);
    reader->passes = (struct lane_until){ 0 };
    tnd_lock_release(&reader->lane->lock);
}

bool
lane_look(struct lane *lane, uint64_t position, struct lane_look *ret_look)
{
    bool found;

    tnd_lock_take(&lane->lock);
    lane_collect(lane);
    found = lane_look_at(lane, position, ret_look);
    tnd_lock_release(&lane->lock);
    return found;
}

static bool
owes(const struct lane *lane, const struct lane_reader *reader)
{
    struct lane_look look;

    must_hold(&lane->lock);
    return reader != NULL && !reader->cut_off && reader->connection != NULL &&
           lane_look_at(lane, lane->delivery->owes_from(reader), &look) && look.published &&
           (look.kind == TND_SLOT_BATCH || look.kind == TND_SLOT_END);
}

bool
lane_is_owed(struct lane *lane)
{
    bool found = false;

    tnd_lock_take(&lane->lock);
    lane_collect(lane);
    for (uint32_t i = 0; i < lane->reader_limit && !found; i++)
        found = owes(lane, lane->readers[i]);
    tnd_lock_release(&lane->lock);
    return found;
}

void
lane_beat(struct lane *lane, int64_t now_ns)
{
    atomic_store_explicit(&lane->batches->heartbeat_ns, (uint64_t)now_ns, memory_order_relaxed);
}

void
lane_tell_groups(struct lane *lane, uint32_t present, uint32_t gone)
{
    atomic_store_explicit(&lane->batches->groups_present, present, memory_order_relaxed);
    atomic_store_explicit(&lane->batches->groups_gone, gone, memory_order_relaxed);
}

int
lane_reader_wakeup(const struct lane_reader *reader)
{
    return reader->wakeup;
}
