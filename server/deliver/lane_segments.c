/* lane_segments.c - segments for batches that do not fit into the arena.
 *
 * A trainer learns of a segment over its socket and maps it. The announcement is posted before a
 * slot that names the segment is published, so the trainer always finds it.
 */
#include <stdlib.h>

#include "core/memory.h"
#include "core/numa.h"
#include "core/status.h"
#include "deliver/lane_private.h"

/* Segments that stay mapped while they are free. Creating one costs page faults in every process.
 * Sizes are rounded up, so that a slightly larger batch still fits. */
enum { KEPT_MAX = 2 };
#define ROUND_BYTES ((uint64_t)1 << 20)

static void
announce_segment(const struct own_segment *own, struct connection *connection)
{
    struct tnd_message_head head = {
        .type = TND_SEGMENT,
        .id = own->id,
        .total = own->memory.segment_bytes,
    };

    connection_post(connection, head, NULL, &own->memory.read_descriptor, 1);
}

/* Tell every attached trainer, and make it look at its socket. */
static void
tell_all(struct lane *lane, const struct own_segment *own, bool is_new)
{
    struct tnd_message_head retired = { .type = TND_RETIRE, .id = own->id };

    must_hold(&lane->lock);
    for (uint32_t i = 0; i < lane->reader_limit; i++) {
        struct lane_reader *reader = lane->readers[i];

        if (reader == NULL || reader->connection == NULL)
            continue;
        if (is_new)
            announce_segment(own, reader->connection);
        else
            connection_post(reader->connection, retired, NULL, NULL, 0);
    }
    tnd_ring_notify(lane->batches);
}

/* Trainers keep their mapping until they read the message. The memory goes when the last one unmaps
 * it. */
static void
retire_segment(struct lane *lane, uint32_t index)
{
    struct own_segment *own = lane->own[index];

    must_in_debug(index < lane->own_count && !own->busy);
    must_hold(&lane->lock);
    tell_all(lane, own, false);
    tnd_segment_close(&own->memory);
    free(own);
    lane->own[index] = lane->own[--lane->own_count];
}

/* The smallest free segment that is large enough, but not one four times too large. */
static struct own_segment *
find_free(struct lane *lane, uint64_t bytes)
{
    struct own_segment *found = NULL;

    for (uint32_t i = 0; i < lane->own_count; i++) {
        struct own_segment *own = lane->own[i];

        if (!own->busy && own->memory.segment_bytes >= bytes &&
            own->memory.segment_bytes / 4 <= bytes + ROUND_BYTES &&
            (found == NULL || own->memory.segment_bytes < found->memory.segment_bytes))
            found = own;
    }
    return found;
}

static void
retire_free_ones(struct lane *lane, uint32_t keep)
{
    uint32_t free_count = 0;

    must_hold(&lane->lock);
    /* Backwards, since retire_segment moves the last one into the gap. */
    for (uint32_t i = lane->own_count; i-- > 0;)
        if (!lane->own[i]->busy && ++free_count > keep)
            retire_segment(lane, i);
}

uint64_t
lane_own_all_bytes(const struct lane *lane)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < lane->own_count; i++)
        bytes += lane->own[i]->memory.segment_bytes;
    return bytes;
}

static uint64_t
round_up(uint64_t bytes, uint64_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

bool
lane_own_is_growth(const struct lane *lane, uint64_t bytes)
{
    uint64_t taken = lane->arena.arena_bytes + lane->own_bytes;

    return taken < lane->config.most_bytes &&
           round_up(bytes, ROUND_BYTES) <= lane->config.most_bytes - taken;
}

/* The size of a new segment: rounded up for reuse, but no larger than the limit leaves. */
static tundish_status
choose_bytes(const struct lane *lane, uint64_t wanted, uint64_t *ret_bytes)
{
    uint64_t limit = lane->config.limit_bytes;
    uint64_t taken = lane->arena.arena_bytes + lane_own_all_bytes(lane);
    uint64_t left = limit == 0 ? UINT64_MAX : limit > taken ? limit - taken : 0;

    if (round_up(wanted, 4096) > left)
        return tnd_fail(TUNDISH_E_MEMORY,
                        "a batch needs %llu bytes, but memory_limit leaves the lane %llu: raise "
                        "it, or make batches smaller",
                        (unsigned long long)wanted, (unsigned long long)left);
    *ret_bytes = round_up(wanted, ROUND_BYTES) <= left ? round_up(wanted, ROUND_BYTES)
                                                       : round_up(wanted, 4096);
    return TUNDISH_OK;
}

tundish_status
lane_own_take(struct lane *lane, uint64_t bytes, struct own_segment **ret_own)
{
    struct own_segment *own = find_free(lane, bytes);
    tundish_status status;

    must_hold(&lane->lock);
    if (own == NULL) {
        /* The free ones do not fit. Their memory is better used for this one. */
        retire_free_ones(lane, 0);
        status = choose_bytes(lane, bytes, &bytes);
        if (status != TUNDISH_OK)
            return status;
        own = tnd_zalloc(1, sizeof *own);
        status = tnd_segment_create(bytes, lane->config.memory == LANE_MEMFD,
                                    lane->config.huge_pages, &own->memory);
        if (status != TUNDISH_OK) {
            free(own);
            return status;
        }
        if (lane->memory_node >= 0)
            tnd_numa_move(own->memory.bytes, bytes, (uint32_t)lane->memory_node);
        /* Never reused: a trainer may still hold a mapping of an older segment. */
        own->id = ++lane->own_id;
        lane->own = tnd_realloc(lane->own, lane->own_count + 1, sizeof(struct own_segment *));
        lane->own[lane->own_count++] = own;
        tell_all(lane, own, true);
    }
    own->busy = true;
    lane->own_bytes += own->memory.segment_bytes;
    lane->own_total++;
    *ret_own = own;
    return TUNDISH_OK;
}

void
lane_own_put(struct lane *lane, struct own_segment *own)
{
    must_in_debug(own->busy && lane->own_bytes >= own->memory.segment_bytes);
    must_hold(&lane->lock);
    own->busy = false;
    lane->own_bytes -= own->memory.segment_bytes;
    retire_free_ones(lane, KEPT_MAX);
}

void
lane_own_announce(struct lane *lane, struct connection *connection)
{
    must_hold(&lane->lock);
    for (uint32_t i = 0; i < lane->own_count; i++)
        announce_segment(lane->own[i], connection);
}

void
lane_own_close_all(struct lane *lane)
{
    for (uint32_t i = 0; i < lane->own_count; i++) {
        tnd_segment_close(&lane->own[i]->memory);
        free(lane->own[i]);
    }
    free(lane->own);
    lane->own = NULL;
    lane->own_count = 0;
}
