/* lane_reserve.c - room for batches, reserved in any order. */
#include "deliver/lane.h"

#include <inttypes.h>

#include "core/log.h"
#include "core/must.h"
#include "core/status.h"
#include "deliver/lane_private.h"

/* Bytes the payload takes, each buffer aligned; never 0, so that empty buffers have an
 * address as well. */
static uint64_t
payload_bytes(const struct slot *slot)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < slot->buffer_count; i++)
        bytes += lane_round_up(slot->buffers[i].stored_bytes, TND_BUFFER_ALIGN);
    return bytes > 0 ? bytes : TND_BUFFER_ALIGN;
}

/* A segment for the first position that is not published; later ones can wait. While the lane may
 * grow it gets one at once. Beyond that it gets one when a trainer waits, or for a batch larger
 * than the arena while no other such segment is in use. A trainer that waits may block the others'
 * releases, so it must not wait for them. While some trainer can still give back a batch, a refusal
 * is not an error. */
static tundish_status
reserve_own(struct lane *lane, struct slot *slot, uint64_t bytes, struct lane_slot *book)
{
    bool all_wait;
    bool is_awaited = lane_count_waiting(lane, &all_wait) > 0 || slot->is_awaited;
    bool is_due = is_awaited || (bytes > lane->arena.arena_bytes && lane->own_bytes <= bytes);
    tundish_status status;

    must_hold(&lane->lock);
    if (slot->position != lane->published)
        return TUNDISH_E_TIMEOUT;
    slot->lacks_room = !is_awaited;
    if (!is_due && !lane_own_is_growth(lane, bytes))
        return TUNDISH_E_TIMEOUT;
    status = lane_own_take(lane, bytes, &book->own);
    if (status != TUNDISH_E_MEMORY ||
        (is_due && all_wait && (is_awaited || lane->visible_count == 0)))
        return status;
    /* The caller retries often. Warn once for each position. */
    if (lane->refused_position != slot->position)
        tnd_log(TND_LOG_WARNING, "lane",
                "%s: step %" PRIu64 " waits until trainers release batches: %s", lane->name,
                slot->step, tnd_error_text());
    lane->refused_position = slot->position;
    return TUNDISH_E_TIMEOUT;
}

static tundish_status
reserve_payload(struct lane *lane, struct slot *slot, struct lane_slot *book)
{
    uint64_t bytes = payload_bytes(slot);

    must_hold(&lane->lock);
    if (lane->config.max_batch_bytes != 0 && bytes > lane->config.max_batch_bytes)
        return tnd_fail(TUNDISH_E_MEMORY,
                        "%s: the batch of epoch %" PRIu64 ", step %" PRIu64 " needs %" PRIu64
                        " bytes, but deliver.max_batch_bytes is %" PRIu64
                        ": raise it, or make batches smaller",
                        lane->name, slot->epoch, slot->step, bytes, lane->config.max_batch_bytes);
    if (arena_take(&lane->arena, bytes, &book->arena_offset)) {
        book->in_arena = true;
        return TUNDISH_OK;
    }
    return reserve_own(lane, slot, bytes, book);
}

/* Tell the caller where each buffer is. */
static void
hand_out(struct lane *lane, const struct lane_slot *book, struct slot *slot)
{
    uint8_t *next = book->own != NULL
                        ? book->own->memory.bytes
                        : lane->segment.bytes + lane->payload_offset + book->arena_offset;

    for (uint32_t i = 0; i < slot->buffer_count; i++) {
        slot->buffers[i].data = next;
        next += lane_round_up(slot->buffers[i].stored_bytes, TND_BUFFER_ALIGN);
    }
}

/* The caller has checked has_slot, so a free slot exists. */
static uint32_t
find_free_slot(const struct lane *lane)
{
    uint32_t index = 0;

    while (lane->slots[index].state != SLOT_FREE) {
        index++;
        must(index < lane->config.slots);
    }
    return index;
}

/* Each unpublished position below this one keeps a slot for itself. So a later one can never take
 * the last slot that an earlier one needs. */
static bool
has_slot(const struct lane *lane, uint64_t position)
{
    return position - lane->published < lane->config.slots - lane->visible_count &&
           position - lane->released < lane->delivery->span;
}

bool
lane_can_publish(const struct lane *lane)
{
    return has_slot(lane, lane->published);
}

bool
lane_has_slot(struct lane *lane, uint64_t position)
{
    bool has;

    tnd_lock_take(&lane->lock);
    lane_collect(lane);
    has = has_slot(lane, position);
    tnd_lock_release(&lane->lock);
    return has;
}

/* Are all positions before this one that are not published reserved? */
static bool
is_next_to_reserve(const struct lane *lane, uint64_t position)
{
    uint64_t next = lane->published;

    must_hold(&lane->lock);
    while (next < position && lane->index_of[next % lane->config.slots] != LANE_NO_SLOT)
        next++;
    return next == position;
}

static tundish_status
reserve_locked(struct lane *lane, struct slot *slot)
{
    uint32_t *index_of = &lane->index_of[slot->position % lane->config.slots];
    struct lane_slot book = { .state = SLOT_RESERVED, .kind = slot->kind, .holder = NOBODY };
    tundish_status status = TUNDISH_OK;

    must_hold(&lane->lock);
    must(slot->position >= lane->published);
    slot->lacks_room = false;
    if (!has_slot(lane, slot->position))
        return TUNDISH_E_TIMEOUT;
    /* Under a limit an earlier position may find no memory for a segment of its own. In order, no
     * later batch can hold the room that it needs. */
    if (lane->config.limit_bytes != 0 && !is_next_to_reserve(lane, slot->position))
        return TUNDISH_E_TIMEOUT;
    must(*index_of == LANE_NO_SLOT);
    if (slot_has_payload(slot))
        status = reserve_payload(lane, slot, &book);
    if (status != TUNDISH_OK)
        return status;
    must_in_debug(lane->reserved_count + lane->visible_count < lane->config.slots);
    book.position = slot->position;
    *index_of = slot->index = find_free_slot(lane);
    lane->slots[slot->index] = book;
    lane->reserved_count++;
    if (slot_has_payload(slot))
        hand_out(lane, &book, slot);
    return TUNDISH_OK;
}

tundish_status
lane_reserve(struct lane *lane, struct slot *slot)
{
    tundish_status status;

    tnd_lock_take(&lane->lock);
    lane_collect(lane);
    status = reserve_locked(lane, slot);
    tnd_lock_release(&lane->lock);
    return status;
}

void
lane_cancel(struct lane *lane, struct slot *slot)
{
    tnd_lock_take(&lane->lock);
    must(slot->index < lane->config.slots && lane->slots[slot->index].state == SLOT_RESERVED);
    must(lane->slots[slot->index].position == slot->position);
    must_in_debug(lane->reserved_count > 0);
    lane->index_of[slot->position % lane->config.slots] = LANE_NO_SLOT;
    lane->reserved_count--;
    lane_free_slot(lane, slot->index);
    lane->progress++;
    slot->index = LANE_NO_SLOT;
    tnd_lock_release(&lane->lock);
}
