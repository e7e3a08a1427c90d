/* lane.c - a lane's memory and its slots: laid out, opened, reset and closed. */
#include "deliver/lane.h"

#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/memory.h"
#include "core/must.h"
#include "core/status.h"
#include "deliver/lane_private.h"

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
    header->payload_offset = lane_round_up(end + header->spec_bytes, 4096);
    header->payload_bytes = lane_round_up(config->arena_bytes, 4096);
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
    batches->delivery = lane->delivery->number;
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
    lane->memory_node = -1;
    pthread_mutex_init(&lane->lock.mutex, NULL);
    lane->config = *config;
    lane->delivery = config->queue ? &delivery_queue : &delivery_groups;
    lane->segment = (struct tnd_segment)TND_SEGMENT_NONE;
    lane->config.name = lane->name = tnd_strdup(config->name);
    lane->config.arena_bytes = lane_round_up(config->arena_bytes, 4096);
    lane->slots = tnd_zalloc(config->slots, sizeof *lane->slots);
    lane->index_of = tnd_alloc(config->slots * sizeof *lane->index_of);
    /* All bytes 0xff make LANE_NO_SLOT. */
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
    pthread_mutex_destroy(&lane->lock.mutex);
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
lane_slot_init(const struct lane *lane, struct slot *slot)
{
    lane_slot_init_as(&lane->spec.spec, slot);
}

void
lane_slot_init_as(const tundish_spec *spec, struct slot *slot)
{
    struct slot_buffer *next;

    *slot = (struct slot){ .kind = TND_SLOT_BATCH, .shard = -1, .index = LANE_NO_SLOT };
    slot->column_count = spec->column_count;
    for (uint32_t i = 0; i < spec->column_count; i++)
        slot->buffer_count += tnd_spec_buffer_count(tundish_column_spec_at(spec, i));
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
lane_slot_fini(struct slot *slot)
{
    free(slot->columns);
    free(slot->buffers);
    *slot = (struct slot){ 0 };
}

void
lane_free_slot(struct lane *lane, uint32_t index)
{
    struct lane_slot *slot = &lane->slots[index];

    must_in_debug(index < lane->config.slots && slot->state != SLOT_FREE);
    must_hold(&lane->lock);
    if (slot->in_arena)
        arena_put(&lane->arena, slot->arena_offset);
    if (slot->own != NULL)
        lane_own_put(lane, slot->own);
    *slot = (struct lane_slot){ .state = SLOT_FREE, .holder = NOBODY };
}

void
lane_reset(struct lane *lane)
{
    tnd_lock_take(&lane->lock);
    for (uint32_t i = 0; i < lane->reader_limit; i++)
        must(lane->readers[i] == NULL || lane->readers[i]->connection == NULL);
    for (uint32_t i = 0; i < lane->config.slots; i++) {
        /* A worker may be writing into a reserved slot. */
        must(lane->slots[i].state != SLOT_RESERVED && lane->slots[i].state != SLOT_SEALED);
        if (lane->slots[i].state != SLOT_FREE)
            lane_free_slot(lane, i);
        lane->index_of[i] = LANE_NO_SLOT;
    }
    lane->published = lane->released = lane->visited_count = 0;
    lane->passed_from = UINT64_MAX;
    lane->reserved_count = lane->visible_count = 0;
    for (uint32_t i = 0; i < lane->reader_limit; i++) {
        struct lane_reader *reader = lane->readers[i];

        if (reader == NULL)
            continue;
        reader->released = reader->taken = reader->granted = 0;
        reader->back_from = reader->back_until = 0;
        reader->passes = (struct lane_until){ 0 };
        /* A value left from before would be too high: the other replicas' lanes would free slots
         * that this one still needs. */
        if (reader->tie.released != NULL)
            atomic_store(&reader->tie.released[reader->tie.index], 0);
    }
    memset(lane->places, 0, (lane->config.slots + 2) * sizeof *lane->places);
    /* No consumer is attached that could see the counter go back. */
    atomic_store(&lane->batches->published, 0);
    atomic_store(&lane->batches->newest, 0);
    lane->progress++;
    tnd_lock_release(&lane->lock);
}
