/* content_expand_dims.c - tf.expand_dims: one more dimension, of size 1. */
#include <string.h>

#include "content/content.h"

struct expand_dims {
    int64_t axis;
    struct content_targets targets;
};

/* Describe `column` with a dimension of 1 at the axis. A negative axis counts from the end of the
 * result, which has one dimension more than the column. */
static tundish_status
open_column(const struct stage_config *config, const struct expand_dims *stage,
            struct column_spec *column, bool *batch_wide)
{
    int64_t axis = stage->axis < 0 ? stage->axis + column->rank + 1 : stage->axis;

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

static tundish_status
expand_dims_open(void *state, const struct stage_config *config, struct schema *ret_schema,
                 bool *ret_batch_wide)
{
    struct expand_dims *stage = state;
    tundish_status status = content_targets_open(config, ret_schema, &stage->targets);

    *ret_batch_wide = false;
    stage->axis = spec_int(config->stage, "axis");
    for (uint32_t i = 0; i < stage->targets.count && status == TUNDISH_OK; i++)
        status = open_column(config, stage, &ret_schema->columns[stage->targets.list[i].output],
                             ret_batch_wide);
    return status;
}

static tundish_status
expand_dims_apply(const void *state, const struct frame *input, struct frame *output)
{
    const struct expand_dims *stage = state;

    for (uint32_t i = 0; i < stage->targets.count; i++) {
        struct column *column = &output->columns[stage->targets.list[i].output];
        uint32_t axis;

        /* The values stay where they are: lists of one change no other level's splits. */
        *column = input->columns[stage->targets.list[i].input];
        axis = (uint32_t)(stage->axis < 0 ? stage->axis + column->level_count + 1 : stage->axis);
        memmove(&column->levels[axis + 1], &column->levels[axis],
                (column->level_count - axis) * sizeof *column->levels);
        column->levels[axis] = (struct level){ .uniform = 1 };
        column->level_count++;
    }
    return TUNDISH_OK;
}

static void
expand_dims_close(void *state)
{
    struct expand_dims *stage = state;

    content_targets_close(&stage->targets);
}

const struct content_ops content_expand_dims = {
    .name = "expand_dims",
    .takes_missing = true,
    .state_bytes = sizeof(struct expand_dims),
    .open = expand_dims_open,
    .apply = expand_dims_apply,
    .close = expand_dims_close,
};
