/* lane_publish.c - slots sealed and made visible, in the order of their positions. */
#include "deliver/lane.h"

#include <string.h>

#include "core/crc32c.h"
#include "core/must.h"
#include "deliver/lane_private.h"

static uint64_t
place_bytes_of(const struct lane *lane, uint64_t epoch)
{
    for (uint32_t i = 0; i < lane->config.slots + 2; i++)
        if (lane->places[i].bytes != 0 && lane->places[i].epoch == epoch)
            return lane->places[i].bytes;
    return 0;
}

/* Trainers map the segment and know no addresses of this process, so buffers are offsets from the
 * segment's start. */
static void
write_columns(struct lane *lane, const struct slot *slot, struct tnd_slot *memory)
{
    const struct lane_slot *book = &lane->slots[slot->index];
    const uint8_t *base = book->own != NULL ? book->own->memory.bytes : lane->segment.bytes;
    struct tnd_column *columns = (struct tnd_column *)(void *)(memory + 1);
    struct tnd_buffer *buffers = (struct tnd_buffer *)(void *)(columns + lane->column_capacity);

    must_in_debug(slot->column_count == lane->column_capacity);
    for (uint32_t i = 0; i < slot->column_count; i++) {
        const tundish_column_spec *spec = tundish_column_spec_at(&lane->spec.spec, i);

        columns[i] = (struct tnd_column){
            .dtype = (uint32_t)spec->dtype,
            .kind = (uint32_t)spec->kind,
            .rank = spec->rank,
            .ragged_rank = spec->ragged_rank,
            .buffer_first = (uint32_t)(slot->columns[i].buffers - slot->buffers),
            .buffer_count = slot->columns[i].buffer_count,
        };
        memcpy(columns[i].shape, slot->columns[i].shape, sizeof columns[i].shape);
    }
    for (uint32_t i = 0; i < slot->buffer_count; i++) {
        const struct slot_buffer *buffer = &slot->buffers[i];

        buffers[i] = (struct tnd_buffer){
            .offset = (uint64_t)((const uint8_t *)buffer->data - base),
            .stored_bytes = buffer->stored_bytes,
            .decoded_bytes = lane_decoded_bytes(buffer),
            .role = (uint16_t)buffer->role,
            .has_checksum = lane->config.checksums,
            .checksum = buffer->checksum,
            .codec = buffer->codec,
        };
    }
}

/* No trainer reads the slot yet: no entry of a line names it before it is published or granted. */
static void
write_slot(struct lane *lane, const struct slot *slot)
{
    struct tnd_slot *memory = lane_slot_memory(lane, slot->index);
    bool is_batch = slot_has_payload(slot);
    size_t text_bytes = slot->text == NULL ? 0 : strlen(slot->text);

    must_hold(&lane->lock);
    if (text_bytes > TND_SLOT_TEXT)
        text_bytes = TND_SLOT_TEXT;
    *memory = (struct tnd_slot){
        .position = slot->position,
        .epoch = slot->epoch,
        .step = slot->step,
        .kind = (uint32_t)slot->kind,
        .status = slot->status,
        .flags = slot->flags,
        .segment = lane->slots[slot->index].own == NULL ? TND_SEGMENT_LANE
                                                        : lane->slots[slot->index].own->id,
        .shard = slot->shard,
        .place_bytes = place_bytes_of(lane, slot->epoch),
        .column_count = is_batch ? slot->column_count : 0,
        .buffer_count = is_batch ? slot->buffer_count : 0,
        .text_bytes = (uint32_t)text_bytes,
    };
    if (text_bytes > 0)
        /* The text lies at the slot's end, after tables of the largest size. */
        memcpy((uint8_t *)memory + lane->slot_stride - TND_SLOT_TEXT, slot->text, text_bytes);
    if (is_batch)
        write_columns(lane, slot, memory);
}

static void
note_next(struct lane *lane, const struct lane_slot *slot)
{
    bool is_end = slot->kind == TND_SLOT_END;

    must_hold(&lane->lock);
    lane->next_epoch = slot->epoch + is_end;
    lane->next_step = is_end ? 0 : slot->step + 1;
}

/* Make the ready slots visible, up to the first position that is missing. True: a trainer sleeps,
 * and is to be woken for them. */
static bool
publish_ready(struct lane *lane)
{
    _Atomic uint32_t *entries = lane_line_slots(lane, 0);
    uint64_t published = lane->published, newest = 0;

    must_hold(&lane->lock);
    for (;;) {
        uint32_t *index = &lane->index_of[published % lane->config.slots];

        if (*index == LANE_NO_SLOT || lane->slots[*index].state != SLOT_READY)
            break;
        must(lane->slots[*index].position == published);
        lane->slots[*index].state = SLOT_PUBLISHED;
        note_next(lane, &lane->slots[*index]);
        /* Relaxed: the store of `published` in tnd_ring_publish releases it. */
        atomic_store_explicit(&entries[published % lane->config.slots], *index,
                              memory_order_relaxed);
        newest = TND_NEWEST(published, *index);
        *index = LANE_NO_SLOT;
        must_in_debug(lane->reserved_count > 0);
        lane->reserved_count--;
        lane->visible_count++;
        published++;
    }
    if (published == lane->published)
        return false;
    lane->published = published;
    lane->delivery->published(lane);
    atomic_store_explicit(&lane->batches->newest, newest, memory_order_relaxed);
    tnd_ring_publish(lane->batches, published);
    return lane_has_sleeper(lane);
}

static void
add_checksums(const struct lane *lane, struct slot *slot)
{
    if (!lane->config.checksums || !slot_has_payload(slot))
        return;
    for (uint32_t i = 0; i < slot->buffer_count; i++)
        slot->buffers[i].checksum =
            tnd_crc32c(0, slot->buffers[i].data, slot->buffers[i].stored_bytes);
}

static void
seal(struct lane *lane, struct slot *slot)
{
    struct lane_slot *book;

    must_hold(&lane->lock);
    must(slot->index < lane->config.slots);
    book = &lane->slots[slot->index];
    must(book->state == SLOT_RESERVED && book->position == slot->position);
    write_slot(lane, slot);
    book->state = SLOT_SEALED;
    book->kind = slot->kind;
    book->epoch = slot->epoch;
    book->step = slot->step;
    book->passed = slot->passed;
}

/* Positions become ready in any order. The one that fills the gap publishes all that follow it.
 * True: as publish_ready. */
static bool
publish(struct lane *lane, struct slot *slot)
{
    must_hold(&lane->lock);
    must(slot->index < lane->config.slots && lane->slots[slot->index].state == SLOT_SEALED);
    must(lane->slots[slot->index].position == slot->position);
    lane->slots[slot->index].state = SLOT_READY;
    slot->index = LANE_NO_SLOT;
    if (slot_has_payload(slot))
        lane_count_encoded(lane, slot);
    return publish_ready(lane);
}

/* Waking a trainer takes longer than all else under the lock, for which other workers would wait.
 */
static void
release_and_wake(struct lane *lane, bool has_sleeper)
{
    must_hold(&lane->lock);
    tnd_lock_release(&lane->lock);
    if (has_sleeper)
        tnd_ring_wake(lane->batches);
}

void
lane_seal(struct lane *lane, struct slot *slot)
{
    add_checksums(lane, slot);
    tnd_lock_take(&lane->lock);
    seal(lane, slot);
    tnd_lock_release(&lane->lock);
}

void
lane_publish(struct lane *lane, struct slot *slot)
{
    tnd_lock_take(&lane->lock);
    release_and_wake(lane, publish(lane, slot));
}

void
lane_seal_and_publish(struct lane *lane, struct slot *slot)
{
    add_checksums(lane, slot);
    tnd_lock_take(&lane->lock);
    seal(lane, slot);
    release_and_wake(lane, publish(lane, slot));
}

tundish_status
lane_publish_end(struct lane *lane, uint64_t position, enum tnd_slot_kind kind, uint64_t epoch,
                 uint64_t step, tundish_status status, const char *text)
{
    struct slot slot = {
        .position = position,
        .kind = kind,
        .epoch = epoch,
        .step = step,
        .shard = -1,
        .status = status,
        .text = text,
    };
    tundish_status reserved = lane_reserve(lane, &slot);

    if (reserved == TUNDISH_OK)
        lane_seal_and_publish(lane, &slot);
    return reserved;
}

tundish_status
lane_pass(struct lane *lane, uint64_t position, enum tnd_slot_kind kind, uint64_t epoch,
          uint64_t step)
{
    struct slot slot = { .position = position,
                         .kind = kind,
                         .epoch = epoch,
                         .step = step,
                         .shard = -1,
                         .passed = true };
    tundish_status reserved = lane_reserve(lane, &slot);

    if (reserved == TUNDISH_OK)
        lane_seal_and_publish(lane, &slot);
    return reserved;
}

void
lane_set_place_bytes(struct lane *lane, uint64_t epoch, uint64_t place_bytes)
{
    tnd_lock_take(&lane->lock);
    lane->places[lane->place_next] = (struct place_size){ .epoch = epoch, .bytes = place_bytes };
    lane->place_next = (lane->place_next + 1) % (lane->config.slots + 2);
    tnd_lock_release(&lane->lock);
}
