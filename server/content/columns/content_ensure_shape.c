/* content_ensure_shape.c - tf.ensure_shape: a row of another shape is bad. */

#include "column/dims.h"
#include "content/column_wise.h"

struct ensure_shape {
    struct column_wise wise;
    uint32_t rank;
    int64_t shape[RANK_MAX]; /* -1: any */
};

static tundish_status
read_shape(void *state, const struct stage_config *config)
{
    struct ensure_shape *stage = state;
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
describe(void *state, const struct stage_config *config, void *own, struct column_spec *column,
         bool *batch_wide)
{
    const struct ensure_shape *stage = state;

    (void)own;
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

static void
check_elements(const void *state, const struct column_map *map)
{
    const struct ensure_shape *stage = state;
    int64_t dims[RANK_MAX];
    char is[128], wanted[128];

    *map->to = *map->from;
    for (int64_t row = 0; row < map->from->count && !all_fit(stage, map->from); row++)
        if (!fits(stage, map->from, row, dims))
            frame_reject(map->output, row, "ensure_shape: column '%s' has the shape %s, not %s",
                         map->spec->name, dims_text(dims, stage->rank, is),
                         dims_text(stage->shape, stage->rank, wanted));
}

static const struct column_wise_ops columns = {
    .read = read_shape,
    .describe = describe,
    .map = check_elements,
};

const struct content_ops content_ensure_shape = {
    .name = "ensure_shape",
    .takes_missing = true,
    .state_bytes = sizeof(struct ensure_shape),
    .columns = &columns,
    .open = column_wise_open,
    .apply = column_wise_apply,
    .close = column_wise_close,
};
