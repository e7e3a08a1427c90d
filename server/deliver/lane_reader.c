/* lane_reader.c - cursors, and what trainers report in their pages.
 *
 * A trainer can write anything into its page at any time. So each field is read once into a local
 * variable, clamped to its valid range, and used from the reader's own book. A lie can only cost
 * the liar its own batches.
 */
#include "deliver/lane_reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/memory.h"
#include "core/must.h"
#include "core/status.h"
#include "deliver/lane_private.h"

static uint64_t
clamp(uint64_t value, uint64_t low, uint64_t high)
{
    return value < low ? low : value > high ? high : value;
}

/* Acquire; partner: the release store in client/release.c, which follows the trainer's last read of
 * the slot. So the server writes into the slot only after that read. */
bool
lane_reader_has_returned(const struct lane_reader *reader, uint32_t index, uint64_t position)
{
    return atomic_load_explicit(&tnd_returns_slots(lane_reader_page(reader))[index],
                                memory_order_acquire) == position + 1;
}

/* A trainer may release only what was published or granted, and can never take a release back. */
void
lane_reader_read(struct lane *lane, struct lane_reader *reader)
{
    struct tnd_returns *page = lane_reader_page(reader);
    uint64_t limit = lane->config.queue ? reader->granted : lane->published;
    /* Sequentially consistent; partner: tnd_ring_release. Either this load sees the release, or the
     * trainer sees `server_waits`. */
    uint64_t released = atomic_load(&page->released);
    uint64_t taken = atomic_load(&page->taken);
    uint64_t passed_from =
        atomic_load(&page->passed_from); /* stored before the positions it passes */
    uint64_t waiting_since_ns = atomic_load(&page->waiting_since_ns);
    uint64_t waited_ns = atomic_load_explicit(&page->waited_ns, memory_order_relaxed);

    released = clamp(released, reader->released, limit);
    if (released != reader->released && lane->config.queue)
        lane->progress++;
    lane->has_new_wait |= waiting_since_ns != reader->waiting_since_ns && waiting_since_ns != 0;
    reader->released = released;
    taken = clamp(taken, released, limit);
    reader->taken_in_all += taken > reader->taken ? taken - reader->taken : 0;
    reader->taken = taken;
    if (passed_from != 0)
        lane->passed_from = passed_from - 1;
    reader->waiting_since_ns = waiting_since_ns;
    /* Counted from 0 by each trainer, so add the sum of the earlier ones. A total never goes
     * back. */
    waited_ns += reader->waited_before_ns;
    if (waited_ns > reader->waited_ns)
        reader->waited_ns = waited_ns;
}

/* The position that all replicas of the group have released. Also tells the others how far this one
 * is. The other replicas read other lanes, so their values only decide how long a slot is kept.
 * Relaxed is enough: a stale value is too low and keeps it a little longer. */
static uint64_t
released_by_group(const struct lane_reader *reader)
{
    uint64_t lowest = reader->released;

    if (reader->tie.released == NULL)
        return lowest;
    atomic_store_explicit(&reader->tie.released[reader->tie.index], lowest, memory_order_relaxed);
    for (uint32_t i = 0; i < reader->tie.count; i++) {
        uint64_t released = atomic_load_explicit(&reader->tie.released[i], memory_order_relaxed);

        lowest = released < lowest ? released : lowest;
    }
    return lowest;
}

/* Does a trainer that was cut off still use this slot? */
static bool
is_pinned(const struct lane *lane, uint32_t index)
{
    uint64_t position = lane->slots[index].position;

    for (uint32_t i = 0; i < lane->reader_limit; i++) {
        const struct lane_reader *reader = lane->readers[i];

        if (reader != NULL && reader->cut_off && reader->connection != NULL &&
            position >= reader->released && position < reader->taken &&
            !lane_reader_has_returned(reader, index, position))
            return true;
    }
    return false;
}

void
lane_free_visible(struct lane *lane, uint32_t index)
{
    enum slot_state state = lane->slots[index].state;

    must((state == SLOT_PUBLISHED || state == SLOT_PINNED) && lane->visible_count > 0);
    lane->visible_count--;
    lane->progress++;
    lane_free_slot(lane, index);
}

static bool
is_passed(const struct lane_look *look, struct lane_until until)
{
    return look->published &&
           (look->epoch < until.epoch || (look->epoch == until.epoch && look->step < until.step));
}

static void
pass_over(const struct lane *lane, struct lane_reader *reader)
{
    struct lane_look look;

    while (lane_look_at(lane, reader->released, &look) && is_passed(&look, reader->passes))
        reader->released++;
    if (reader->taken < reader->released)
        reader->taken = reader->released;
}

static void
collect_lane(struct lane *lane)
{
    uint64_t lowest = UINT64_MAX;

    for (uint32_t i = 0; i < lane->reader_limit; i++) {
        struct lane_reader *reader = lane->readers[i];
        uint64_t released;

        if (reader == NULL)
            continue;
        if (reader->cut_off)
            continue;
        if (reader->connection != NULL)
            lane_reader_read(lane, reader);
        else if (reader->passes.epoch > 0 || reader->passes.step > 0)
            pass_over(lane, reader);
        released = released_by_group(reader);
        lowest = released < lowest ? released : lowest;
    }
    /* Without readers, keep everything. `released` never goes back: a slot below it may be in use
     * again. */
    if (lowest == UINT64_MAX || lowest < lane->released)
        lowest = lane->released;
    lane->released = lowest;
    for (uint32_t i = 0; i < lane->config.slots; i++) {
        struct lane_slot *slot = &lane->slots[i];
        bool is_done = slot->state == SLOT_PINNED ||
                       (slot->state == SLOT_PUBLISHED && slot->position < lowest);

        if (is_done && !is_pinned(lane, i))
            lane_free_visible(lane, i);
        else if (is_done)
            slot->state = SLOT_PINNED;
    }
}

/* Wake the filling thread only if it can do something. With several groups most releases free no
 * slot, and a trainer that waits for a published batch of another group needs no new one. */
void
lane_collect(struct lane *lane)
{
    bool all;

    if (lane->config.queue)
        lane_collect_queue(lane);
    else
        collect_lane(lane);
    if (lane->has_new_wait && (lane->config.queue || lane_count_waiting(lane, &all) > 0))
        lane->progress++;
    lane->has_new_wait = false;
}

bool
lane_take_progress(struct lane *lane)
{
    bool happened;

    pthread_mutex_lock(&lane->lock);
    lane_collect(lane);
    happened = lane->progress != lane->progress_seen;
    lane->progress_seen = lane->progress;
    pthread_mutex_unlock(&lane->lock);
    return happened;
}

void
lane_set_waits(struct lane *lane, bool waits)
{
    /* A queue's trainers always signal, since the hub's thread grants their wishes. Partner of the
     * store: the load in tnd_ring_release. */
    atomic_store(&lane->batches->server_waits, waits || lane->config.queue);
}

uint32_t
lane_count_waiting(const struct lane *lane, bool *ret_all)
{
    uint32_t count = 0, waiting = 0;

    for (uint32_t i = 0; i < lane->reader_limit; i++) {
        const struct lane_reader *reader = lane->readers[i];
        uint64_t had;

        if (reader == NULL || reader->cut_off)
            continue;
        had = lane->config.queue ? reader->granted : lane->published;
        /* The page may claim a wait while batches are left to take. Only a trainer that has taken
         * all counts. */
        waiting +=
            reader->connection != NULL && reader->waiting_since_ns != 0 && reader->taken == had;
        count++;
    }
    *ret_all = waiting == count;
    return waiting;
}

bool
lane_is_awaited(struct lane *lane)
{
    uint32_t waiting;
    bool all;

    pthread_mutex_lock(&lane->lock);
    lane_collect(lane);
    waiting = lane_count_waiting(lane, &all);
    pthread_mutex_unlock(&lane->lock);
    return waiting > 0;
}

void
lane_wake(struct lane *lane)
{
    bool somebody_sleeps = false;

    /* A grant counts in a line of its own, so the sleeper's futex word has to change here, too. */
    if (lane->config.queue && lane_grant_all(lane))
        atomic_fetch_add(&lane->batches->signal, 1);
    for (uint32_t i = 0; i < lane->reader_limit; i++) {
        struct lane_reader *reader = lane->readers[i];

        if (reader == NULL || reader->connection == NULL)
            continue;
        /* Partner: tnd_ring_sleep stores `sleeping` before its last look at the counter. The caller
         * stored the counter before this load, so one of the two sees the other. */
        somebody_sleeps |= tnd_ring_is_asleep(lane_reader_page(reader));
        if (atomic_load(&lane_reader_page(reader)->polling) != 0)
            tnd_ring_event_raise(reader->event);
    }
    if (somebody_sleeps)
        tnd_ring_wake(lane->batches);
}

uint64_t
lane_lowest(struct lane *lane)
{
    uint64_t lowest;

    pthread_mutex_lock(&lane->lock);
    lane_collect(lane);
    lowest = lane->released;
    pthread_mutex_unlock(&lane->lock);
    return lowest;
}

tundish_status
lane_reader_open(struct lane *lane, uint64_t position, struct lane_reader **ret_reader)
{
    struct lane_reader *reader = NULL;

    pthread_mutex_lock(&lane->lock);
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
        if (!lane->config.queue)
            reader->released = reader->taken =
                position > lane->released ? position : lane->released;
    }
    pthread_mutex_unlock(&lane->lock);
    if (reader == NULL)
        return tnd_fail(TUNDISH_E_MEMORY, "lane %s has %d readers, the largest number allowed",
                        lane->name, TND_CONSUMERS_MAX);
    *ret_reader = reader;
    return TUNDISH_OK;
}

static void
close_descriptor(int *descriptor)
{
    if (*descriptor >= 0)
        close(*descriptor);
    *descriptor = -1;
}

/* The lock is held. In a queue, the batches that it held are offered again. */
static void
forget_trainer(struct lane_reader *reader)
{
    struct lane *lane = reader->lane;

    if (reader->connection == NULL)
        return;
    lane_collect(lane);
    for (uint32_t i = 0; i < lane->config.slots; i++) {
        struct lane_slot *slot = &lane->slots[i];

        if (slot->state == SLOT_PUBLISHED && slot->kind == TND_SLOT_BATCH &&
            slot->holder == (int)reader->line - 1) {
            slot->holder = NOBODY;
            slot->visits++;
        }
        /* The line's next reader is another trainer, which has seen no end of an epoch. */
        slot->seen &= ~(UINT64_C(1) << (reader->line - 1));
    }
    if (lane->config.wakeup != NULL)
        wakeup_ignore(lane->config.wakeup, reader->wakeup);
    close_descriptor(&reader->event);
    close_descriptor(&reader->wakeup);
    lane_reader_count_waits(reader);
    memset(reader->page_waits, 0, sizeof reader->page_waits);
    tnd_segment_close(&reader->returns);
    reader->connection = NULL;
    reader->waiting_since_ns = 0;
    reader->waited_before_ns = reader->waited_ns;
    lane->progress++;
    lane_wake(lane);
}

void
lane_reader_detach(struct lane_reader *reader)
{
    struct lane *lane = reader->lane;

    pthread_mutex_lock(&lane->lock);
    forget_trainer(reader);
    pthread_mutex_unlock(&lane->lock);
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
    pthread_mutex_lock(&lane->lock);
    forget_trainer(reader);
    /* The line may be reused at once, so clear its words before another reader opens it. */
    lane->readers[reader->line - 1] = NULL;
    atomic_store(&lane_line(lane, reader->line)->told, 0);
    atomic_store(&lane_line(lane, reader->line)->granted, 0);
    lane->progress++;
    lane_collect(lane);
    pthread_mutex_unlock(&lane->lock);
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
        return tnd_fail_errno(errno, "create the descriptors that wake a trainer");
    return TUNDISH_OK;
}

bool
lane_look_at(const struct lane *lane, uint64_t position, struct lane_look *ret_look)
{
    bool found = position == lane->published && position > 0;

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
    struct lane_look look;

    welcome->line = reader->line;
    welcome->batches_bytes = lane->segment.segment_bytes;
    welcome->returns_bytes = reader->returns.segment_bytes;
    welcome->position = lane->config.queue ? 0 : reader->released;
    if (welcome->first_step == UINT64_MAX && !lane->config.queue &&
        lane_look_at(lane, reader->released, &look)) {
        welcome->first_epoch = look.epoch;
        welcome->first_step = look.step;
    }
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
    pthread_mutex_lock(&lane->lock);
    if (lane->config.queue) {
        reader->released = reader->taken = reader->granted = 0;
        atomic_store(&lane_line(lane, reader->line)->granted, 0);
    }
    status = make_page(reader);
    if (status == TUNDISH_OK)
        status = make_wakers(reader);
    if (status == TUNDISH_OK) {
        reader->connection = connection;
        reader->passes = (struct lane_until){ 0 };
        if (lane->config.queue)
            lane_skip_old_ends(lane, reader->line - 1);
        welcome_client(reader, welcome);
        lane->progress++;
    } else {
        close_descriptor(&reader->event);
        close_descriptor(&reader->wakeup);
        tnd_segment_close(&reader->returns);
    }
    pthread_mutex_unlock(&lane->lock);
    if (status == TUNDISH_OK && lane->config.queue)
        lane_set_waits(lane, true);
    return status;
}

void
lane_reader_cut_off(struct lane_reader *reader)
{
    struct lane *lane = reader->lane;

    pthread_mutex_lock(&lane->lock);
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
    pthread_mutex_unlock(&lane->lock);
    if (lane->config.wakeup != NULL)
        wakeup_signal(lane->config.wakeup);
}

void
lane_reader_notify(struct lane_reader *reader)
{
    struct lane *lane = reader->lane;

    pthread_mutex_lock(&lane->lock);
    tnd_ring_notify(lane->batches);
    lane_wake(lane);
    pthread_mutex_unlock(&lane->lock);
}

void
lane_reader_tie(struct lane_reader *reader, struct lane_tie tie)
{
    pthread_mutex_lock(&reader->lane->lock);
    atomic_store(&tie.released[tie.index], reader->released);
    reader->tie = tie;
    pthread_mutex_unlock(&reader->lane->lock);
}

void
lane_reader_rewind(struct lane_reader *reader, uint64_t position)
{
    struct lane *lane = reader->lane;

    pthread_mutex_lock(&lane->lock);
    must(reader->connection == NULL && position >= lane->released && position <= reader->released);
    reader->released = reader->taken = position;
    lane_collect(lane);
    pthread_mutex_unlock(&lane->lock);
}

void
lane_reader_pass(struct lane_reader *reader, struct lane_until until)
{
    struct lane *lane = reader->lane;

    pthread_mutex_lock(&lane->lock);
    must(reader->connection == NULL);
    if (reader->passes.epoch < until.epoch ||
        (reader->passes.epoch == until.epoch && reader->passes.step < until.step))
        reader->passes = until;
    lane_collect(lane);
    pthread_mutex_unlock(&lane->lock);
    if (lane->config.wakeup != NULL)
        wakeup_signal(lane->config.wakeup);
}

bool
lane_look(struct lane *lane, uint64_t position, struct lane_look *ret_look)
{
    bool found;

    pthread_mutex_lock(&lane->lock);
    lane_collect(lane);
    found = lane_look_at(lane, position, ret_look);
    pthread_mutex_unlock(&lane->lock);
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
