/* content_pad_or_truncate.c - give one dimension a fixed length. */
#include <string.h>

#include "column/dims.h"
#include "content/column_wise.h"
#include "content/columns/filler.h"

struct pad_or_truncate {
    struct column_wise wise;
    int64_t length;
};

struct padded {
    uint32_t axis;
    struct filler fill;
};

static tundish_status
read_length(void *state, const struct stage_config *config)
{
    struct pad_or_truncate *stage = state;

    stage->length = spec_int(config->stage, "length");
    return TUNDISH_OK;
}

/* Describe `column` with the axis at the length. If the axis is the last ragged dimension, one
 * ragged dimension fewer is left, and none means a dense column. */
static tundish_status
describe(void *state, const struct stage_config *config, void *own, struct column_spec *column,
         bool *batch_wide)
{
    const struct pad_or_truncate *stage = state;
    struct padded *padded = own;
    int64_t axis = spec_int(config->stage, "axis");
    int64_t k = axis < 0 ? axis + column->rank : axis;

    if (column->kind == TUNDISH_SPARSE || column->rank == RANK_UNKNOWN)
        return stage_complain(
            config,
            "pad_or_truncate: '%s' is sparse or of unknown rank; use to_ragged or reshape first",
            column->name);
    if (k < 0 || k >= column->rank)
        return stage_complain(config,
                              "pad_or_truncate: axis %lld is outside: '%s' has rank "
                              "%d",
                              (long long)axis, column->name, column->rank);
    if (column->kind == TUNDISH_RAGGED && k < column->ragged_rank)
        return stage_complain(config,
                              "pad_or_truncate: dimensions after axis %lld of '%s' are ragged; pad "
                              "the last axis first",
                              (long long)axis, column->name);
    *batch_wide |= config->depth > 0 && k == 0;
    padded->axis = (uint32_t)k;
    column->shape[k] = stage->length;
    if (column->kind == TUNDISH_RAGGED && k == column->ragged_rank && --column->ragged_rank == 0)
        column->kind = TUNDISH_DENSE;
    /* The default, 0, means "" where strings are padded. */
    return filler_open(spec_given(config->stage, "value") ? spec_get(config->stage, "value") : NULL,
                       column->dtype, "value", config->errors, &padded->fill);
}

/* Values in each item of the list `list` of level `axis`. The dimensions after the axis form a box,
 * so all items hold equally many. An empty list shows no item: take the sizes that hold for every
 * element, and 0 for the others. */
static int64_t
item_values(const struct column *from, uint32_t axis, int64_t list)
{
    int64_t values = 1, at = level_begin(&from->levels[axis], list);

    if (level_length(&from->levels[axis], list) == 0) {
        for (uint32_t k = axis + 1; k < from->level_count; k++)
            values *= from->levels[k].uniform >= 0 ? from->levels[k].uniform : 0;
        return values;
    }
    for (uint32_t k = axis + 1; k < from->level_count; k++) {
        values *= level_length(&from->levels[k], at);
        at = level_begin(&from->levels[k], at);
        if (values == 0)
            break;
    }
    return values;
}

static void
resize(const struct pad_or_truncate *stage, const struct padded *padded, const struct column *from,
       struct frame *output, uint32_t index)
{
    uint32_t axis = padded->axis;
    const struct level *level = &from->levels[axis];
    size_t bytes = padded->fill.bytes;
    int64_t lists = column_list_count(from, axis), total = 0, value = 0;
    int64_t *sizes = scratch_array(output->scratch, (size_t)lists + 1, sizeof *sizes);
    struct column *column = &output->columns[index];
    uint8_t *to;

    for (int64_t i = 0; i < lists; i++) {
        /* Lists of different elements may hold items of different sizes, so the total needs a pass
         * of its own. */
        sizes[i] = item_values(from, axis, i);
        total += sizes[i] * stage->length;
    }
    *column = *from;
    column->levels[axis] = (struct level){ .uniform = stage->length };
    column->value_count = total;
    to = frame_values(output, index, (size_t)total * bytes);
    column->values = to;
    for (int64_t i = 0; i < lists; i++) {
        int64_t length = level_length(level, i);
        int64_t taken = length < stage->length ? length : stage->length;
        size_t copied = (size_t)(taken * sizes[i]) * bytes;

        if (copied > 0) /* of no values there may be no array */
            memcpy(to, (const uint8_t *)from->values + (size_t)value * bytes, copied);
        filler_repeat(&padded->fill, to + copied, (stage->length - taken) * sizes[i]);
        to += (size_t)(stage->length * sizes[i]) * bytes;
        value += length * sizes[i];
    }
}

/* Levels after the axis that are not uniform have one entry for each item, and the axis now has
 * another number of items: write their splits again. */
static void
renew_inner_levels(const struct pad_or_truncate *stage, const struct padded *padded,
                   const struct column *from, struct frame *output, struct column *column)
{
    uint32_t rank = from->level_count;
    int64_t *dims;
    const void *values = column->values;
    bool is_uniform = true;

    for (uint32_t k = padded->axis + 1; k < rank; k++)
        is_uniform &= from->levels[k].uniform >= 0;
    if (is_uniform)
        return;
    dims = scratch_array(output->scratch, (size_t)from->count * rank, sizeof *dims);
    for (int64_t i = 0; i < from->count; i++) {
        column_dims(from, i, &dims[i * rank]);
        dims[i * rank + padded->axis] = stage->length;
    }
    column_set_dims_each(column, from->count, rank, dims, output->scratch);
    column->values = values;
}

static void
map_column(const void *state, const struct column_map *map)
{
    const struct pad_or_truncate *stage = state;

    resize(stage, map->own, map->from, map->output, map->at);
    renew_inner_levels(stage, map->own, map->from, map->output, map->to);
}

static void
close_padded(void *own)
{
    struct padded *padded = own;

    filler_close(&padded->fill);
}

static const struct column_wise_ops columns = {
    .own_bytes = sizeof(struct padded),
    .read = read_length,
    .describe = describe,
    .map = map_column,
    .close_own = close_padded,
};

const struct content_ops content_pad_or_truncate = {
    .name = "pad_or_truncate",
    .takes_missing = true,
    .state_bytes = sizeof(struct pad_or_truncate),
    .columns = &columns,
    .open = column_wise_open,
    .apply = column_wise_apply,
    .close = column_wise_close,
};
