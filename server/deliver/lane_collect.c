/* lane_collect.c - what trainers report in their pages: taken, released, waiting; and waking them.
 *
 * A trainer can write anything into its page at any time. So each field is read once into a local
 * variable, clamped to its valid range, and used from the reader's own book. A lie can only cost
 * the liar its own batches.
 */
#include "core/must.h"
#include "deliver/lane_private.h"
#include "deliver/lane_reader.h"

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
    must_in_debug(index < reader->lane->config.slots);
    return atomic_load_explicit(&tnd_returns_slots(lane_reader_page(reader))[index],
                                memory_order_acquire) == position + 1;
}

/* How many more the trainer has taken. It passes over what was taken back, all at once. */
static uint64_t
count_taken(const struct lane_reader *reader, uint64_t taken)
{
    uint64_t from = reader->taken;

    must_hold(&reader->lane->lock);
    if (taken > from && lane_reader_lost(reader, from))
        from = taken < reader->back_until ? taken : reader->back_until;
    return taken > from ? taken - from : 0;
}

/* A trainer may release only what was published or granted, and can never take a release back. */
void
lane_reader_read(struct lane *lane, struct lane_reader *reader)
{
    struct tnd_returns *page = lane_reader_page(reader);
    uint64_t limit = *reader->given;
    /* Sequentially consistent; partner: tnd_ring_release. Either this load sees the release, or the
     * trainer sees `server_waits`. */
    uint64_t released = atomic_load(&page->released);
    uint64_t taken = atomic_load(&page->taken);
    uint64_t passed_from =
        atomic_load(&page->passed_from); /* stored before the positions it passes */
    uint64_t waiting_since_ns = atomic_load(&page->waiting_since_ns);
    uint64_t waited_ns = atomic_load_explicit(&page->waited_ns, memory_order_relaxed);

    must_hold(&lane->lock);
    released = clamp(released, reader->released, limit);
    if (released != reader->released && lane->delivery->counts_releases)
        lane->progress++;
    lane->has_new_wait |= waiting_since_ns != reader->waiting_since_ns && waiting_since_ns != 0;
    reader->released = released;
    taken = clamp(taken, released, limit);
    reader->taken_in_all += count_taken(reader, taken);
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

void
lane_free_visible(struct lane *lane, uint32_t index)
{
    enum slot_state state = lane->slots[index].state;

    must_hold(&lane->lock);
    must((state == SLOT_PUBLISHED || state == SLOT_PINNED) && lane->visible_count > 0);
    lane->visible_count--;
    lane->progress++;
    lane_free_slot(lane, index);
}

bool
lane_reader_passes(const struct lane_reader *reader)
{
    return reader->passes.epoch > 0 || reader->passes.step > 0;
}

/* Wake the filling thread only if it can do something. With several groups most releases free no
 * slot, and a trainer that waits for a published batch of another group needs no new one. */
void
lane_collect(struct lane *lane)
{
    bool all;

    must_hold(&lane->lock);
    lane->delivery->collect(lane);
    if (lane->has_new_wait &&
        (lane->delivery->hears_each_wait || lane_count_waiting(lane, &all) > 0))
        lane->progress++;
    lane->has_new_wait = false;
}

bool
lane_take_progress(struct lane *lane)
{
    bool happened;

    tnd_lock_take(&lane->lock);
    lane_collect(lane);
    happened = lane->progress != lane->progress_seen;
    lane->progress_seen = lane->progress;
    tnd_lock_release(&lane->lock);
    return happened;
}

void
lane_set_waits(struct lane *lane, bool waits)
{
    /* Partner of the store: the load in tnd_ring_release. */
    atomic_store(&lane->batches->server_waits, waits || lane->delivery->always_waits);
}

uint32_t
lane_count_waiting(const struct lane *lane, bool *ret_all)
{
    uint32_t count = 0, waiting = 0;

    must_hold(&lane->lock);
    for (uint32_t i = 0; i < lane->reader_limit; i++) {
        const struct lane_reader *reader = lane->readers[i];

        if (reader == NULL || reader->cut_off)
            continue;
        /* The page may claim a wait while batches are left to take. Only a trainer that has taken
         * all counts. */
        waiting += reader->connection != NULL && reader->waiting_since_ns != 0 &&
                   reader->taken == *reader->given;
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

    tnd_lock_take(&lane->lock);
    lane_collect(lane);
    waiting = lane_count_waiting(lane, &all);
    tnd_lock_release(&lane->lock);
    return waiting > 0;
}

bool
lane_has_sleeper(struct lane *lane)
{
    bool somebody_sleeps = false;

    must_hold(&lane->lock);
    lane->delivery->grant(lane);
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
    return somebody_sleeps;
}

void
lane_wake(struct lane *lane)
{
    must_hold(&lane->lock);
    if (lane_has_sleeper(lane))
        tnd_ring_wake(lane->batches);
}

uint64_t
lane_lowest(struct lane *lane)
{
    uint64_t lowest;

    tnd_lock_take(&lane->lock);
    lane_collect(lane);
    lowest = lane->released;
    tnd_lock_release(&lane->lock);
    return lowest;
}
