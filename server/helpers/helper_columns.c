/* helper_columns.c - the columns of whole slices as bytes: all shapes, sizes and codecs, then the
 * buffers one after the other. */
#include <string.h>

#include "batch/portable.h"
#include "helpers/helper_wire.h"
#include "session/fill.h"

struct buffer_head {
    struct tnd_codec codec;
    uint64_t decoded_bytes, stored_bytes;
};

uint64_t
helper_head_bytes(const struct slot *slot)
{
    return slot->column_count * sizeof slot->columns->shape +
           slot->buffer_count * sizeof(struct buffer_head);
}

/* Only values are encoded; of others the slot states no decoded size. */
static bool
is_values(const struct slot *slot, uint32_t column, uint32_t buffer)
{
    return buffer + 1 == slot->columns[column].buffer_count;
}

void
helper_write_head(const struct slot *slot, struct portable_bytes *to)
{
    for (uint32_t i = 0; i < slot->column_count; i++) {
        const struct slot_column *column = &slot->columns[i];

        portable_add(to, column->shape, sizeof column->shape);
        for (uint32_t k = 0; k < column->buffer_count; k++) {
            const struct slot_buffer *buffer = &column->buffers[k];
            struct buffer_head head = { .stored_bytes = buffer->stored_bytes };

            if (is_values(slot, i, k)) {
                head.codec = buffer->codec;
                head.decoded_bytes = buffer->decoded_bytes;
            }
            portable_add(to, &head, sizeof head);
        }
    }
}

static tundish_status
complain(const struct column_spec *spec, const char *what)
{
    return tnd_fail(TUNDISH_E_CORRUPT, "column '%s': %s", spec->name, what);
}

static bool
same_codec(const struct tnd_codec *codec, const struct tnd_codec *other)
{
    return codec->number == other->number && codec->value_bytes == other->value_bytes &&
           codec->width == other->width && codec->level == other->level &&
           codec->base == other->base;
}

static bool
take_head(struct byte_view *from, struct slot_buffer *buffer, bool holds_values)
{
    struct buffer_head head;

    if (!portable_take(from, &head, sizeof head) || head.stored_bytes > HELPER_ANSWER_BYTES ||
        head.decoded_bytes > HELPER_ANSWER_BYTES)
        return false;
    if (!holds_values && (head.codec.number != TND_CODEC_RAW || head.decoded_bytes != 0))
        return false;
    buffer->codec = (struct tnd_codec){ 0 };
    if (head.codec.number != TND_CODEC_RAW) {
        buffer->codec = head.codec;
        buffer->codec.reserved = 0;
    }
    buffer->decoded_bytes = head.decoded_bytes;
    buffer->stored_bytes = head.stored_bytes;
    return true;
}

/* Offsets or row splits: from 0, never down. Returns where they end, or -1. */
static int64_t
end_of_steps(const struct slot_buffer *buffer)
{
    const uint8_t *steps = buffer->data;
    uint64_t count = buffer->stored_bytes / sizeof(int64_t);
    int64_t last = 0;

    if (buffer->stored_bytes % sizeof(int64_t) != 0 || count == 0)
        return -1;
    for (uint64_t i = 0; i < count; i++) {
        int64_t step = (int64_t)load_u64(steps + i * sizeof step);

        if (step < last || (i == 0 && step != 0))
            return -1;
        last = step;
    }
    return last;
}

static int64_t
step_count(const struct slot_buffer *buffer)
{
    return (int64_t)(buffer->stored_bytes / sizeof(int64_t)) - 1;
}

/* Trainers put values where the indices of a sparse column say. */
static bool
are_within(const struct slot_buffer *indices, const struct slot_column *column, int rank)
{
    const uint8_t *index = indices->data;
    uint64_t count = indices->stored_bytes / sizeof(int64_t);

    for (uint64_t i = 0; i < count; i++, index += sizeof(int64_t)) {
        int64_t at = (int64_t)load_u64(index);

        if (at < 0 || at >= column->shape[i % (uint64_t)rank])
            return false;
    }
    return true;
}

/* How many values the outer buffers promise; -1: they do not fit together. */
static int64_t
promised_values(const struct column_spec *spec, const struct slot_column *column,
                uint32_t *ret_used)
{
    int64_t values = 1;
    int rank = spec->rank, flat_from = 0;
    uint32_t used = 0;

    if (spec->kind == TUNDISH_SPARSE) {
        const struct slot_buffer *indices = &column->buffers[used++];
        uint64_t row = (uint64_t)rank * sizeof(int64_t);

        *ret_used = used;
        return row == 0 || indices->stored_bytes % row != 0 || !are_within(indices, column, rank)
                   ? -1
                   : (int64_t)(indices->stored_bytes / row);
    }
    if (spec->kind == TUNDISH_RAGGED) {
        values = column->shape[0];
        for (; (int)used < spec->ragged_rank; used++) {
            const struct slot_buffer *splits = &column->buffers[used];
            int64_t end = end_of_steps(splits);

            if (end < 0 || step_count(splits) != values)
                return -1;
            values = end;
        }
        flat_from = spec->ragged_rank + 1;
    }
    for (int k = flat_from; k < rank; k++)
        if (column->shape[k] < 0 || __builtin_mul_overflow(values, column->shape[k], &values))
            return -1;
    *ret_used = used;
    return values;
}

static bool
is_shape(const struct column_spec *spec, const struct slot_column *column)
{
    for (int k = 0; k < spec->rank; k++) {
        int64_t size = column->shape[k], promised = spec->shape[k];

        if (spec->kind == TUNDISH_RAGGED && k > 0 && k <= spec->ragged_rank) {
            if (size != -1)
                return false;
            continue;
        }
        /* A slice may have fewer rows, and a sparse column's bound be narrower. */
        if (size < 0 || (promised >= 0 && size > promised) ||
            (promised >= 0 && k > 0 && spec->kind != TUNDISH_SPARSE && size != promised))
            return false;
    }
    return true;
}

/* The values are stored as they are, or by the codec that was asked for: as many bytes as it makes,
 * where that follows from the values' number. */
static bool
is_stored_as_asked(const struct slot_buffer *values, const struct tnd_codec *asked)
{
    uint64_t stored;

    if (values->codec.number == TND_CODEC_RAW)
        return values->stored_bytes == values->decoded_bytes;
    return same_codec(&values->codec, asked) && values->stored_bytes < values->decoded_bytes &&
           tnd_codec_bound(asked, values->decoded_bytes, &stored) == TUNDISH_OK &&
           (asked->number == TND_CODEC_ZSTD || values->stored_bytes == stored);
}

static tundish_status
check_column(const struct fill *fill, uint32_t index, const struct slot_column *column)
{
    const struct column_spec *spec = &fill->plan->element_spec.columns[index];
    const struct slot_buffer *values = &column->buffers[column->buffer_count - 1];
    uint64_t bytes;
    uint32_t used;
    int64_t count;

    if (!is_shape(spec, column))
        return complain(spec, "its shape is not that of the stream");
    count = promised_values(spec, column, &used);
    if (count < 0)
        return complain(spec, "its buffers do not fit together");
    if (spec->dtype == TUNDISH_STRING) {
        int64_t end = end_of_steps(&column->buffers[used]);

        if (end < 0 || step_count(&column->buffers[used]) != count)
            return complain(spec, "the offsets of its strings make no sense");
        bytes = (uint64_t)end;
        used++;
    } else if (__builtin_mul_overflow((uint64_t)count, tnd_dtype_bytes(spec->dtype), &bytes)) {
        return complain(spec, "it is too large");
    }
    if (used + 1 != column->buffer_count || values->decoded_bytes != bytes)
        return complain(spec, "it has not as many values as its shape says");
    if (!is_stored_as_asked(values, &fill->columns[index].codec))
        return complain(spec, "it is stored in another way");
    return TUNDISH_OK;
}

tundish_status
helper_read_columns(const struct fill *fill, struct byte_view *heads, struct byte_view *buffers,
                    struct slot *slot)
{
    tundish_status status = TUNDISH_OK;

    for (uint32_t i = 0; i < slot->column_count; i++) {
        struct slot_column *column = &slot->columns[i];

        if (!portable_take(heads, column->shape, sizeof column->shape))
            return tnd_fail(TUNDISH_E_CORRUPT, "the columns are cut off");
        for (uint32_t k = 0; k < column->buffer_count; k++)
            if (!take_head(heads, &column->buffers[k], is_values(slot, i, k)))
                return tnd_fail(TUNDISH_E_CORRUPT, "the columns are cut off");
    }
    for (uint32_t i = 0; i < slot->buffer_count; i++) {
        struct slot_buffer *buffer = &slot->buffers[i];

        if (buffer->stored_bytes > buffers->size)
            return tnd_fail(TUNDISH_E_CORRUPT, "the columns are cut off");
        buffer->data = (void *)(uintptr_t)buffers->data;
        buffers->data += buffer->stored_bytes;
        buffers->size -= buffer->stored_bytes;
    }
    for (uint32_t i = 0; status == TUNDISH_OK && i < slot->column_count; i++)
        status = check_column(fill, i, &slot->columns[i]);
    return status;
}
