/* lane.c - reserve anywhere, publish in order. */
#include "deliver/lane.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/crc32c.h"
#include "core/log.h"
#include "core/memory.h"
#include "core/must.h"
#include "core/status.h"
#include "deliver/lane_private.h"

#define NO_SLOT UINT32_MAX

static uint64_t
round_up(uint64_t value, uint64_t unit)
{
    return (value + unit - 1) / unit * unit;
}

/* The element spec fixes the number of buffers, so each slot's tables have one size for the lane's
 * whole life. */
static uint32_t
count_buffers(const tundish_spec *spec)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < spec->column_count; i++)
        count += tnd_spec_buffer_count(tundish_column_spec_at(spec, i));
    return count;
}

/* Where everything lies in the segment; returns its size. */
static uint64_t
lay_out(const struct lane_config *config, struct tnd_batches *header)
{
    uint64_t end = sizeof *header;

    header->slot_count = config->slots;
    header->column_capacity = config->spec->column_count;
    header->buffer_capacity = count_buffers(config->spec);
    header->line_count = 1 + TND_CONSUMERS_MAX;
    header->lines_offset = end;
    end += header->line_count * tnd_line_bytes(config->slots);
    header->slots_offset = end;
    header->slot_stride = tnd_slot_bytes(header->column_capacity, header->buffer_capacity);
    end += config->slots * header->slot_stride;
    header->spec_offset = end;
    header->spec_bytes = tnd_spec_bytes(config->spec);
    header->payload_offset = round_up(end + header->spec_bytes, 4096);
    header->payload_bytes = round_up(config->arena_bytes, 4096);
    header->segment_bytes = header->payload_offset + header->payload_bytes;
    return header->segment_bytes;
}

uint64_t
lane_segment_bytes(const struct lane_config *config)
{
    struct tnd_batches header;

    return lay_out(config, &header);
}

static void
write_header(struct lane *lane, const struct tnd_batches *header)
{
    struct tnd_batches *batches = lane->batches;

    *batches = *header;
    batches->magic = TND_BATCHES_MAGIC;
    batches->layout_major = TND_LAYOUT_MAJOR;
    batches->layout_minor = TND_LAYOUT_MINOR;
    batches->server_generation = lane->config.server_generation;
    batches->delivery = lane->config.queue ? TND_DELIVER_QUEUE : TND_DELIVER_LANE;
    atomic_store_explicit(&batches->heartbeat_ns, (uint64_t)tnd_clock_ns(), memory_order_relaxed);
    tnd_spec_write(lane->config.spec, lane->segment.bytes + header->spec_offset);
    /* Release; partner: the load in tnd_view_open. A consumer that sees `ready` sees the whole
     * header and spec. */
    atomic_store_explicit(&batches->ready, 1, memory_order_release);
}

tundish_status
lane_open(const struct lane_config *config, struct lane **ret_lane)
{
    struct tnd_batches header = { 0 };
    struct lane *lane;
    tundish_status status;

    if (config->slots < TND_SLOTS_MIN || config->slots > TND_SLOTS_MAX)
        return tnd_fail(TUNDISH_E_ARGUMENT, "deliver.slots must be %d to %d, not %u", TND_SLOTS_MIN,
                        TND_SLOTS_MAX, config->slots);
    status = tnd_spec_check(config->spec);
    if (status != TUNDISH_OK)
        return status;
    lane = tnd_zalloc(1, sizeof *lane);
    lane->passed_from = UINT64_MAX;
    pthread_mutex_init(&lane->lock, NULL);
    lane->config = *config;
    lane->segment = (struct tnd_segment)TND_SEGMENT_NONE;
    lane->config.name = lane->name = tnd_strdup(config->name);
    lane->config.arena_bytes = round_up(config->arena_bytes, 4096);
    lane->slots = tnd_zalloc(config->slots, sizeof *lane->slots);
    lane->index_of = tnd_alloc(config->slots * sizeof *lane->index_of);
    /* All bytes 0xff make NO_SLOT. */
    memset(lane->index_of, 0xff, config->slots * sizeof *lane->index_of);
    /* Each epoch takes at least its END slot, so the ring holds no more epochs than slots. One more
     * is set before its first slot is published. */
    lane->places = tnd_zalloc(config->slots + 2, sizeof *lane->places);
    lane->refused_position = UINT64_MAX;
    arena_open(&lane->arena, lane->config.arena_bytes, config->slots);
    status = tnd_segment_create(lay_out(config, &header), config->memory == LANE_MEMFD,
                                config->huge_pages, &lane->segment);
    if (status == TUNDISH_OK)
        status = tnd_spec_copy(config->spec, &lane->spec);
    if (status != TUNDISH_OK) {
        lane_close(lane);
        return tnd_fail_while(status, "open lane %s", config->name);
    }
    lane->config.spec = &lane->spec.spec;
    lane->batches = (struct tnd_batches *)(void *)lane->segment.bytes;
    lane->column_capacity = header.column_capacity;
    lane->buffer_capacity = header.buffer_capacity;
    lane->slots_offset = header.slots_offset;
    lane->slot_stride = header.slot_stride;
    lane->lines_offset = header.lines_offset;
    lane->payload_offset = header.payload_offset;
    write_header(lane, &header);
    if (config->wakeup != NULL)
        wakeup_add(config->wakeup, lane);
    *ret_lane = lane;
    return TUNDISH_OK;
}

void
lane_close(struct lane *lane)
{
    if (lane == NULL)
        return;
    /* First of all: after this the waiting thread no longer looks at the lane. */
    if (lane->batches != NULL && lane->config.wakeup != NULL)
        wakeup_remove(lane->config.wakeup, lane);
    for (uint32_t i = 0; i < lane->reader_limit; i++)
        lane_reader_close(lane->readers[i]);
    lane_own_close_all(lane);
    tnd_segment_close(&lane->segment);
    tnd_spec_close(&lane->spec);
    arena_close(&lane->arena);
    pthread_mutex_destroy(&lane->lock);
    free(lane->slots);
    free(lane->index_of);
    free(lane->places);
    free(lane->name);
    free(lane);
}

const char *
lane_note(const struct lane *lane)
{
    return lane->segment.note;
}

void
slot_init(const struct lane *lane, struct slot *slot)
{
    const tundish_spec *spec = &lane->spec.spec;
    struct slot_buffer *next;

    *slot = (struct slot){ .kind = TND_SLOT_BATCH, .shard = -1, .index = NO_SLOT };
    slot->column_count = spec->column_count;
    slot->buffer_count = lane->buffer_capacity;
    slot->columns = tnd_zalloc(slot->column_count + 1, sizeof *slot->columns);
    slot->buffers = tnd_zalloc(slot->buffer_count + 1, sizeof *slot->buffers);
    next = slot->buffers;
    for (uint32_t i = 0; i < spec->column_count; i++) {
        const tundish_column_spec *column = tundish_column_spec_at(spec, i);

        slot->columns[i].buffers = next;
        slot->columns[i].buffer_count = tnd_spec_buffer_count(column);
        memcpy(slot->columns[i].shape, column->shape, sizeof column->shape);
        for (uint32_t k = 0; k < slot->columns[i].buffer_count; k++)
            next++->role = tnd_spec_buffer_role(column, k);
    }
}

void
slot_fini(struct slot *slot)
{
    free(slot->columns);
    free(slot->buffers);
    *slot = (struct slot){ 0 };
}

/* Bytes the payload takes, each buffer aligned; never 0, so that empty buffers have an
 * address as well. */
static uint64_t
payload_bytes(const struct slot *slot)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < slot->buffer_count; i++)
        bytes += round_up(slot->buffers[i].stored_bytes, TND_BUFFER_ALIGN);
    return bytes > 0 ? bytes : TND_BUFFER_ALIGN;
}

void
lane_free_slot(struct lane *lane, uint32_t index)
{
    struct lane_slot *slot = &lane->slots[index];

    if (slot->in_arena)
        arena_put(&lane->arena, slot->arena_offset);
    if (slot->own != NULL)
        lane_own_put(lane, slot->own);
    *slot = (struct lane_slot){ .state = SLOT_FREE, .holder = NOBODY };
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
        next += round_up(slot->buffers[i].stored_bytes, TND_BUFFER_ALIGN);
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
 * the last slot that an earlier one needs. A queue's place describes at most TND_SLOTS_MAX
 * positions. */
static bool
has_slot(const struct lane *lane, uint64_t position)
{
    return position - lane->published < lane->config.slots - lane->visible_count &&
           (!lane->config.queue || position - lane->released < TND_SLOTS_MAX);
}

bool
lane_has_slot(struct lane *lane, uint64_t position)
{
    bool has;

    pthread_mutex_lock(&lane->lock);
    lane_collect(lane);
    has = has_slot(lane, position);
    pthread_mutex_unlock(&lane->lock);
    return has;
}

/* Are all positions before this one that are not published reserved? */
static bool
is_next_to_reserve(const struct lane *lane, uint64_t position)
{
    uint64_t next = lane->published;

    while (next < position && lane->index_of[next % lane->config.slots] != NO_SLOT)
        next++;
    return next == position;
}

static bool
has_payload(const struct slot *slot)
{
    return slot->kind == TND_SLOT_BATCH && !slot->passed;
}

static tundish_status
reserve_locked(struct lane *lane, struct slot *slot)
{
    uint32_t *index_of = &lane->index_of[slot->position % lane->config.slots];
    struct lane_slot book = { .state = SLOT_RESERVED, .kind = slot->kind, .holder = NOBODY };
    tundish_status status = TUNDISH_OK;

    must(slot->position >= lane->published);
    slot->lacks_room = false;
    if (!has_slot(lane, slot->position))
        return TUNDISH_E_TIMEOUT;
    /* Under a limit an earlier position may find no memory for a segment of its own. In order, no
     * later batch can hold the room that it needs. */
    if (lane->config.limit_bytes != 0 && !is_next_to_reserve(lane, slot->position))
        return TUNDISH_E_TIMEOUT;
    must(*index_of == NO_SLOT);
    if (has_payload(slot))
        status = reserve_payload(lane, slot, &book);
    if (status != TUNDISH_OK)
        return status;
    book.position = slot->position;
    *index_of = slot->index = find_free_slot(lane);
    lane->slots[slot->index] = book;
    lane->reserved_count++;
    if (has_payload(slot))
        hand_out(lane, &book, slot);
    return TUNDISH_OK;
}

tundish_status
lane_reserve(struct lane *lane, struct slot *slot)
{
    tundish_status status;

    pthread_mutex_lock(&lane->lock);
    lane_collect(lane);
    status = reserve_locked(lane, slot);
    pthread_mutex_unlock(&lane->lock);
    return status;
}

void
lane_cancel(struct lane *lane, struct slot *slot)
{
    pthread_mutex_lock(&lane->lock);
    must(slot->index < lane->config.slots && lane->slots[slot->index].state == SLOT_RESERVED);
    lane->index_of[slot->position % lane->config.slots] = NO_SLOT;
    lane->reserved_count--;
    lane_free_slot(lane, slot->index);
    lane->progress++;
    slot->index = NO_SLOT;
    pthread_mutex_unlock(&lane->lock);
}

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
    bool is_batch = has_payload(slot);
    size_t text_bytes = slot->text == NULL ? 0 : strlen(slot->text);

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

    lane->next_epoch = slot->epoch + is_end;
    lane->next_step = is_end ? 0 : slot->step + 1;
}

/* Make the ready slots visible, up to the first position that is missing. */
static void
publish_ready(struct lane *lane)
{
    _Atomic uint32_t *entries = lane_line_slots(lane, 0);
    uint64_t published = lane->published;

    for (;;) {
        uint32_t *index = &lane->index_of[published % lane->config.slots];

        if (*index == NO_SLOT || lane->slots[*index].state != SLOT_READY)
            break;
        must(lane->slots[*index].position == published);
        lane->slots[*index].state = SLOT_PUBLISHED;
        note_next(lane, &lane->slots[*index]);
        /* Relaxed: the store of `published` in tnd_ring_publish releases it. */
        atomic_store_explicit(&entries[published % lane->config.slots], *index,
                              memory_order_relaxed);
        *index = NO_SLOT;
        lane->reserved_count--;
        lane->visible_count++;
        published++;
    }
    if (published == lane->published)
        return;
    lane->published = published;
    if (lane->config.queue)
        lane_collect(lane); /* frees the slots that were visited before */
    tnd_ring_publish(lane->batches, published);
    lane_wake(lane);
}

void
lane_seal(const struct lane *lane, struct slot *slot)
{
    if (!lane->config.checksums || !has_payload(slot))
        return;
    for (uint32_t i = 0; i < slot->buffer_count; i++)
        slot->buffers[i].checksum =
            tnd_crc32c(0, slot->buffers[i].data, slot->buffers[i].stored_bytes);
}

/* Positions become ready in any order. The one that fills the gap publishes all that follow it. */
void
lane_publish(struct lane *lane, struct slot *slot)
{
    pthread_mutex_lock(&lane->lock);
    must(slot->index < lane->config.slots && lane->slots[slot->index].state == SLOT_RESERVED);
    must(lane->slots[slot->index].position == slot->position);
    write_slot(lane, slot);
    lane->slots[slot->index].state = SLOT_READY;
    lane->slots[slot->index].kind = slot->kind;
    lane->slots[slot->index].epoch = slot->epoch;
    lane->slots[slot->index].step = slot->step;
    lane->slots[slot->index].passed = slot->passed;
    slot->index = NO_SLOT;
    if (has_payload(slot))
        lane_count_encoded(lane, slot);
    publish_ready(lane);
    pthread_mutex_unlock(&lane->lock);
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
        lane_publish(lane, &slot);
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
        lane_publish(lane, &slot);
    return reserved;
}

void
lane_set_place_bytes(struct lane *lane, uint64_t epoch, uint64_t place_bytes)
{
    pthread_mutex_lock(&lane->lock);
    lane->places[lane->place_next] = (struct place_size){ .epoch = epoch, .bytes = place_bytes };
    lane->place_next = (lane->place_next + 1) % (lane->config.slots + 2);
    pthread_mutex_unlock(&lane->lock);
}

void
lane_reset(struct lane *lane)
{
    pthread_mutex_lock(&lane->lock);
    for (uint32_t i = 0; i < lane->reader_limit; i++)
        must(lane->readers[i] == NULL || lane->readers[i]->connection == NULL);
    for (uint32_t i = 0; i < lane->config.slots; i++) {
        /* A worker may be writing into a reserved slot. */
        must(lane->slots[i].state != SLOT_RESERVED);
        if (lane->slots[i].state != SLOT_FREE)
            lane_free_slot(lane, i);
        lane->index_of[i] = NO_SLOT;
    }
    lane->published = lane->released = lane->visited_count = 0;
    lane->passed_from = UINT64_MAX;
    lane->reserved_count = lane->visible_count = 0;
    for (uint32_t i = 0; i < lane->reader_limit; i++) {
        struct lane_reader *reader = lane->readers[i];

        if (reader == NULL)
            continue;
        reader->released = reader->taken = reader->granted = 0;
        /* A value left from before would be too high: the other replicas' lanes would free slots
         * that this one still needs. */
        if (reader->tie.released != NULL)
            atomic_store(&reader->tie.released[reader->tie.index], 0);
    }
    memset(lane->places, 0, (lane->config.slots + 2) * sizeof *lane->places);
    /* No consumer is attached that could see the counter go back. */
    atomic_store(&lane->batches->published, 0);
    lane->progress++;
    pthread_mutex_unlock(&lane->lock);
}
