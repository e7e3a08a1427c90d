/* lane_queue.c - a lane whose batches go to the reader that asks first.
 *
 * A trainer raises `wanted` in its page, the server names slots in the trainer's line and counts
 * `granted` up. A batch has one holder. The end of an epoch goes once to each reader.
 */
#include <string.h>

#include "deliver/lane_private.h"

static uint64_t
all_lines(const struct lane *lane)
{
    uint64_t lines = 0;

    for (uint32_t i = 0; i < lane->reader_limit; i++)
        if (lane->readers[i] != NULL && lane->readers[i]->connection != NULL)
            lines |= UINT64_C(1) << i;
    return lines;
}

/* A queue's batch is done when its holder has given it back. The end of an epoch is done when every
 * attached reader has given it back. Anything after the last epoch stays, for readers that come
 * later. */
static bool
queue_slot_is_done(const struct lane *lane, uint32_t index)
{
    const struct lane_slot *slot = &lane->slots[index];
    uint64_t waited_for;

    if (slot->passed)
        return true;
    if (slot->kind == TND_SLOT_BATCH)
        return slot->holder != NOBODY &&
               lane_reader_has_returned(lane->readers[slot->holder], index, slot->position);
    if (slot->kind != TND_SLOT_END)
        return false;
    waited_for = all_lines(lane);
    if (waited_for == 0 || (waited_for & ~slot->seen) != 0)
        return false;
    for (uint32_t i = 0; i < lane->reader_limit; i++)
        if ((waited_for >> i & 1) != 0 &&
            !lane_reader_has_returned(lane->readers[i], index, slot->position))
            return false;
    return true;
}

void
lane_collect_queue(struct lane *lane)
{
    uint64_t lowest = lane->published;

    for (uint32_t i = 0; i < lane->reader_limit; i++)
        if (lane->readers[i] != NULL && lane->readers[i]->connection != NULL)
            lane_reader_read(lane, lane->readers[i]);
    for (uint32_t i = 0; i < lane->config.slots; i++) {
        if (lane->slots[i].state != SLOT_PUBLISHED)
            continue;
        if (queue_slot_is_done(lane, i))
            lane_free_visible(lane, i);
        else if (lane->slots[i].position < lowest)
            lowest = lane->slots[i].position;
    }
    lane->released = lowest;
}

/* The next slot for a reader of a queue: the lowest of the batches without a holder and the ends
 * that the reader has not been given. An end is given only when every batch before it is given
 * back: until then a holder may die and its batch be offered again. No reader gets a batch after an
 * end that it has not been given. */
static int64_t
find_grant(const struct lane *lane, uint32_t reader)
{
    int64_t found = NOBODY;

    for (uint32_t i = 0; i < lane->config.slots; i++) {
        const struct lane_slot *slot = &lane->slots[i];
        bool wanted;

        if (slot->state != SLOT_PUBLISHED || slot->passed)
            continue;
        if (slot->kind == TND_SLOT_BATCH)
            wanted = slot->holder == NOBODY;
        else
            wanted = (slot->seen >> reader & 1) == 0;
        if (wanted && (found < 0 || slot->position < lane->slots[found].position))
            found = i;
    }
    if (found < 0 || lane->slots[found].kind == TND_SLOT_BATCH)
        return found;
    for (uint32_t i = 0; i < lane->config.slots; i++)
        if (lane->slots[i].state == SLOT_PUBLISHED && lane->slots[i].kind == TND_SLOT_BATCH &&
            lane->slots[i].position < lane->slots[found].position)
            return NOBODY;
    return found;
}

static bool
grant_one(struct lane *lane, uint32_t index)
{
    struct lane_reader *reader = lane->readers[index];
    struct tnd_line *line = lane_line(lane, reader->line);
    int64_t found = find_grant(lane, index);
    struct lane_slot *slot;

    if (found < 0)
        return false;
    slot = &lane->slots[found];
    slot->seen |= UINT64_C(1) << index;
    if (slot->kind == TND_SLOT_BATCH) {
        slot->holder = (int)index;
        lane_slot_memory(lane, (uint32_t)found)->visits = slot->visits;
    }
    atomic_store_explicit(
        &lane_line_slots(lane, reader->line)[reader->granted % lane->config.slots], (uint32_t)found,
        memory_order_relaxed);
    reader->granted++;
    /* Partner: the acquire load in tnd_ring_ready. It releases the relaxed entry above and the
     * slot's `visits`. */
    atomic_store(&line->granted, reader->granted);
    return true;
}

void
lane_grant_all(struct lane *lane)
{
    if (lane->grants_no_more)
        return;
    for (uint32_t i = 0; i < lane->reader_limit; i++) {
        struct lane_reader *reader = lane->readers[i];
        uint64_t wanted;

        if (reader == NULL || reader->connection == NULL)
            continue;
        wanted = atomic_load(&lane_reader_page(reader)->wanted);
        /* No more grants at a time than slots, whatever the page says: the line's ring has no more
         * entries. */
        while (wanted > reader->granted &&
               reader->granted - reader->released < lane->config.slots && grant_one(lane, i))
            ;
    }
}

/* The hub's thread. It frees the returned slots first, so that one call both makes room and
 * grants. */
void
lane_grant(struct lane *lane)
{
    uint64_t progress;
    bool happened;

    pthread_mutex_lock(&lane->lock);
    progress = lane->progress;
    lane_collect(lane);
    lane_wake(lane);
    happened = lane->progress != progress;
    pthread_mutex_unlock(&lane->lock);
    if (happened && lane->config.wakeup != NULL)
        wakeup_signal(lane->config.wakeup);
}

void
lane_note_ending(struct lane *lane)
{
    pthread_mutex_lock(&lane->lock);
    lane->grants_no_more = true;
    pthread_mutex_unlock(&lane->lock);
}

/* A newcomer to a queue does not get the ends that others have been given. Marking them as returned
 * keeps queue_slot_is_done from waiting for it. */
void
lane_skip_old_ends(struct lane *lane, uint32_t index)
{
    for (uint32_t i = 0; i < lane->config.slots; i++)
        if (lane->slots[i].state == SLOT_PUBLISHED && lane->slots[i].kind == TND_SLOT_END &&
            lane->slots[i].seen != 0) {
            lane->slots[i].seen |= UINT64_C(1) << index;
            atomic_store(&tnd_returns_slots(lane_reader_page(lane->readers[index]))[i],
                         lane->slots[i].position + 1);
        }
}

void
lane_set_visited(struct lane *lane, const uint8_t *bits, uint64_t bit_count)
{
    pthread_mutex_lock(&lane->lock);
    memcpy(lane->visited, bits, (bit_count + 7) / 8);
    lane->visited_count = bit_count;
    pthread_mutex_unlock(&lane->lock);
}

static void
set_bit(struct lane_queue_state *state, uint64_t bit, bool is_set)
{
    uint8_t mask = (uint8_t)(1u << bit % 8);

    state->bits[bit / 8] =
        (uint8_t)(is_set ? state->bits[bit / 8] | mask : state->bits[bit / 8] & ~mask);
}

/* Published positions that no longer have a slot are given back. Positions yet to come may have
 * been visited before the queue started here. */
static void
tell_visited(const struct lane *lane, struct lane_queue_state *state)
{
    uint64_t told = lane->visited_count > lane->published ? lane->visited_count : lane->published;

    state->bit_count = (uint32_t)(told - lane->released);
    for (uint64_t p = lane->released; p < lane->published; p++)
        set_bit(state, p - lane->released, true);
    for (uint64_t p = lane->published; p < told; p++)
        set_bit(state, p - lane->released, (lane->visited[p / 8] >> p % 8 & 1) != 0);
    for (uint32_t i = 0; i < lane->config.slots; i++)
        if (lane->slots[i].state == SLOT_PUBLISHED)
            set_bit(state, lane->slots[i].position - lane->released, false);
}

bool
lane_queue_state(struct lane *lane, struct lane_queue_state *ret_state)
{
    struct lane_queue_state state = { 0 };
    struct lane_look look;
    bool found;

    pthread_mutex_lock(&lane->lock);
    lane_collect(lane);
    found = lane_look_at(lane, lane->released, &look);
    tell_visited(lane, &state);
    pthread_mutex_unlock(&lane->lock);
    if (!found)
        return false;
    state.epoch = look.epoch;
    state.step = look.step;
    *ret_state = state;
    return true;
}
