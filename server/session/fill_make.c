/* fill_make.c - slices that one thread makes whole, measures, and copies into their slots. */
#include "session/fill.h"

#include <string.h>

#include "core/must.h"

/* A bound on a column's bytes, so that the sum over all columns cannot overflow. */
#define COLUMN_BYTES_MAX (UINT64_C(1) << 44)

static uint64_t
string_bytes(const struct output_column *column)
{
    const struct byte_view *strings = column->values;
    uint64_t bytes = 0;

    for (int64_t i = 0; i < column->value_count; i++)
        bytes += strings[i].size;
    return bytes;
}

uint64_t
fill_values_bytes(const struct output_column *column)
{
    if (column->spec->dtype == TUNDISH_STRING)
        return string_bytes(column);
    return (uint64_t)column->value_count * tnd_dtype_bytes(column->spec->dtype);
}

static void
write_strings(const struct output_column *column, uint8_t *to)
{
    const struct byte_view *strings = column->values;

    for (int64_t i = 0; i < column->value_count; i++) {
        if (strings[i].size > 0)
            memcpy(to, strings[i].data, strings[i].size);
        to += strings[i].size;
    }
}

/* Encode the values if that makes them smaller, else leave them as they are. */
static tundish_status
encode_values(const struct fill *fill, uint32_t index, const struct output_column *column,
              struct evaluation *evaluation, struct tnd_codec_context *context,
              struct slot_buffer *buffer, void **ret_stored)
{
    const struct tnd_codec *codec = &fill->columns[index].codec;
    const void *values = column->values;
    uint64_t bytes = fill_values_bytes(column), bound, stored_bytes;
    tundish_status status;
    void *stored;

    must_in_debug(index < fill->plan->element_spec.count);
    *ret_stored = NULL;
    buffer->codec = (struct tnd_codec){ 0 };
    buffer->stored_bytes = buffer->decoded_bytes = bytes;
    if (codec->number == TND_CODEC_RAW || bytes == 0)
        return TUNDISH_OK;
    if (column->spec->dtype == TUNDISH_STRING) {
        uint8_t *joined = scratch_alloc(evaluation->scratch, bytes);

        write_strings(column, joined);
        values = joined;
    }
    if (tnd_codec_bound(codec, bytes, &bound) != TUNDISH_OK)
        return TUNDISH_OK;
    stored = scratch_alloc(evaluation->scratch, bound);
    status = tnd_codec_encode(codec, values, bytes, stored, bound, context, &stored_bytes);
    /* Values that the codec cannot hold, or cannot shrink, are stored as they are. Each slot says
     * how. */
    if (status == TUNDISH_E_DATA || (status == TUNDISH_OK && stored_bytes >= bytes))
        return TUNDISH_OK;
    if (status != TUNDISH_OK)
        return status;
    must_in_debug(stored_bytes <= bound);
    buffer->codec = *codec;
    buffer->stored_bytes = stored_bytes;
    *ret_stored = stored;
    return TUNDISH_OK;
}

/* Sizes of all buffers of a column, in the order that the slot has them. */
static void
describe_column(const struct output_column *column, struct slot_column *slot)
{
    struct slot_buffer *buffer = slot->buffers;

    must_in_debug(0 <= column->rank && column->rank <= RANK_MAX);
    must_in_debug(column->splits_count < slot->buffer_count);
    for (int k = 0; k < column->rank; k++)
        slot->shape[k] = column->shape[k];
    for (uint32_t k = 0; k < column->splits_count; k++, buffer++)
        buffer->stored_bytes = (uint64_t)column->splits_lengths[k] * sizeof(int64_t);
    if (column->spec->kind == TUNDISH_SPARSE) {
        buffer->stored_bytes = (uint64_t)(column->value_count * column->rank) * sizeof(int64_t);
        buffer++;
    }
    if (column->spec->dtype == TUNDISH_STRING)
        buffer->stored_bytes = (uint64_t)(column->value_count + 1) * sizeof(int64_t);
}

/* Make the columns, values at their destinations if they take these bytes (both NULL: nowhere). */
static tundish_status
make_columns(const struct fill *fill, struct evaluation *evaluation, const struct deal_slice *slice,
             const struct evaluate_request *wanted, struct output_column *columns)
{
    const struct schema *schema = &fill->plan->element_spec;
    struct evaluate_request request = {
        .words = slice->words,
        .stride = fill->plan->graph->root->width,
        .count = 1,
        .destinations = wanted->destinations,
        .destination_bytes = wanted->destination_bytes,
    };
    struct frame frame;
    tundish_status status;

    if (!slice->present || (fill->in_place && fill_rows(fill, slice) == 0)) {
        output_dummy(&fill->plan->graph->root->schema, columns);
        return TUNDISH_OK;
    }
    status = evaluate(evaluation, fill->plan->graph->root, &request, &frame);
    return status == TUNDISH_OK ? output_columns(&frame, schema, evaluation->scratch, columns)
                                : status;
}

tundish_status
fill_columns(const struct fill *fill, struct evaluation *evaluation, const struct deal_slice *slice,
             struct output_column *columns)
{
    return make_columns(fill, evaluation, slice, &(struct evaluate_request){ 0 }, columns);
}

bool
fill_expects(const struct fill *fill)
{
    bool expects = !fill->plan->stream->deliver.skip_errors;

    for (uint32_t i = 0; i < fill->plan->element_spec.count; i++) {
        const struct column_spec *spec = &fill->plan->element_spec.columns[i];

        expects &= spec->kind == TUNDISH_DENSE && spec->dtype != TUNDISH_STRING &&
                   fill->columns[i].codec.number == TND_CODEC_RAW;
    }
    return expects;
}

void
fill_expect(const struct fill *fill, const uint64_t *bytes, struct slot *slot)
{
    for (uint32_t i = 0; i < fill->plan->element_spec.count; i++) {
        struct slot_buffer *values = slot_values(slot, i);

        values->codec = (struct tnd_codec){ 0 };
        values->stored_bytes = values->decoded_bytes = bytes[i];
    }
}

/* Two columns may be one that passes twice, and then the values of both lie where the first's are
 * wanted. */
static bool
lies_in(struct slot *slot, const uint64_t *reserved, uint32_t count, const void *values)
{
    for (uint32_t i = 0; i < count; i++)
        if (reserved[i] > 0 && values == slot_values(slot, i)->data)
            return true;
    return false;
}

bool
fill_fits(const struct fill *fill, struct scratch *scratch, struct filled *filled,
          struct slot *slot)
{
    uint32_t count = fill->plan->element_spec.count;
    bool fits = true;

    must_in_debug(filled->reserved != NULL);
    for (uint32_t i = 0; i < count; i++)
        fits &= slot_values(slot, i)->stored_bytes <= filled->reserved[i];
    for (uint32_t i = 0; i < count && !fits; i++) {
        const struct slot_buffer *values = slot_values(slot, i);

        if (values->stored_bytes > 0 &&
            lies_in(slot, filled->reserved, count, filled->columns[i].values)) {
            void *copy = scratch_alloc(scratch, values->stored_bytes);

            memcpy(copy, filled->columns[i].values, values->stored_bytes);
            filled->columns[i].values = copy;
        }
    }
    return fits;
}

tundish_status
fill_make(const struct fill *fill, struct evaluation *evaluation, struct tnd_codec_context *context,
          const struct deal_slice *slice, struct slot *slot, struct filled *filled)
{
    uint32_t count = fill->plan->element_spec.count;
    void **destinations = scratch_array(evaluation->scratch, count, sizeof *destinations);
    struct evaluate_request wanted = { 0 };
    tundish_status status;

    filled->columns = scratch_array(evaluation->scratch, count, sizeof *filled->columns);
    filled->stored = scratch_array(evaluation->scratch, count, sizeof *filled->stored);
    for (uint32_t i = 0; filled->reserved != NULL && i < count; i++)
        destinations[i] = slot_values(slot, i)->data;
    if (filled->reserved != NULL) {
        wanted.destinations = destinations;
        wanted.destination_bytes = filled->reserved;
    }
    status = make_columns(fill, evaluation, slice, &wanted, filled->columns);
    for (uint32_t i = 0; status == TUNDISH_OK && i < count; i++) {
        describe_column(&filled->columns[i], &slot->columns[i]);
        status = encode_values(fill, i, &filled->columns[i], evaluation, context,
                               slot_values(slot, i), &filled->stored[i]);
    }
    return status;
}

bool
fill_is_sized(const struct fill *fill)
{
    for (uint32_t i = 0; i < fill->plan->element_spec.count; i++) {
        uint8_t number = fill->columns[i].codec.number;

        if (number != TND_CODEC_RAW && number != TND_CODEC_NARROW && number != TND_CODEC_BITPACK)
            return false;
    }
    return true;
}

/* Each buffer begins at an aligned address. */
static uint64_t
aligned_bytes(uint64_t bytes)
{
    return (bytes + TND_BUFFER_ALIGN - 1) / TND_BUFFER_ALIGN * TND_BUFFER_ALIGN;
}

void
fill_bytes_of_rows(const struct fill *fill, int64_t rows, struct slice_bytes *ret_bytes)
{
    struct slice_bytes all = { 0 };

    must_in_debug(rows >= 0);
    for (uint32_t i = 0; i < fill->plan->element_spec.count; i++) {
        const struct fill_column *column = &fill->columns[i];
        uint64_t bytes, stored;

        if (__builtin_mul_overflow((uint64_t)column->row_values, column->value_bytes, &bytes) ||
            __builtin_mul_overflow(bytes, (uint64_t)rows, &bytes) || bytes > COLUMN_BYTES_MAX)
            bytes = COLUMN_BYTES_MAX;
        if (tnd_codec_bound(&column->codec, bytes, &stored) != TUNDISH_OK || stored > bytes)
            stored = bytes;
        all.as_is += aligned_bytes(bytes);
        all.stored += aligned_bytes(stored);
    }
    *ret_bytes = all;
}

/* Bytes of all buffers of a described column except the values. */
static uint64_t
outline_bytes(const struct output_column *column)
{
    uint64_t bytes = 0;

    for (uint32_t k = 0; k < column->splits_count; k++)
        bytes += aligned_bytes((uint64_t)column->splits_lengths[k] * sizeof(int64_t));
    if (column->spec->kind == TUNDISH_SPARSE)
        bytes += aligned_bytes((uint64_t)(column->value_count * column->rank) * sizeof(int64_t));
    if (column->spec->dtype == TUNDISH_STRING)
        bytes += aligned_bytes((uint64_t)(column->value_count + 1) * sizeof(int64_t));
    return bytes;
}

tundish_status
fill_measure(const struct fill *fill, struct evaluation *evaluation,
             struct tnd_codec_context *context, const struct deal_slice *slice,
             struct slice_bytes *ret_bytes)
{
    uint32_t count = fill->plan->element_spec.count;
    struct output_column *columns = scratch_array(evaluation->scratch, count, sizeof *columns);
    struct slice_bytes all = { 0 };
    tundish_status status;

    if (fill->is_even && fill_is_sized(fill)) {
        fill_bytes_of_rows(fill, fill_rows(fill, slice), ret_bytes);
        return TUNDISH_OK;
    }
    status = fill_columns(fill, evaluation, slice, columns);
    for (uint32_t i = 0; status == TUNDISH_OK && i < count; i++) {
        uint64_t outline = outline_bytes(&columns[i]);
        struct slot_buffer values = { 0 };
        void *stored;

        status = encode_values(fill, i, &columns[i], evaluation, context, &values, &stored);
        all.as_is += outline + aligned_bytes(values.decoded_bytes);
        all.stored += outline + aligned_bytes(values.stored_bytes);
    }
    if (status == TUNDISH_OK)
        *ret_bytes = all;
    return status;
}

static void
copy_column(const struct output_column *column, const void *stored, struct slot_column *slot)
{
    struct slot_buffer *buffer = slot->buffers;
    struct slot_buffer *values = &slot->buffers[slot->buffer_count - 1];

    for (uint32_t k = 0; k < column->splits_count; k++, buffer++)
        memcpy(buffer->data, column->splits[k], buffer->stored_bytes);
    if (column->spec->kind == TUNDISH_SPARSE) {
        if (buffer->stored_bytes > 0)
            memcpy(buffer->data, column->indices, buffer->stored_bytes);
        buffer++;
    }
    if (column->spec->dtype == TUNDISH_STRING) {
        const struct byte_view *strings = column->values;
        int64_t *offsets = buffer->data;

        offsets[0] = 0;
        for (int64_t i = 0; i < column->value_count; i++)
            offsets[i + 1] = offsets[i] + (int64_t)strings[i].size;
        must_in_debug((uint64_t)offsets[column->value_count] == values->decoded_bytes);
        if (stored == NULL)
            write_strings(column, values->data);
    } else if (stored == NULL && values->stored_bytes > 0 && values->data != column->values) {
        memcpy(values->data, column->values, values->stored_bytes);
    }
    if (stored != NULL)
        memcpy(values->data, stored, values->stored_bytes);
}

void
fill_copy(const struct fill *fill, const struct filled *filled, struct slot *slot)
{
    for (uint32_t i = 0; i < fill->plan->element_spec.count; i++)
        copy_column(&filled->columns[i], filled->stored[i], &slot->columns[i]);
}
