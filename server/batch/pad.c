/* pad.c - padded_batch: makes the lists of each level equally long. */
#include "batch/pad.h"

#include <string.h>

#include "batch/column_combine.h"
#include "column/dims.h"
#include "core/bytes.h"
#include "core/half.h"
#include "core/memory.h"
#include "core/must.h"
#include "order/arguments.h"
#include "shm/segment.h"

/* The value of a parameter for this column: an entry of a map, or the value for all columns. NULL:
 * none. */
static const struct spec_value *
parameter_for(const struct plan_node *node, const char *parameter, const char *column)
{
    const struct spec_value *value = spec_get(node->stage, parameter);

    if (value == NULL || value->kind == SPEC_NULL)
        return NULL;
    if (value->kind == SPEC_MAP)
        value = spec_map_get(value, column);
    return value == NULL || value->kind == SPEC_NULL ? NULL : value;
}

/* Write one padding value of the column's dtype to `to`; 0 or "" by default. */
static void
padding_value(const struct plan_node *node, const struct column_spec *spec, void *to)
{
    const struct spec_value *value = parameter_for(node, "padding_values", spec->name);
    double number = value != NULL ? value->number : 0;
    int64_t integer = value == NULL                 ? 0
                      : value->kind == SPEC_BOOL    ? value->boolean
                      : value->kind == SPEC_NUMBER  ? (int64_t)value->number
                      : value->kind == SPEC_NATURAL ? (int64_t)value->natural
                                                    : value->integer;

    switch (spec->dtype) {
    case TUNDISH_STRING:
        *(struct byte_view *)to = (struct byte_view){
            .data = (const uint8_t *)(value != NULL ? value->text : ""),
            .size = value != NULL ? value->text_bytes : 0,
        };
        break;
    case TUNDISH_FLOAT64:
        memcpy(to, &number, sizeof number);
        break;
    case TUNDISH_FLOAT32:
        memcpy(to, &(float){ (float)number }, sizeof(float));
        break;
    case TUNDISH_FLOAT16:
        memcpy(to, &(uint16_t){ tnd_half_from_double(number) }, sizeof(uint16_t));
        break;
    case TUNDISH_BFLOAT16:
        memcpy(to, &(uint16_t){ tnd_bfloat_from_double(number) }, sizeof(uint16_t));
        break;
    default:
        memcpy(to, &integer, tnd_dtype_bytes(spec->dtype)); /* little-endian */
    }
}

struct padding {
    const struct column *from;
    size_t value_bytes;
    const void *value;
    int64_t lengths[RANK_MAX]; /* of this batch, level by level */
    uint8_t *to;
};

static void
fill_padding(struct padding *padding, int64_t count)
{
    must_in_debug(count >= 0); /* no list is longer than what it is padded to */
    for (int64_t i = 0; i < count; i++, padding->to += padding->value_bytes)
        memcpy(padding->to, padding->value, padding->value_bytes);
}

/* The number of values below one list of level k after padding. INT64_MAX: overflow. */
static int64_t
padded_count(const struct padding *padding, uint32_t k)
{
    int64_t count = 1;

    for (; k < padding->from->level_count; k++)
        if (__builtin_mul_overflow(count, padding->lengths[k], &count))
            return INT64_MAX;
    return count;
}

/* Check the memory that padding takes: one long list among many short ones lengthens all of them.
 */
static tundish_status
check_room(const struct plan_node *node, const struct column_spec *spec, int64_t count,
           size_t value_bytes)
{
    struct tnd_room room;

    if (tnd_segment_memory_holds((uint64_t)count, value_bytes, 0, &room))
        return TUNDISH_OK;
    return tnd_fail(TUNDISH_E_MEMORY,
                    "%s: column '%s' of a batch would take %llu bytes when its rows are padded: "
                    "use smaller batches, padded_shapes, ragged_batch or bucket_by_sequence_length",
                    node->name, spec->name, (unsigned long long)room.wanted_bytes);
}

/* Write list `index` of level k, padded. */
static void
pad_list(struct padding *padding, uint32_t k, int64_t index)
{
    const struct level *level = &padding->from->levels[k];
    int64_t begin = level_begin(level, index);
    int64_t length = level_length(level, index);

    if (k + 1 == padding->from->level_count) {
        size_t bytes = (size_t)length * padding->value_bytes;

        if (bytes > 0)
            memcpy(padding->to,
                   (const uint8_t *)padding->from->values + (size_t)begin * padding->value_bytes,
                   bytes);
        padding->to += bytes;
    } else {
        for (int64_t i = 0; i < length; i++)
            pad_list(padding, k + 1, begin + i);
    }
    fill_padding(padding, (padding->lengths[k] - length) * padded_count(padding, k + 1));
}

/* The longest list of each level below batch `index`. */
static void
longest(const struct column *column, uint32_t k, int64_t index, int64_t *lengths)
{
    int64_t length = level_length(&column->levels[k], index);
    int64_t begin = level_begin(&column->levels[k], index);

    if (length > lengths[k])
        lengths[k] = length;
    if (k + 1 < column->level_count)
        for (int64_t i = 0; i < length; i++)
            longest(column, k + 1, begin + i, lengths);
}

static bool
pads_to_boundary(const struct plan_node *node)
{
    const struct batch_arguments *arguments = node->arguments;

    return arguments->to_boundary;
}

/* With pad_to_bucket_boundary: the length to which unknown dimensions of a row (list `row` of level
 * `k`) are padded, one less than the boundary above its length, as in tf.data. The column that
 * gives the length may be the length. -1: none. */
static int64_t
bucket_length(const struct plan_node *node, const struct frame *frame, uint32_t k, int64_t row)
{
    const struct spec_value *boundaries = spec_get(node->stage, "bucket_boundaries");
    int32_t by = schema_find(&node->schema, spec_text(node->stage, "column"));
    const struct column *column = by < 0 ? NULL : &frame->columns[by];
    int64_t length;

    if (column == NULL || column->level_count < k)
        return -1;
    length = column->level_count == k ? ((const int64_t *)column->values)[row]
                                      : level_length(&column->levels[k], row);
    for (uint32_t i = 0; i < boundaries->count; i++)
        if (length < boundaries->items[i].integer)
            return boundaries->items[i].integer - 1;
    return -1;
}

/* The fixed length of each dimension of a batch, from padded_shapes or static. -1: pad to the
 * longest row or to the length of the bucket. */
static void
fixed_lengths(const struct plan_node *node, const struct column_spec *spec, uint32_t level_count,
              int64_t fixed[RANK_MAX])
{
    const struct spec_value *shape = parameter_for(node, "padded_shapes", spec->name);

    for (uint32_t k = 1; k < level_count; k++)
        fixed[k] = shape != NULL && shape->kind == SPEC_LIST && k - 1 < shape->count &&
                           shape->items[k - 1].kind == SPEC_INTEGER
                       ? shape->items[k - 1].integer
                       : spec->shape[k];
}

void
pad_check_rows(const struct plan_node *node, uint32_t column_index, struct frame *rows)
{
    const struct column_spec *spec = &node->schema.columns[column_index];
    const struct column *column = &rows->columns[column_index];
    bool to_boundary = pads_to_boundary(node);
    int64_t fixed[RANK_MAX];

    fixed_lengths(node, spec, column->level_count + 1, fixed);
    for (int64_t row = 0; row < column->count; row++) {
        int64_t bucket = to_boundary ? bucket_length(node, rows, 0, row) : -1;
        int64_t lengths[RANK_MAX] = { 0 };

        longest(column, 0, row, lengths);
        for (uint32_t k = 0; k < column->level_count; k++) {
            int64_t wanted = fixed[k + 1] >= 0 ? fixed[k + 1] : bucket;

            if (wanted >= 0 && lengths[k] > wanted)
                frame_reject(
                    rows, row,
                    "%s: column '%s' has a row whose dimension %u is %lld, longer than the "
                    "%lld it should be padded to",
                    node->name, spec->name, k, (long long)lengths[k], (long long)wanted);
        }
    }
}

const int64_t *
pad_bucket_lengths(const struct plan_node *node, const struct frame *frame)
{
    const struct column *column;
    int64_t *lengths;
    int32_t by;

    if (!pads_to_boundary(node))
        return NULL;
    by = schema_find(&node->schema, spec_text(node->stage, "column"));
    if (by < 0)
        return NULL;
    column = &frame->columns[by];
    lengths = scratch_array(frame->scratch, (size_t)column->count, sizeof *lengths);
    for (int64_t i = 0; i < column->count; i++)
        lengths[i] = level_length(&column->levels[0], i) == 0
                         ? -1
                         : bucket_length(node, frame, 1, level_begin(&column->levels[0], i));
    return lengths;
}

/* The length of a dimension that is the same in all rows, so that batches whose rows are all empty
 * in an outer dimension have it too; 0: unknown. */
static int64_t
known_length(const struct plan_node *node, uint32_t column_index, const struct level *level,
             uint32_t k)
{
    const struct column_spec *row = &node->inputs[0]->schema.columns[column_index];

    if (level->uniform >= 0)
        return level->uniform;
    return (int)k <= row->rank && row->shape[k - 1] > 0 ? row->shape[k - 1] : 0;
}

/* The lengths to which batch `index` is padded by default. */
static void
batch_lengths(const struct plan_node *node, uint32_t column_index, const struct frame *frame,
              int64_t index, int64_t *lengths)
{
    const struct column *column = &frame->columns[column_index];

    must_in_debug(index < column->count);
    memset(lengths, 0, RANK_MAX * sizeof *lengths);
    for (uint32_t k = 1; k < column->level_count; k++)
        lengths[k] = known_length(node, column_index, &column->levels[k], k);
    longest(column, 0, index, lengths);
}

tundish_status
pad_column(const struct plan_node *node, uint32_t column_index, const int64_t *bucket_lengths,
           struct frame *frame)
{
    const struct column_spec *spec = &node->schema.columns[column_index];
    struct column *column = &frame->columns[column_index];
    uint32_t rank = column->level_count;
    uint64_t value[2];
    struct padding padding = {
        .from = column,
        .value_bytes = column_value_bytes(spec->dtype),
        .value = value,
    };
    struct column result;
    int64_t *lengths = scratch_array(frame->scratch, (size_t)column->count * rank, sizeof *lengths);
    int64_t fixed[RANK_MAX], count = 0;
    tundish_status status;

    fixed_lengths(node, spec, rank, fixed);
    padding_value(node, spec, value);
    for (int64_t i = 0; i < column->count; i++) {
        int64_t bucket = bucket_lengths != NULL ? bucket_lengths[i] : -1;

        batch_lengths(node, column_index, frame, i, padding.lengths);
        for (uint32_t k = 1; k < rank; k++)
            if (fixed[k] >= 0 || bucket >= 0)
                padding.lengths[k] = fixed[k] >= 0 ? fixed[k] : bucket;
        memcpy(&lengths[i * rank], padding.lengths, rank * sizeof *lengths);
        if (__builtin_add_overflow(count, padded_count(&padding, 0), &count))
            count = INT64_MAX;
    }
    status = check_room(node, spec, count, padding.value_bytes);
    if (status != TUNDISH_OK)
        return status;
    column_set_dims_each(&result, column->count, rank, lengths, frame->scratch);
    padding.to = scratch_array(frame->scratch, (size_t)count, padding.value_bytes);
    result.values = padding.to;
    for (int64_t i = 0; i < column->count; i++) {
        memcpy(padding.lengths, &lengths[i * rank], rank * sizeof *lengths);
        pad_list(&padding, 0, i);
    }
    must_in_debug(padding.to ==
                  (const uint8_t *)result.values + (size_t)count * padding.value_bytes);
    must_in_debug(column_list_count(&result, rank) == count);
    *column = result;
    return TUNDISH_OK;
}
