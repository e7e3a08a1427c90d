/* content_ensure_shape.c - tf.ensure_shape: a row of another shape is bad. */
#include <stdlib.h>

#include "column/dims.h"
#include "content/content.h"

struct ensure_shape {
    uint32_t rank;
    int64_t shape[RANK_MAX]; /* -1: any */
    struct content_targets targets;
};

static tundish_status
read_shape(const struct stage_config *config, struct ensure_shape *stage)
{
    const struct spec_value *shape = spec_get(config->stage, "shape");

    if (shape->count > RANK_MAX)
        return spec_complain(config->errors, shape->line, shape->column,
                             "a shape has at most %d dimensions", RANK_MAX);
    stage->rank = shape->count;
    for (uint32_t k = 0; k < shape->count; k++) {
        const struct spec_value *item = &shape->items[k];

        stage->shape[k] = item->kind == SPEC_NULL ? -1 : item->integer;
        if (stage->shape[k] < -1)
            return spec_complain(config->errors, item->line, item->column,
                                 "a dimension is -1 or at least 0, not %lld",
                                 (long long)item->integer);
    }
    return TUNDISH_OK;
}

static tundish_status
never_fits(const struct stage_config *config, const struct ensure_shape *stage,
           const struct column_spec *column)
{
    char from[128], to[128];

    return stage_complain(config, "ensure_shape: '%s' has the shape %s, never %s", column->name,
                          dims_text(column->shape, (uint32_t)column->rank, from),
                          dims_text(stage->shape, stage->rank, to));
}

/* Put what the shape tells into the plan's column. */
static tundish_status
open_column(const struct stage_config *config, const struct ensure_shape *stage,
            struct column_spec *column, bool *batch_wide)
{
    if (column->kind == TUNDISH_SPARSE || column->rank == RANK_UNKNOWN)
        return stage_complain(config, "ensure_shape: '%s' is %s", column->name,
                              column->kind == TUNDISH_SPARSE ? "sparse; use to_dense"
                                                             : "of unknown rank; use reshape");
    if (column->rank != (int)stage->rank)
        return never_fits(config, stage, column);
    for (uint32_t k = 0; k < stage->rank; k++) {
        if (stage->shape[k] < 0)
            continue;
        if (column->shape[k] >= 0 && column->shape[k] != stage->shape[k])
            return never_fits(config, stage, column);
        *batch_wide |= config->depth > 0 && k == 0 && column->shape[0] < 0;
        /* A RaggedTensor keeps no static size of its ragged dimensions. */
        if (column->kind == TUNDISH_DENSE || (int)k > column->ragged_rank)
            column->shape[k] = stage->shape[k];
    }
    return TUNDISH_OK;
}

static tundish_status
ensure_shape_open(void *state, const struct stage_config *config, struct schema *ret_schema,
                  bool *ret_batch_wide)
{
    struct ensure_shape *stage = state;
    tundish_status status = read_shape(config, stage);

    *ret_batch_wide = false;
    if (status == TUNDISH_OK)
        status = content_targets_open(config, ret_schema, &stage->targets);
    for (uint32_t i = 0; i < stage->targets.count && status == TUNDISH_OK; i++)
        status = open_column(config, stage, &ret_schema->columns[stage->targets.list[i].output],
                             ret_batch_wide);
    return status;
}

/* Are all lists of the element as long as the shape says? If not, its dimensions go to ret_dims:
 * of lists of several lengths in one dimension, the first that is wrong. */
static bool
fits(const struct ensure_shape *stage, const struct column *column, int64_t element,
     int64_t ret_dims[RANK_MAX])
{
    int64_t begin = element, end = element + 1;
    bool is_right = true;

    column_dims(column, element, ret_dims);
    for (uint32_t k = 0; k < column->level_count; k++) {
        const struct level *level = &column->levels[k];

        for (int64_t list = begin; stage->shape[k] >= 0 && list < end; list++)
            if (level_length(level, list) != stage->shape[k]) {
                ret_dims[k] = level_length(level, list);
                is_right = false;
                break;
            }
        begin = level_begin(level, begin);
        end = level_begin(level, end);
    }
    return is_right;
}

/* Do the levels alone tell that each element has the shape? */
static bool
all_fit(const struct ensure_shape *stage, const struct column *column)
{
    for (uint32_t k = 0; k < column->level_count; k++)
        if (stage->shape[k] >= 0 && column->levels[k].uniform != stage->shape[k])
            return false;
    return true;
}

static tundish_status
ensure_shape_apply(const void *state, const struct frame *input, struct frame *output)
{
    const struct ensure_shape *stage = state;

    for (uint32_t i = 0; i < stage->targets.count; i++) {
        uint32_t from = stage->targets.list[i].input, to = stage->targets.list[i].output;
        const struct column *column = &input->columns[from];
        int64_t dims[RANK_MAX];
        char is[128], wanted[128];

        output->columns[to] = *column;
        for (int64_t row = 0; row < column->count && !all_fit(stage, column); row++)
            if (!fits(stage, column, row, dims))
                frame_reject(output, row, "ensure_shape: column '%s' has the shape %s, not %s",
                             input->schema->columns[from].name, dims_text(dims, stage->rank, is),
                             dims_text(stage->shape, stage->rank, wanted));
    }
    return TUNDISH_OK;
}

static void
ensure_shape_close(void *state)
{
    struct ensure_shape *stage = state;

    content_targets_close(&stage->targets);
}

const struct content_ops content_ensure_shape = {
    .name = "ensure_shape",
    .takes_missing = true,
    .state_bytes = sizeof(struct ensure_shape),
    .open = ensure_shape_open,
    .apply = ensure_shape_apply,
    .close = ensure_shape_close,
};
