/* lane_groups.c - a lane whose batches go to each group's trainer, in order. */
#include "core/must.h"
#include "deliver/lane_private.h"

/* A slot that was taken back is free, whatever its trainer still holds from before. */
static bool
is_back(const struct lane *lane, const struct lane_slot *slot)
{
    for (uint32_t i = 0; lane->config.takes_back && i < lane->reader_limit; i++)
        if (lane->readers[i] != NULL && lane_reader_lost(lane->readers[i], slot->position))
            return true;
    return false;
}

/* The position that all replicas of the group have released. Also tells the others how far this one
 * is. The other replicas read other lanes, so their values only decide how long a slot is kept.
 * Relaxed is enough: a stale value is too low and keeps it a little longer. */
static uint64_t
released_by_group(const struct lane_reader *reader)
{
    uint64_t lowest = reader->released;

    must_hold(&reader->lane->lock);
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

/* Nobody passes over the end of the stream, or its error, even if it lies in an earlier epoch. */
static bool
is_passed(const struct lane_look *look, struct lane_until until)
{
    return look->published && !lane_is_last(look) &&
           (look->epoch < until.epoch || (look->epoch == until.epoch && look->step < until.step));
}

static void
pass_over(const struct lane *lane, struct lane_reader *reader)
{
    struct lane_look look;

    must_hold(&lane->lock);
    while (lane_look_at(lane, reader->released, &look) && is_passed(&look, reader->passes))
        reader->released++;
    if (reader->taken < reader->released)
        reader->taken = reader->released;
}

static void
collect(struct lane *lane)
{
    uint64_t lowest = UINT64_MAX;

    must_hold(&lane->lock);
    for (uint32_t i = 0; i < lane->reader_limit; i++) {
        struct lane_reader *reader = lane->readers[i];
        uint64_t released;

        if (reader == NULL)
            continue;
        if (reader->cut_off)
            continue;
        if (reader->connection != NULL)
            lane_reader_read(lane, reader);
        if (lane_reader_passes(reader))
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
        bool is_done =
            slot->state == SLOT_PINNED ||
            (slot->state == SLOT_PUBLISHED && (slot->position < lowest || is_back(lane, slot)));

        if (is_done && !is_pinned(lane, i))
            lane_free_visible(lane, i);
        else if (is_done)
            slot->state = SLOT_PINNED;
    }
}

static void
open_reader(struct lane_reader *reader, uint64_t position)
{
    struct lane *lane = reader->lane;

    reader->given = &lane->published;
    reader->released = reader->taken = position > lane->released ? position : lane->released;
}

static void
reset_reader(struct lane_reader *reader)
{
    must_hold(&reader->lane->lock);
    (void)reader; /* the trainer goes on where the one before was */
}

static void
attach_reader(struct lane_reader *reader)
{
    must_hold(&reader->lane->lock);
    (void)reader;
}

static void
welcome(const struct lane_reader *reader, struct tnd_welcome *welcome)
{
    struct lane_look look;

    welcome->position = reader->released;
    if (welcome->first_step == UINT64_MAX && lane_look_at(reader->lane, reader->released, &look)) {
        welcome->first_epoch = look.epoch;
        welcome->first_step = look.step;
    }
}

static bool
take_holdings(struct lane_reader *reader)
{
    must_hold(&reader->lane->lock);
    (void)reader; /* the group's next trainer finds them */
    return false;
}

static void
do_nothing(struct lane *lane)
{
    (void)lane;
}

static uint64_t
owes_from(const struct lane_reader *reader)
{
    return reader->released;
}

/* As the slowest trainer. One that was cut off no longer holds the lane back. */
static void
count_taken(const struct lane *lane, struct lane_stats *stats)
{
    must_hold(&lane->lock);
    for (uint32_t i = 0; i < lane->reader_limit; i++) {
        const struct lane_reader *reader = lane->readers[i];

        if (reader != NULL && !reader->cut_off && reader->taken < stats->taken)
            stats->taken = reader->taken;
    }
}

static uint64_t
count_released(const struct lane_reader *reader)
{
    return reader->released;
}

const struct delivery_ops delivery_groups = {
    .number = TND_DELIVER_LANE,
    .span = UINT64_MAX,
    .open_reader = open_reader,
    .reset_reader = reset_reader,
    .attach_reader = attach_reader,
    .welcome = welcome,
    .take_holdings = take_holdings,
    .tell_holdings = do_nothing,
    .collect = collect,
    .published = do_nothing,
    .grant = do_nothing,
    .owes_from = owes_from,
    .count_taken = count_taken,
    .count_released = count_released,
    .end = do_nothing,
};
