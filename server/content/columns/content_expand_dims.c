/* content_expand_dims.c - tf.expand_dims: one more dimension, of size 1. */
#include <string.h>

#include "content/column_wise.h"

struct expand_dims {
    struct column_wise wise;
    int64_t axis;
};

static tundish_status
read_axis(void *state, const struct stage_config *config)
{
    struct expand_dims *stage = state;

    stage->axis = spec_int(config->stage, "axis");
    return TUNDISH_OK;
}

/* Describe `column` with a dimension of 1 at the axis. A negative axis counts from the end of the
 * result, which has one dimension more than the column. */
static tundish_status
describe(void *state, const struct stage_config *config, void *own, struct column_spec *column,
         bool *batch_wide)
{
    struct expand_dims *stage = state;
    int64_t axis = stage->axis < 0 ? stage->axis + column->rank + 1 : stage->axis;

    (void)own;
    if (column->kind == TUNDISH_SPARSE || column->rank == RANK_UNKNOWN)
        return stage_complain(config, "expand_dims: '%s' is %s", column->name,
                              column->kind == TUNDISH_SPARSE ? "sparse; use to_dense"
                                                             : "of unknown rank");
    if (axis < 0 || axis > column->rank || column->rank == RANK_MAX)
        return stage_complain(config, "expand_dims: axis %lld is outside: '%s' has rank %d",
                              (long long)stage->axis, column->name, column->rank);
    /* After `batch`, dimension 0 is that of the batch: a new one before it takes the rows
     * together. */
    if (config->depth > 0 && axis == 0)
        *batch_wide = true;
    memmove(&column->shape[axis + 1], &column->shape[axis],
            (size_t)(column->rank - axis) * sizeof *column->shape);
    column->shape[axis] = 1;
    column->rank++;
    if (column->kind == TUNDISH_RAGGED && axis <= column->ragged_rank) {
        if (axis == 0 && column->ragged_rank > 1)
            column->shape[1] = -1; /* TensorFlow does not keep the number of rows */
        /* A new dimension among the ragged ones becomes a ragged one, even though its lists all
         * hold one item. */
        column->ragged_rank++;
    }
    return TUNDISH_OK;
}

static void
expand(const void *state, const struct column_map *map)
{
    const struct expand_dims *stage = state;
    struct column *column = map->to;
    uint32_t axis;

    /* The values stay where they are: lists of one change no other level's splits. */
    *column = *map->from;
    axis = (uint32_t)(stage->axis < 0 ? stage->axis + column->level_count + 1 : stage->axis);
    memmove(&column->levels[axis + 1], &column->levels[axis],
            (column->level_count - axis) * sizeof *column->levels);
    column->levels[axis] = (struct level){ .uniform = 1 };
    column->level_count++;
}

static const struct column_wise_ops columns = {
    .read = read_axis,
    .describe = describe,
    .map = expand,
};

const struct content_ops content_expand_dims = {
    .name = "expand_dims",
    .takes_missing = true,
    .state_bytes = sizeof(struct expand_dims),
    .columns = &columns,
    .open = column_wise_open,
    .apply = column_wise_apply,
    .close = column_wise_close,
};
