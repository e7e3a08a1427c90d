/* content_one_hot.c - tf.one_hot: vectors with one entry set. */
#include <string.h>

#include "column/convert.h"
#include "column/dims.h"
#include "content/column_wise.h"
#include "content/columns/filler.h"

struct one_hot {
    struct column_wise wise;
    int64_t depth, axis; /* axis -1: after the last */
    tundish_dtype dtype;
    struct filler on, off;
};

static bool
is_given(const struct spec_value *value)
{
    return value != NULL && value->kind != SPEC_NULL;
}

/* The dtype that tf.one_hot would infer from a Python value: int32 where it fits, float32 for a
 * float. */
static tundish_dtype
dtype_of(const struct spec_value *value)
{
    switch (value->kind) {
    case SPEC_BOOL:
        return TUNDISH_BOOL;
    case SPEC_TEXT:
        return TUNDISH_STRING;
    case SPEC_NUMBER:
        return TUNDISH_FLOAT32;
    default:
        return value->integer == (int32_t)value->integer ? TUNDISH_INT32 : TUNDISH_INT64;
    }
}

/* Fill in `name`, or `otherwise` (1 or 0) if the file leaves it out. A string or a boolean has no
 * such default in TensorFlow. */
static tundish_status
read_value(const struct stage_config *config, const struct one_hot *stage, const char *name,
           int64_t otherwise, struct filler *fill)
{
    const struct spec_value *value = spec_get(config->stage, name);

    if (!is_given(value) && (stage->dtype == TUNDISH_STRING || stage->dtype == TUNDISH_BOOL))
        return stage_complain(config, "one_hot of %ss needs both on_value and off_value",
                              tnd_dtype_name(stage->dtype));
    if (is_given(value))
        return filler_open(value, stage->dtype, name, config->errors, fill);
    *fill = (struct filler){ .dtype = stage->dtype, .bytes = tnd_dtype_bytes(stage->dtype) };
    convert_values(stage->dtype, fill->value.raw, TUNDISH_INT64, &otherwise, 1);
    return TUNDISH_OK;
}

static tundish_status
read_values(void *state, const struct stage_config *config)
{
    struct one_hot *stage = state;
    const struct spec_value *on = spec_get(config->stage, "on_value");
    const struct spec_value *off = spec_get(config->stage, "off_value");
    const struct spec_value *dtype = spec_get(config->stage, "dtype");
    const struct spec_value *axis = spec_get(config->stage, "axis");
    tundish_status status;

    stage->depth = spec_int(config->stage, "depth");
    stage->axis = is_given(axis) ? axis->integer : -1;
    /* The order in which tf.one_hot settles the dtype: `dtype`, then on_value, then off_value, then
     * float32. */
    stage->dtype = is_given(dtype) ? spec_dtype(config->stage, "dtype")
                   : is_given(on)  ? dtype_of(on)
                   : is_given(off) ? dtype_of(off)
                                   : TUNDISH_FLOAT32;
    status = read_value(config, stage, "on_value", 1, &stage->on);
    return status != TUNDISH_OK ? status : read_value(config, stage, "off_value", 0, &stage->off);
}

/* Describe `column` with a dimension of `depth` at the axis. Ragged rows take it only as the last
 * one, where the rows' splits do not change. */
static tundish_status
describe(void *state, const struct stage_config *config, void *own, struct column_spec *column,
         bool *batch_wide)
{
    const struct one_hot *stage = state;
    int64_t axis = stage->axis < 0 ? column->rank : stage->axis;

    (void)own;
    if (column->dtype != TUNDISH_UINT8 && column->dtype != TUNDISH_INT8 &&
        column->dtype != TUNDISH_INT32 && column->dtype != TUNDISH_INT64)
        return stage_complain(config,
                              "one_hot: '%s' is %s; expected integers: uint8, int8, int32 or int64",
                              column->name, tnd_dtype_name(column->dtype));
    if (column->kind == TUNDISH_SPARSE || column->rank == RANK_UNKNOWN ||
        column->rank == RANK_MAX || (column->kind == TUNDISH_RAGGED && axis != column->rank))
        return stage_complain(config, "one_hot: '%s' must be dense, of known rank", column->name);
    if (axis > column->rank)
        return stage_complain(config, "one_hot: axis %lld is outside: '%s' has rank %d",
                              (long long)stage->axis, column->name, column->rank);
    if (config->depth > 0 && axis == 0)
        *batch_wide = true;
    memmove(&column->shape[axis + 1], &column->shape[axis],
            (size_t)(column->rank - axis) * sizeof *column->shape);
    column->shape[axis] = stage->depth;
    column->rank++;
    column->dtype = stage->dtype;
    column->has_range = false;
    return TUNDISH_OK;
}

/* Write on_value at (outer, index, inner) for the index at (outer, inner). An index outside
 * 0..depth - 1 leaves off_value everywhere, as tf.one_hot does. */
static void
set_entries(const struct one_hot *stage, const int64_t *indices, int64_t outer, int64_t inner,
            size_t bytes, uint8_t *values)
{
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < inner; i++) {
            int64_t index = indices[o * inner + i];

            if (index >= 0 && index < stage->depth)
                memcpy(values + (size_t)((o * stage->depth + index) * inner + i) * bytes,
                       stage->on.value.raw, bytes);
        }
}

/* Give `column` the dimensions of `from` with `depth` inserted at `axis`, which is not the last. */
static void
insert_depth(const struct one_hot *stage, const struct column *from, uint32_t axis,
             struct scratch *scratch, struct column *column)
{
    uint32_t rank = from->level_count + 1;
    int64_t *dims = scratch_array(scratch, (size_t)from->count * rank + RANK_MAX, sizeof *dims);

    for (int64_t i = 0; i < from->count; i++) {
        int64_t *own = &dims[i * rank], before[RANK_MAX];

        column_dims(from, i, before);
        memcpy(own, before, axis * sizeof *own);
        own[axis] = stage->depth;
        memcpy(own + axis + 1, before + axis, (rank - 1 - axis) * sizeof *own);
    }
    column_set_dims_each(column, from->count, rank, dims, scratch);
}

static void
map_column(const void *state, const struct column_map *map)
{
    const struct one_hot *stage = state;
    const struct column *from = map->from;
    struct column *column = map->to;
    uint32_t axis = stage->axis < 0 ? from->level_count : (uint32_t)stage->axis;
    size_t bytes = stage->on.bytes;
    int64_t total = from->value_count * stage->depth;
    uint8_t *values = frame_values(map->output, map->at, (size_t)total * bytes);
    const int64_t *indices =
        convert_column(TUNDISH_INT64, map->spec->dtype, from, map->output->scratch);

    /* Write off_value everywhere first: the few entries that are on are scattered. */
    filler_repeat(&stage->off, values, total);
    *column = *from;
    column->value_count = total;
    column->values = values;
    /* With the new dimension last, elements of different shapes need no distinction: each value
     * becomes `depth` values in place. */
    if (axis == from->level_count) {
        set_entries(stage, indices, from->value_count, 1, bytes, values);
        column->levels[column->level_count++] = (struct level){ .uniform = stage->depth };
        return;
    }
    for (int64_t i = 0; i < from->count; i++) {
        int64_t dims[RANK_MAX], begin, end;

        column_dims(from, i, dims);
        column_value_range(from, i, i + 1, &begin, &end);
        set_entries(stage, indices + begin, dims_product(dims, axis),
                    dims_product(dims + axis, from->level_count - axis), bytes,
                    values + (size_t)(begin * stage->depth) * bytes);
    }
    insert_depth(stage, from, axis, map->output->scratch, column);
    /* column_set_dims_each cleared the column. */
    column->values = values;
}

static void
close_values(void *state)
{
    struct one_hot *stage = state;

    filler_close(&stage->on);
    filler_close(&stage->off);
}

static const struct column_wise_ops columns = {
    .read = read_values,
    .describe = describe,
    .map = map_column,
    .close = close_values,
};

const struct content_ops content_one_hot = {
    .name = "one_hot",
    .takes_missing = true,
    .state_bytes = sizeof(struct one_hot),
    .columns = &columns,
    .open = column_wise_open,
    .apply = column_wise_apply,
    .close = column_wise_close,
};
