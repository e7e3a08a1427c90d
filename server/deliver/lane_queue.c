/* lane_queue.c - a lane whose batches go to the reader that asks first.
 *
 * A trainer raises `wanted` in its page, the server names slots in the trainer's line and counts
 * `granted` up. A batch has one holder. The end of an epoch goes once to each reader.
 */
#include <inttypes.h>
#include <string.h>

#include "core/log.h"
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

/* The end of an epoch is done when every attached reader has given it back, but for those that came
 * after others had it. */
static bool
end_is_done(const struct lane *lane, uint32_t index)
{
    const struct lane_slot *slot = &lane->slots[index];
    uint64_t waited_for = all_lines(lane);

    must_hold(&lane->lock);
    for (uint32_t i = 0; i < lane->reader_limit; i++)
        if ((waited_for >> i & 1) != 0 && slot->position < lane->readers[i]->begins_at)
            waited_for &= ~(UINT64_C(1) << i);
    if (waited_for == 0 || (waited_for & ~slot->seen) != 0)
        return false;
    for (uint32_t i = 0; i < lane->reader_limit; i++)
        if ((waited_for >> i & 1) != 0 &&
            !lane_reader_has_returned(lane->readers[i], index, slot->position))
            return false;
    return true;
}

/* A queue's batch is done when its holder has given it back. Anything after the last epoch stays,
 * for readers that come later. */
static bool
queue_slot_is_done(const struct lane *lane, uint32_t index)
{
    const struct lane_slot *slot = &lane->slots[index];

    if (slot->passed)
        return true;
    if (slot->kind == TND_SLOT_BATCH)
        return slot->holder != NOBODY &&
               lane_reader_has_returned(lane->readers[slot->holder], index, slot->position);
    return slot->kind == TND_SLOT_END && end_is_done(lane, index);
}

/* The lowest position of a batch that is not given back, or what is published. */
static uint64_t
free_batches(struct lane *lane)
{
    uint64_t lowest = lane->published;

    must_hold(&lane->lock);
    for (uint32_t i = 0; i < lane->config.slots; i++) {
        if (lane->slots[i].state != SLOT_PUBLISHED ||
            (lane->slots[i].kind != TND_SLOT_BATCH && !lane->slots[i].passed))
            continue;
        if (queue_slot_is_done(lane, i))
            lane_free_visible(lane, i);
        else if (lane->slots[i].position < lowest)
            lowest = lane->slots[i].position;
    }
    return lowest;
}

/* The end of an epoch stays while a batch before it is out: if its holder dies, the reader that
 * gets the batch then gets the end after it. And the place of the queue is then before the end. */
static void
collect_queue(struct lane *lane)
{
    uint64_t lowest;

    must_hold(&lane->lock);
    for (uint32_t i = 0; i < lane->reader_limit; i++)
        if (lane->readers[i] != NULL && lane->readers[i]->connection != NULL)
            lane_reader_read(lane, lane->readers[i]);
    lane->released = lowest = free_batches(lane);
    for (uint32_t i = 0; i < lane->config.slots; i++) {
        uint64_t position = lane->slots[i].position;

        if (lane->slots[i].state != SLOT_PUBLISHED || lane->slots[i].kind == TND_SLOT_BATCH)
            continue;
        if (position < lowest && queue_slot_is_done(lane, i))
            lane_free_visible(lane, i);
        else if (position < lane->released)
            lane->released = position;
    }
}

/* Has the reader been given the end of an epoch after this position? */
static bool
is_past(const struct lane *lane, uint32_t reader, uint64_t position)
{
    for (uint32_t i = 0; i < lane->config.slots; i++)
        if (lane->slots[i].state == SLOT_PUBLISHED && lane->slots[i].kind == TND_SLOT_END &&
            lane->slots[i].position > position && (lane->slots[i].seen >> reader & 1) != 0)
            return true;
    return false;
}

/* The next slot for a reader of a queue: the lowest of the batches without a holder and the ends
 * that the reader has not been given. It gets an end also while batches before that are held, by
 * others or by itself: a holder may wait for this reader. If such a holder dies, its batch is for
 * readers that have yet to get that end. No reader gets a batch after an end that it has not been
 * given, nor one before an end that it has. */
static int64_t
find_grant(const struct lane *lane, uint32_t reader)
{
    int64_t found = NOBODY;

    must_hold(&lane->lock);
    for (uint32_t i = 0; i < lane->config.slots; i++) {
        const struct lane_slot *slot = &lane->slots[i];
        bool wanted;

        if (slot->state != SLOT_PUBLISHED || slot->passed ||
            (found >= 0 && slot->position > lane->slots[found].position))
            continue;
        if (slot->kind == TND_SLOT_BATCH)
            wanted = slot->holder == NOBODY && !is_past(lane, reader, slot->position);
        else
            wanted = (slot->seen >> reader & 1) == 0 &&
                     slot->position >= lane->readers[reader]->begins_at;
        if (wanted)
            found = i;
    }
    return found;
}

/* The reader begins with this position: the ends before it are not for it. */
static void
pass_old_ends(struct lane *lane, uint32_t index, uint64_t position)
{
    struct lane_reader *reader = lane->readers[index];

    must_hold(&lane->lock);
    for (uint32_t i = 0; i < lane->config.slots && reader->begins_at > 0; i++) {
        struct lane_slot *slot = &lane->slots[i];

        if (slot->state != SLOT_PUBLISHED || slot->kind != TND_SLOT_END ||
            slot->position >= position)
            continue;
        slot->seen |= UINT64_C(1) << index;
        atomic_store(&tnd_returns_slots(lane_reader_page(reader))[i], slot->position + 1);
    }
    reader->begins_at = 0;
}

static bool
grant_one(struct lane *lane, uint32_t index)
{
    struct lane_reader *reader = lane->readers[index];
    struct tnd_line *line = lane_line(lane, reader->line);
    int64_t found = find_grant(lane, index);
    struct lane_slot *slot;

    must_hold(&lane->lock);
    if (found < 0)
        return false;
    slot = &lane->slots[found];
    must_in_debug(slot->holder == NOBODY && slot->state == SLOT_PUBLISHED);
    must_in_debug(reader->granted - reader->released < lane->config.slots);
    slot->seen |= UINT64_C(1) << index;
    slot->was_given = true;
    pass_old_ends(lane, index, slot->position);
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

/* Nobody who is attached takes this batch any more: its holder died, and all of them have been
 * given the end of its epoch. */
static bool
is_left_behind(const struct lane *lane, uint32_t index)
{
    const struct lane_slot *slot = &lane->slots[index];
    bool is_over = false;

    if (slot->state != SLOT_PUBLISHED || slot->kind != TND_SLOT_BATCH || slot->passed ||
        slot->holder != NOBODY || slot->visits == 0)
        return false;
    for (uint32_t i = 0; i < lane->config.slots; i++)
        is_over |= lane->slots[i].state == SLOT_PUBLISHED && lane->slots[i].kind == TND_SLOT_END &&
                   lane->slots[i].was_given && lane->slots[i].position > slot->position;
    for (uint32_t i = 0; i < lane->reader_limit && is_over; i++)
        if (lane->readers[i] != NULL && lane->readers[i]->connection != NULL)
            is_over = is_past(lane, i, slot->position);
    return is_over;
}

static int64_t
find_left_behind(const struct lane *lane)
{
    int64_t found = NOBODY;

    for (uint32_t i = 0; i < lane->config.slots; i++)
        if (is_left_behind(lane, i) &&
            (found < 0 || lane->slots[i].position < lane->slots[found].position))
            found = i;
    return found;
}

static uint32_t
tell_left_behind(const struct lane *lane, const char *what)
{
    int64_t found = find_left_behind(lane);
    uint32_t count = 0;

    must_hold(&lane->lock);
    for (uint32_t i = 0; i < lane->config.slots; i++)
        count += is_left_behind(lane, i);
    if (count > 0)
        tnd_log(TND_LOG_WARNING, "queue",
                "%s: %" PRIu32 " batch%s held by readers that left, from epoch %" PRIu64
                ", step %" PRIu64 " on, and no other reader is still in that epoch: %s",
                lane->name, count, count == 1 ? " was" : "es were", lane->slots[found].epoch,
                lane->slots[found].step, what);
    return count;
}

/* A newcomer to a queue does not get the ends that others have been given, unless it takes a batch
 * before that whose holder has died. */
static void
begin_reader(struct lane *lane, uint32_t reader)
{
    uint64_t begins_at = 0;

    must_in_debug(lane->readers[reader] != NULL);
    must_hold(&lane->lock);
    for (uint32_t i = 0; i < lane->config.slots; i++)
        if (lane->slots[i].state == SLOT_PUBLISHED && lane->slots[i].kind == TND_SLOT_END &&
            lane->slots[i].seen != 0 && lane->slots[i].position >= begins_at)
            begins_at = lane->slots[i].position + 1;
    lane->readers[reader]->begins_at = begins_at;
}

/* The ring is full while a reader waits. Do without the oldest batch that is left behind, and let
 * readers that have not asked for anything begin after the ends that others have been given. */
static bool
make_room(struct lane *lane)
{
    int64_t found = find_left_behind(lane);
    uint64_t progress = lane->progress;

    must_hold(&lane->lock);
    for (uint32_t i = 0; i < lane->reader_limit; i++) {
        const struct lane_reader *reader = lane->readers[i];

        if (reader != NULL && reader->connection != NULL && reader->granted == 0 &&
            atomic_load(&lane_reader_page(reader)->wanted) == 0)
            begin_reader(lane, i);
    }
    collect_queue(lane);
    if (found >= 0 && lane->progress == progress) {
        (void)tell_left_behind(lane, "the first of these is given up, since its slot is needed");
        lane_free_visible(lane, (uint32_t)found);
        collect_queue(lane);
    }
    return lane->progress != progress;
}

/* Returns whether some reader has to wait. */
static bool
grant_round(struct lane *lane)
{
    bool waits = false;

    must_hold(&lane->lock);
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
        waits |= wanted > reader->granted;
    }
    return waits;
}

static bool
waits_for_grant(const struct lane_reader *reader)
{
    return reader != NULL && reader->connection != NULL &&
           atomic_load(&lane_reader_page(reader)->wanted) > reader->granted;
}

static bool
is_in_vain(const struct lane *lane)
{
    bool is = false;

    for (uint32_t i = 0; i < lane->reader_limit; i++)
        is |= waits_for_grant(lane->readers[i]);
    return is;
}

/* Those that wait while the readers hold all slots may have one that another needs. */
static void
tell_starving(struct lane *lane)
{
    bool is_full = !lane_can_publish(lane);

    must_hold(&lane->lock);
    for (uint32_t i = 0; i < lane->reader_limit; i++) {
        const struct lane_reader *reader = lane->readers[i];
        _Atomic uint32_t *starves;
        bool is_in_vain = is_full && waits_for_grant(reader);

        if (reader == NULL || reader->connection == NULL)
            continue;
        starves = &lane_line(lane, reader->line)->starves;
        if (atomic_load(starves) != is_in_vain)
            atomic_store(starves, is_in_vain);
    }
}

static void
grant_all(struct lane *lane)
{
    must_hold(&lane->lock);
    if (lane->grants_no_more)
        return;
    while (grant_round(lane) && !lane_can_publish(lane) && make_room(lane))
        ;
    tell_starving(lane);
}

/* The hub's thread. It frees the returned slots first, so that one call both makes room and
 * grants. */
void
lane_grant(struct lane *lane)
{
    uint64_t progress;
    bool happened;

    tnd_lock_take(&lane->lock);
    progress = lane->progress;
    lane_collect(lane);
    lane_wake(lane);
    happened = lane->progress != progress;
    tnd_lock_release(&lane->lock);
    if (happened && lane->config.wakeup != NULL)
        wakeup_signal(lane->config.wakeup);
}

void
lane_note_ending(struct lane *lane)
{
    tnd_lock_take(&lane->lock);
    lane->delivery->end(lane);
    lane->grants_no_more = true;
    tnd_lock_release(&lane->lock);
}

void
lane_set_visited(struct lane *lane, const uint8_t *bits, uint64_t bit_count)
{
    must_in_debug(bit_count <= TND_SLOTS_MAX);
    tnd_lock_take(&lane->lock);
    memcpy(lane->visited, bits, (bit_count + 7) / 8);
    lane->visited_count = bit_count;
    tnd_lock_release(&lane->lock);
}

static void
set_bit(struct lane_queue_state *state, uint64_t bit, bool is_set)
{
    uint8_t mask = (uint8_t)(1u << bit % 8);

    must_in_debug(bit < TND_SLOTS_MAX);
    state->bits[bit / 8] =
        (uint8_t)(is_set ? state->bits[bit / 8] | mask : state->bits[bit / 8] & ~mask);
}

/* Published positions that no longer have a slot are given back. Positions yet to come may have
 * been visited before the queue started here. */
static void
tell_visited(const struct lane *lane, struct lane_queue_state *state)
{
    uint64_t told = lane->visited_count > lane->published ? lane->visited_count : lane->published;

    must_hold(&lane->lock);
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

    tnd_lock_take(&lane->lock);
    lane_collect(lane);
    found = lane_look_at(lane, lane->released, &look);
    tell_visited(lane, &state);
    tnd_lock_release(&lane->lock);
    if (!found)
        return false;
    state.epoch = look.epoch;
    state.step = look.step;
    *ret_state = state;
    return true;
}

/* A queue's readers count what they were given, not positions. */
static uint64_t
count_without_holder(const struct lane *lane)
{
    uint64_t count = 0;

    for (uint32_t i = 0; i < lane->config.slots; i++) {
        const struct lane_slot *slot = &lane->slots[i];

        count += slot->state == SLOT_PUBLISHED && !slot->passed && slot->kind == TND_SLOT_BATCH &&
                 slot->holder == NOBODY;
    }
    return count;
}

/* How many batches of a queue the reader has been granted and not given back. */
static uint64_t
count_held(const struct lane_reader *reader)
{
    const struct lane *lane = reader->lane;
    uint64_t count = 0;

    must_hold(&reader->lane->lock);
    for (uint32_t i = 0; i < lane->config.slots; i++)
        count += lane->slots[i].state == SLOT_PUBLISHED && lane->slots[i].kind == TND_SLOT_BATCH &&
                 lane->slots[i].holder == (int)reader->line - 1;
    return count;
}

/* In what was given, all but what is held. Batches go back in any order. */
static uint64_t
count_released(const struct lane_reader *reader)
{
    uint64_t ahead = reader->granted - reader->taken, held;

    if (reader->connection == NULL)
        return reader->released;
    held = count_held(reader);
    held = held > ahead ? held - ahead : 0;
    return reader->taken - (held < reader->taken ? held : reader->taken);
}

static void
open_reader(struct lane_reader *reader, uint64_t position)
{
    (void)position;
    reader->given = &reader->granted;
}

static void
reset_reader(struct lane_reader *reader)
{
    struct lane *lane = reader->lane;

    must_hold(&reader->lane->lock);
    reader->released = reader->taken = reader->granted = 0;
    atomic_store(&lane_line(lane, reader->line)->granted, 0);
    atomic_store(&lane_line(lane, reader->line)->starves, 0);
}

static void
attach_reader(struct lane_reader *reader)
{
    must_hold(&reader->lane->lock);
    begin_reader(reader->lane, reader->line - 1);
}

static void
welcome(const struct lane_reader *reader, struct tnd_welcome *welcome)
{
    (void)reader;
    welcome->position = 0;
}

/* The batches that it held are offered again. */
static bool
take_holdings(struct lane_reader *reader)
{
    struct lane *lane = reader->lane;
    bool held = false;

    must_hold(&reader->lane->lock);
    for (uint32_t i = 0; i < lane->config.slots; i++) {
        struct lane_slot *slot = &lane->slots[i];

        if (slot->state == SLOT_PUBLISHED && slot->kind == TND_SLOT_BATCH &&
            slot->holder == (int)reader->line - 1) {
            slot->holder = NOBODY;
            slot->visits++;
            held = true;
        }
        /* The line's next reader is another trainer, which has seen no end of an epoch. */
        slot->seen &= ~(UINT64_C(1) << (reader->line - 1));
    }
    return held;
}

static void
tell_holdings(struct lane *lane)
{
    must_hold(&lane->lock);
    if (!lane->grants_no_more)
        (void)tell_left_behind(lane, "the next reader that comes takes them");
}

/* Anything may go to any reader. */
static uint64_t
owes_from(const struct lane_reader *reader)
{
    return reader->lane->released;
}

static void
count_taken(const struct lane *lane, struct lane_stats *stats)
{
    must_hold(&lane->lock);
    stats->taken -= count_without_holder(lane);
    stats->starves = stats->trainer_waits && !lane_can_publish(lane) && is_in_vain(lane);
}

static void
end(struct lane *lane)
{
    must_hold(&lane->lock);
    if (!lane->grants_no_more)
        (void)tell_left_behind(lane, "none has come for them");
}

const struct delivery_ops delivery_queue = {
    .number = TND_DELIVER_QUEUE,
    /* A queue's place describes at most this number of positions. */
    .span = TND_SLOTS_MAX,
    .counts_releases = true,
    .hears_each_wait = true,
    /* The hub's thread grants the readers' wishes. */
    .always_waits = true,
    .open_reader = open_reader,
    .reset_reader = reset_reader,
    .attach_reader = attach_reader,
    .welcome = welcome,
    .take_holdings = take_holdings,
    .tell_holdings = tell_holdings,
    .collect = collect_queue,
    .published = lane_collect, /* frees the slots that were visited before */
    .grant = grant_all,
    .owes_from = owes_from,
    .count_taken = count_taken,
    .count_released = count_released,
    .end = end,
};
