/* fill.c - content into slots. */
#include "session/fill.h"

#include <stdlib.h>
#include <string.h>

#include "batch/verbatim.h"
#include "core/memory.h"

/* The size of a part: large enough to pay for the hand-over, small enough to stay in one
 * processor's cache. */
enum { PART_BYTES = 160 << 10, PART_ROWS_MIN = 64, PART_ROWS_MAX = 4096 };

/* A reader of a string in place may look at this many bytes after it (frame_texts). */
enum { TEXT_SLACK = 64 };

/* A bound on a column's bytes, so that the sum over all columns cannot overflow. */
#define COLUMN_BYTES_MAX (UINT64_C(1) << 44)

struct tnd_codec
fill_narrow_codec(const struct column_spec *spec)
{
    size_t bytes = tnd_dtype_bytes(spec->dtype);

    if (spec->has_range && (bytes == 4 || bytes == 8) && tnd_dtype_is_integer(spec->dtype))
        return tnd_codec_for_range((uint8_t)bytes, spec->minimum, spec->maximum);
    return (struct tnd_codec){ .number = TND_CODEC_RAW };
}

/* `auto` is decided later, when there is a first step to measure (compress.h). */
static struct tnd_codec
choose_codec(const struct spec_deliver *deliver, const struct column_spec *spec)
{
    struct tnd_codec codec = { .number = TND_CODEC_RAW };

    if (deliver->compression == COMPRESS_NARROW || deliver->compression == COMPRESS_ZSTD)
        codec = fill_narrow_codec(spec);
    if (deliver->compression == COMPRESS_ZSTD && codec.number == TND_CODEC_RAW)
        codec = (struct tnd_codec){
            .number = TND_CODEC_ZSTD,
            .width = 18,
            .level = (int8_t)deliver->zstd_level,
        };
    return codec;
}

static int64_t
values_of_row(const struct column_spec *spec)
{
    int64_t values = 1;

    if (spec->kind != TUNDISH_DENSE || spec->dtype == TUNDISH_STRING || spec->rank < 1)
        return -1;
    for (int k = 1; k < spec->rank; k++)
        if (spec->shape[k] < 0 || __builtin_mul_overflow(values, spec->shape[k], &values))
            return -1;
    return values;
}

static uint64_t (*row_bytes_of(const struct plan *plan, uint32_t column))(const uint64_t *words)
{
    const struct column_spec *spec = &plan->element_spec.columns[column];
    const struct source_ops *source = NULL;

    if (spec->kind == TUNDISH_DENSE && spec->dtype == TUNDISH_STRING && spec->rank == 1)
        source = verbatim_source(plan->graph->root, column);
    return source != NULL ? source->row_bytes : NULL;
}

void
fill_open(const struct plan *plan, struct fill *ret_fill)
{
    const struct schema *schema = &plan->element_spec;
    bool rows_known = plan->rows_apart && !plan->stream->deliver.skip_errors;
    struct fill fill = {
        .plan = plan,
        .columns = tnd_zalloc(schema->count, sizeof *fill.columns),
        .in_place = rows_known,
        .is_even = rows_known,
    };

    for (uint32_t i = 0; i < schema->count; i++) {
        const struct column_spec *spec = &schema->columns[i];
        struct fill_column *column = &fill.columns[i];

        column->row_values = values_of_row(spec);
        column->value_bytes = spec->dtype == TUNDISH_STRING ? 1 : tnd_dtype_bytes(spec->dtype);
        column->codec = choose_codec(&plan->stream->deliver, spec);
        column->row_bytes = row_bytes_of(plan, i);
        if ((column->row_values < 0 && column->row_bytes == NULL) ||
            column->codec.number != TND_CODEC_RAW)
            fill.in_place = false;
        fill.is_even &= column->row_values >= 0;
    }
    *ret_fill = fill;
}

bool
fill_open_packed(const struct fill *fill, bool keeps_zstd, struct fill *ret_fill)
{
    uint32_t count = fill->plan->element_spec.count;
    struct fill packed = *fill;
    bool differs = false;

    packed.columns = tnd_zalloc(count, sizeof *packed.columns);
    for (uint32_t i = 0; i < count; i++) {
        struct tnd_codec narrow = fill_narrow_codec(&fill->plan->element_spec.columns[i]);
        uint8_t number = fill->columns[i].codec.number;

        packed.columns[i] = fill->columns[i];
        if (narrow.number == TND_CODEC_RAW ||
            (number != TND_CODEC_RAW && (number != TND_CODEC_ZSTD || keeps_zstd)))
            continue;
        packed.columns[i].codec = narrow;
        packed.in_place = false;
        differs = true;
    }
    if (differs)
        *ret_fill = packed;
    else
        fill_close(&packed);
    return differs;
}

void
fill_close(struct fill *fill)
{
    free(fill->columns);
    *fill = (struct fill){ 0 };
}

int64_t
fill_rows(const struct fill *fill, const struct deal_slice *slice)
{
    (void)fill;
    return slice->present ? (int64_t)run_of_word(slice->words[0])->row_count : 0;
}

static int64_t
rows_of_part(uint64_t bytes, int64_t rows)
{
    uint64_t row = rows > 0 ? bytes / (uint64_t)rows : 0;
    uint64_t wanted = row > 0 ? PART_BYTES / row : PART_ROWS_MAX;

    if (row > PART_BYTES / 4) /* one huge row at a time is enough */
        return 4;
    return wanted < PART_ROWS_MIN   ? PART_ROWS_MIN
           : wanted > PART_ROWS_MAX ? PART_ROWS_MAX
                                    : (int64_t)wanted;
}

static uint64_t
texts_bytes(const struct fill_column *column, const struct deal_slice *slice, int64_t rows)
{
    const struct run *run = rows > 0 ? run_of_word(slice->words[0]) : NULL;
    uint64_t bytes = 0;

    for (int64_t i = 0; i < rows; i++)
        bytes += column->row_bytes(run->words + (size_t)i * run->width);
    return bytes;
}

int64_t
fill_describe(const struct fill *fill, const struct deal_slice *slice, struct slot *slot)
{
    const struct schema *schema = &fill->plan->element_spec;
    int64_t rows = fill_rows(fill, slice);
    uint64_t all = 0;

    for (uint32_t i = 0; i < schema->count; i++) {
        const struct column_spec *spec = &schema->columns[i];
        const struct fill_column *column = &fill->columns[i];
        struct slot_buffer *values = slot_values(slot, i);

        slot->columns[i].shape[0] = rows;
        for (int k = 1; k < spec->rank; k++)
            slot->columns[i].shape[k] = spec->shape[k];
        values->codec = (struct tnd_codec){ 0 };
        if (column->row_bytes == NULL) {
            values->stored_bytes = (uint64_t)(rows * column->row_values) * column->value_bytes;
        } else {
            slot->columns[i].buffers[0].stored_bytes = (uint64_t)(rows + 1) * sizeof(int64_t);
            /* set_text_offsets takes the slack off again: it is room in the arena, not content. */
            values->stored_bytes = texts_bytes(column, slice, rows) + TEXT_SLACK;
        }
        values->decoded_bytes = values->stored_bytes;
        all += values->stored_bytes;
    }
    return rows_of_part(all, rows);
}

/* Where each string will lie. */
static void
set_text_offsets(const struct fill_column *column, const struct deal_slice *slice,
                 struct slot_column *slot)
{
    const struct run *run = slice->present ? run_of_word(slice->words[0]) : NULL;
    struct slot_buffer *values = &slot->buffers[slot->buffer_count - 1];
    int64_t *offsets = slot->buffers[0].data;

    offsets[0] = 0;
    for (int64_t i = 0; i < slot->shape[0]; i++)
        offsets[i + 1] =
            offsets[i] + (int64_t)column->row_bytes(run->words + (size_t)i * run->width);
    values->stored_bytes = values->decoded_bytes = (uint64_t)offsets[slot->shape[0]];
}

/* Offsets come first: each part then knows where its strings begin, without waiting for the parts
 * before it. */
void
fill_begin(const struct fill *fill, const struct deal_slice *slice, struct slot *slot)
{
    for (uint32_t i = 0; i < fill->plan->element_spec.count; i++)
        if (fill->columns[i].row_bytes != NULL)
            set_text_offsets(&fill->columns[i], slice, &slot->columns[i]);
}

/* Where rows [begin, end) of a column lie in the slot. */
static void *
part_of_column(const struct fill_column *column, const struct slot_column *slot, int64_t begin,
               int64_t end, size_t *ret_bytes)
{
    uint8_t *data = slot->buffers[slot->buffer_count - 1].data;
    size_t row_bytes = (size_t)column->row_values * column->value_bytes;

    if (column->row_bytes != NULL) {
        const int64_t *offsets = slot->buffers[0].data;

        *ret_bytes = (size_t)(offsets[end] - offsets[begin]);
        return data + offsets[begin];
    }
    *ret_bytes = (size_t)(end - begin) * row_bytes;
    return data + (size_t)begin * row_bytes;
}

/* Stages write to the destination if they can. Values that were made elsewhere are copied. */
static tundish_status
copy_values(const char *name, const struct column *column, size_t value_bytes, void *to,
            size_t bytes)
{
    if ((size_t)column->value_count * value_bytes != bytes)
        return tnd_fail(TUNDISH_E_DATA, "column '%s' has %lld values; expected %zu", name,
                        (long long)column->value_count, bytes / value_bytes);
    if (column->values != to && bytes > 0)
        memcpy(to, column->values, bytes);
    return TUNDISH_OK;
}

/* The file may have changed since its index was made, so compare each length with the one that the
 * slot has room for. */
static tundish_status
bring_texts(const char *name, const struct column *column, int64_t begin, int64_t end,
            const struct slot_column *slot)
{
    const struct byte_view *texts = column->values;
    const int64_t *offsets = slot->buffers[0].data;
    uint8_t *data = slot->buffers[slot->buffer_count - 1].data;

    if (column->value_count != end - begin)
        return tnd_fail(TUNDISH_E_DATA, "column '%s' has %lld values; expected %lld", name,
                        (long long)column->value_count, (long long)(end - begin));
    for (int64_t i = begin; i < end; i++) {
        const struct byte_view *text = &texts[i - begin];

        if (text->size != (uint64_t)(offsets[i + 1] - offsets[i]))
            return tnd_fail(TUNDISH_E_DATA, "column '%s': a row has %llu bytes; expected %lld",
                            name, (unsigned long long)text->size,
                            (long long)(offsets[i + 1] - offsets[i]));
        if (text->data != data + offsets[i] && text->size > 0)
            memcpy(data + offsets[i], text->data, text->size);
    }
    return TUNDISH_OK;
}

tundish_status
fill_part(const struct fill *fill, struct evaluation *evaluation, const struct deal_slice *slice,
          int64_t begin, int64_t end, struct slot *slot)
{
    const struct plan_node *root = fill->plan->graph->root;
    const struct run *run = run_of_word(slice->words[0]);
    struct run part = {
        .width = run->width,
        .run_words = run->run_words,
        .element_count = (uint64_t)(end - begin),
        .words = run->words + (size_t)begin * run->width,
    };
    uint64_t word = run_word(&part);
    uint32_t count = root->schema.count;
    void **destinations = scratch_array(evaluation->scratch, count, sizeof *destinations);
    size_t *bytes = scratch_array(evaluation->scratch, count, sizeof *bytes);
    struct evaluate_request request = {
        .words = &word,
        .stride = 1,
        .count = 1,
        .destinations = destinations,
        .destination_bytes = bytes,
    };
    struct frame frame;
    tundish_status status;

    for (uint32_t i = 0; i < count; i++)
        destinations[i] =
            part_of_column(&fill->columns[i], &slot->columns[i], begin, end, &bytes[i]);
    status = evaluate(evaluation, root, &request, &frame);
    for (uint32_t i = 0; i < count && status == TUNDISH_OK; i++) {
        const char *name = root->schema.columns[i].name;

        status = fill->columns[i].row_bytes != NULL
                     ? bring_texts(name, &frame.columns[i], begin, end, &slot->columns[i])
                     : copy_values(name, &frame.columns[i], fill->columns[i].value_bytes,
                                   destinations[i], bytes[i]);
    }
    return status;
}

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

tundish_status
fill_columns(const struct fill *fill, struct evaluation *evaluation, const struct deal_slice *slice,
             struct output_column *columns)
{
    const struct schema *schema = &fill->plan->element_spec;
    struct evaluate_request request = {
        .words = slice->words,
        .stride = fill->plan->graph->root->width,
        .count = 1,
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
fill_make(const struct fill *fill, struct evaluation *evaluation, struct tnd_codec_context *context,
          const struct deal_slice *slice, struct slot *slot, struct filled *ret_filled)
{
    uint32_t count = fill->plan->element_spec.count;
    struct filled filled = {
        .columns = scratch_array(evaluation->scratch, count, sizeof *filled.columns),
        .stored = scratch_array(evaluation->scratch, count, sizeof *filled.stored),
    };
    tundish_status status = fill_columns(fill, evaluation, slice, filled.columns);

    for (uint32_t i = 0; status == TUNDISH_OK && i < count; i++) {
        describe_column(&filled.columns[i], &slot->columns[i]);
        status = encode_values(fill, i, &filled.columns[i], evaluation, context,
                               slot_values(slot, i), &filled.stored[i]);
    }
    if (status == TUNDISH_OK)
        *ret_filled = filled;
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
        if (stored == NULL)
            write_strings(column, values->data);
    } else if (stored == NULL && values->stored_bytes > 0) {
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
