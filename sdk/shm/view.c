/* view.c - read a lane that may be hostile: copy, check, and use only the copy. */
#include "shm/view.h"

#include <stdlib.h>
#include <string.h>

#include "core/dtype.h"
#include "core/must.h"
#include "core/status.h"

static tundish_status
damaged(const char *what)
{
    return tnd_fail(TUNDISH_E_CORRUPT, "shared memory failed a check: %s", what);
}

/* Written so that no sum can overflow. */
static bool
lies_inside(uint64_t offset, uint64_t bytes, uint64_t segment_bytes)
{
    return offset <= segment_bytes && bytes <= segment_bytes - offset;
}

static tundish_status
check_header(const struct tnd_view *view, const struct tnd_batches *header)
{
    uint64_t slot_bytes;

    if (view->segment_bytes != header->segment_bytes)
        return damaged("the segment's size");
    if (view->slot_count < TND_SLOTS_MIN || view->slot_count > TND_SLOTS_MAX)
        return damaged("the number of slots");
    if (view->column_capacity > TND_COLUMNS_MAX || view->buffer_capacity > TND_BUFFERS_MAX)
        return damaged("the number of columns");
    slot_bytes = tnd_slot_bytes(view->column_capacity, view->buffer_capacity);
    if (view->slots_offset % TND_LINE != 0 || view->slot_stride % TND_LINE != 0 ||
        view->slot_stride < slot_bytes || view->slot_stride > view->segment_bytes ||
        !lies_inside(view->slots_offset, view->slot_stride * view->slot_count, view->segment_bytes))
        return damaged("where the slots are");
    if (view->delivery != TND_DELIVER_LANE && view->delivery != TND_DELIVER_QUEUE)
        return damaged("the kind of delivery");
    if (view->line_count < 2 || view->line_count > TND_CONSUMERS_MAX + 1 ||
        view->lines_offset % TND_LINE != 0 ||
        !lies_inside(view->lines_offset, view->line_count * tnd_line_bytes(view->slot_count),
                     view->segment_bytes))
        return damaged("where the lines are");
    if (!lies_inside(header->spec_offset, header->spec_bytes, view->segment_bytes))
        return damaged("where the element spec is");
    return TUNDISH_OK;
}

tundish_status
tnd_view_open(const void *bytes, uint64_t segment_bytes, struct tnd_view *ret_view)
{
    const struct tnd_batches *batches = bytes;
    struct tnd_batches header;
    struct tnd_view view = { 0 };
    tundish_status status;

    if (segment_bytes < sizeof header)
        return damaged("the segment is smaller than its header");
    /* Acquire pairs with the release store at the end of the server's set-up: the header is whole.
     */
    if (atomic_load_explicit(&batches->ready, memory_order_acquire) != 1)
        return damaged("the segment is not ready");
    /* From here on only the copy is checked and used: the server could change the original between
     * a check and a use. */
    memcpy(&header, bytes, sizeof header);
    if (header.magic != TND_BATCHES_MAGIC)
        return damaged("the magic number");
    if (header.layout_major != TND_LAYOUT_MAJOR)
        return tnd_fail(TUNDISH_E_LAYOUT,
                        "the server's shared memory has layout %u.%u, this library knows %d.%d: "
                        "install the same version of both",
                        header.layout_major, header.layout_minor, TND_LAYOUT_MAJOR,
                        TND_LAYOUT_MINOR);
    view.batches = batches;
    view.segment_bytes = segment_bytes;
    view.slot_count = header.slot_count;
    view.slots_offset = header.slots_offset;
    view.slot_stride = header.slot_stride;
    view.column_capacity = header.column_capacity;
    view.buffer_capacity = header.buffer_capacity;
    view.server_generation = header.server_generation;
    view.lines_offset = header.lines_offset;
    view.line_count = header.line_count;
    view.delivery = (enum tnd_delivery)header.delivery;
    status = check_header(&view, &header);
    if (status == TUNDISH_OK)
        status = tnd_spec_read((const uint8_t *)bytes + header.spec_offset, header.spec_bytes,
                               &view.spec);
    if (status == TUNDISH_OK && view.spec.spec.column_count > view.column_capacity) {
        tnd_spec_close(&view.spec);
        status = damaged("more columns than a slot has room for");
    }
    if (status != TUNDISH_OK)
        return status;
    *ret_view = view;
    return TUNDISH_OK;
}

void
tnd_view_close(struct tnd_view *view)
{
    tnd_spec_close(&view->spec);
    *view = (struct tnd_view){ 0 };
}

tundish_status
tnd_view_slot_open(const struct tnd_view *view, struct tnd_view_slot *ret_slot)
{
    struct tnd_view_slot slot = { 0 };

    /* One more than needed: calloc may return NULL for 0 elements. */
    slot.columns = calloc(view->column_capacity + 1, sizeof *slot.columns);
    slot.buffers = calloc(view->buffer_capacity + 1, sizeof *slot.buffers);
    must_in_debug(view->column_capacity <= TND_COLUMNS_MAX &&
                  view->buffer_capacity <= TND_BUFFERS_MAX);
    if (slot.columns == NULL || slot.buffers == NULL) {
        tnd_view_slot_close(&slot);
        return tnd_fail(TUNDISH_E_MEMORY, "no memory for a batch's columns");
    }
    *ret_slot = slot;
    return TUNDISH_OK;
}

void
tnd_view_slot_close(struct tnd_view_slot *slot)
{
    free(slot->columns);
    free(slot->buffers);
    *slot = (struct tnd_view_slot){ 0 };
}

static const uint8_t *
slot_bytes(const struct tnd_view *view, uint32_t index)
{
    must_in_debug(index < view->slot_count);
    return (const uint8_t *)view->batches + view->slots_offset + index * view->slot_stride;
}

/* The number of values in dimensions begin .. end - 1. False: it cannot be the size of memory. */
static bool
shape_product(const int64_t *shape, uint32_t begin, uint32_t end, uint64_t *ret_product)
{
    uint64_t product = 1;

    must_in_debug(begin <= end && end <= TND_RANK_MAX);
    for (uint32_t i = begin; i < end; i++)
        if (__builtin_mul_overflow(product, (uint64_t)shape[i], &product) || product >> 62 != 0)
            return false;
    *ret_product = product;
    return true;
}

static tundish_status
check_shape(const struct tnd_column *column)
{
    must_in_debug(column->rank <= TND_RANK_MAX);
    for (uint32_t i = 0; i < column->rank; i++) {
        bool is_ragged = i >= 1 && i <= column->ragged_rank;

        if (is_ragged ? column->shape[i] != -1 : column->shape[i] < 0)
            return damaged("a shape");
    }
    return TUNDISH_OK;
}

/* The sizes of a dense column follow from its shape. Those of ragged and sparse columns follow from
 * their contents, which are checked when the column is used (client/tensor.c). */
static tundish_status
check_dense_sizes(const struct tnd_column *column, const struct tnd_buffer *buffers)
{
    const struct tnd_buffer *last = &buffers[column->buffer_count - 1];
    uint64_t values, bytes;

    must_in_debug(column->buffer_count > (column->dtype == TUNDISH_STRING));
    if (!shape_product(column->shape, 0, column->rank, &values))
        return damaged("a shape");
    if (column->dtype == TUNDISH_STRING) {
        if (__builtin_mul_overflow(values + 1, sizeof(int64_t), &bytes) ||
            last[-1].decoded_bytes != bytes)
            return damaged("the size of a string column");
        return TUNDISH_OK;
    }
    if (__builtin_mul_overflow(values, tnd_dtype_bytes((tundish_dtype)column->dtype), &bytes) ||
        last->decoded_bytes != bytes)
        return damaged("the size of a dense column");
    return TUNDISH_OK;
}

static tundish_status
check_column(const struct tnd_column *column, const tundish_column_spec *spec,
             const struct tnd_view_slot *slot)
{
    const struct tnd_buffer *buffers = slot->buffers + column->buffer_first;
    tundish_status status;

    if (column->dtype != (uint32_t)spec->dtype || column->kind != (uint32_t)spec->kind ||
        column->rank != spec->rank || column->ragged_rank != spec->ragged_rank)
        return damaged("a column is not what the element spec says");
    if (column->buffer_count != tnd_spec_buffer_count(spec) ||
        !lies_inside(column->buffer_first, column->buffer_count, slot->slot.buffer_count))
        return damaged("the buffers of a column");
    for (uint32_t i = 0; i < column->buffer_count; i++)
        if (buffers[i].role != tnd_spec_buffer_role(spec, i))
            return damaged("the role of a buffer");
    status = check_shape(column);
    if (status == TUNDISH_OK && column->kind == TUNDISH_DENSE)
        status = check_dense_sizes(column, buffers);
    return status;
}

static tundish_status
read_tables(const struct tnd_view *view, const uint8_t *bytes, struct tnd_view_slot *slot)
{
    const tundish_spec *spec = &view->spec.spec;

    must_in_debug(spec->column_count <= view->column_capacity);
    if (slot->slot.column_count != spec->column_count ||
        slot->slot.buffer_count > view->buffer_capacity)
        return damaged("the number of columns in a slot");
    memcpy(slot->columns, bytes + sizeof slot->slot,
           slot->slot.column_count * sizeof *slot->columns);
    memcpy(slot->buffers, bytes + sizeof slot->slot + view->column_capacity * sizeof *slot->columns,
           slot->slot.buffer_count * sizeof *slot->buffers);
    for (uint32_t i = 0; i < slot->slot.column_count; i++) {
        tundish_status status =
            check_column(&slot->columns[i], tundish_column_spec_at(spec, i), slot);

        if (status != TUNDISH_OK)
            return status;
    }
    return TUNDISH_OK;
}

tundish_status
tnd_view_slot_read(const struct tnd_view *view, uint32_t index, struct tnd_view_slot *slot)
{
    const uint8_t *bytes = slot_bytes(view, index);

    must_in_debug(slot->columns != NULL && slot->buffers != NULL);
    memcpy(&slot->slot, bytes, sizeof slot->slot);
    if (slot->slot.text_bytes > TND_SLOT_TEXT)
        return damaged("the text of a slot");
    switch (slot->slot.kind) {
    case TND_SLOT_BATCH:
        return read_tables(view, bytes, slot);
    case TND_SLOT_ERROR:
        if (slot->slot.status >= 0)
            return damaged("the status of an error");
        return TUNDISH_OK;
    case TND_SLOT_END:
    case TND_SLOT_END_OF_STREAM:
    case TND_SLOT_STOPPED:
        return TUNDISH_OK;
    default:
        return damaged("the kind of a slot");
    }
}

tundish_status
tnd_view_slot_check_buffers(const struct tnd_view_slot *slot, uint64_t segment_bytes)
{
    for (uint32_t i = 0; i < slot->slot.buffer_count; i++) {
        const struct tnd_buffer *buffer = &slot->buffers[i];

        if (buffer->offset % TND_BUFFER_ALIGN != 0 ||
            !lies_inside(buffer->offset, buffer->stored_bytes, segment_bytes))
            return damaged("where a buffer is");
        /* A raw buffer is used where it lies, so its decoded size must lie in the segment too. */
        if (buffer->codec.number == TND_CODEC_RAW && buffer->stored_bytes != buffer->decoded_bytes)
            return damaged("the size of a buffer");
    }
    return TUNDISH_OK;
}

void
tnd_view_slot_text(const struct tnd_view *view, uint32_t index, const struct tnd_view_slot *slot,
                   char *text, size_t text_bytes)
{
    const uint8_t *from = slot_bytes(view, index) + view->slot_stride - TND_SLOT_TEXT;
    size_t bytes = slot->slot.text_bytes;

    must_in_debug(text_bytes > 0 && slot->slot.text_bytes <= TND_SLOT_TEXT);
    if (bytes > text_bytes - 1)
        bytes = text_bytes - 1;
    memcpy(text, from, bytes);
    text[bytes] = '\0';
    for (size_t i = 0; i < bytes; i++)
        if ((unsigned char)text[i] < ' ' && text[i] != '\n' && text[i] != '\t')
            text[i] = '?';
}

const struct tnd_line *
tnd_view_line(const struct tnd_view *view, uint32_t line)
{
    const uint8_t *bytes = (const uint8_t *)view->batches + view->lines_offset +
                           line * tnd_line_bytes(view->slot_count);

    must_in_debug(line < view->line_count);
    return (const struct tnd_line *)(const void *)bytes;
}

tundish_status
tnd_view_entry(const struct tnd_view *view, uint32_t line, uint64_t entry, uint32_t *ret_index)
{
    /* Relaxed, here and below: the acquire load of the counter that showed this entry orders it. */
    const uint64_t newest =
        line == 0 ? atomic_load_explicit(&view->batches->newest, memory_order_relaxed) : 0;
    uint32_t index = (uint32_t)newest;

    if (newest != TND_NEWEST(entry, index) || newest == 0) {
        const _Atomic uint32_t *slots =
            (const _Atomic uint32_t *)(const void *)(tnd_view_line(view, line) + 1);

        index = atomic_load_explicit(&slots[entry % view->slot_count], memory_order_relaxed);
    }
    if (index >= view->slot_count)
        return damaged("which slot is next");
    *ret_index = index;
    return TUNDISH_OK;
}
