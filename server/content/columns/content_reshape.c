/* content_reshape.c - tf.reshape: the same values in other dimensions. */
#include <string.h>

#include "column/dims.h"
#include "content/column_wise.h"

struct reshape {
    struct column_wise wise;
    uint32_t rank;
    int64_t shape[RANK_MAX]; /* -1: at most one, computed from the values */
};

/* Read the parameter `shape`. YAML's null means the same as -1, as None does in TensorFlow. */
static tundish_status
read_shape(void *state, const struct stage_config *config)
{
    struct reshape *stage = state;
    const struct spec_value *shape = spec_get(config->stage, "shape");
    uint32_t unknown = 0;

    if (shape->count > RANK_MAX)
        return spec_complain(config->errors, shape->line, shape->column,
                             "a shape has at most %d dimensions", RANK_MAX);
    stage->rank = shape->count;
    for (uint32_t i = 0; i < shape->count; i++) {
        const struct spec_value *item = &shape->items[i];

        stage->shape[i] = item->kind == SPEC_NULL ? -1 : item->integer;
        unknown += stage->shape[i] == -1;
        if (stage->shape[i] < -1)
            return spec_complain(config->errors, item->line, item->column,
                                 "a dimension is -1 or at least 0, not %lld",
                                 (long long)item->integer);
    }
    if (unknown > 1)
        return spec_complain(config->errors, shape->line, shape->column,
                             "only one dimension may be -1");
    return TUNDISH_OK;
}

/* Compute the dimension that is -1 from the number of values. False: the shape cannot have that
 * many. Products may overflow, since the file may contain any dimensions. */
static bool
fit(const struct reshape *stage, int64_t values, int64_t dims[RANK_MAX])
{
    int64_t known = 1;
    int unknown = -1;

    for (uint32_t k = 0; k < stage->rank; k++) {
        dims[k] = stage->shape[k];
        if (dims[k] < 0)
            unknown = (int)k;
        else if (__builtin_mul_overflow(known, dims[k], &known))
            return false;
    }
    if (unknown < 0)
        return known == values;
    /* With a dimension of 0, any size would do for the unknown one: tf.reshape refuses that too. */
    if (known == 0 || values % known != 0)
        return false;
    dims[unknown] = values / known;
    return true;
}

/* Whether each row of a batch keeps its values: dimension 0 is -1, and the other dimensions hold as
 * many values as a row. Then the stage may see any part of a batch. */
static bool
keeps_rows(const struct reshape *stage, const struct column_spec *column)
{
    int64_t row = 1, made = 1;

    if (column->rank < 1 || stage->rank < 1 || stage->shape[0] != -1)
        return false;
    for (int k = 1; k < column->rank; k++)
        if (column->shape[k] < 0 || __builtin_mul_overflow(row, column->shape[k], &row))
            return false;
    for (uint32_t k = 1; k < stage->rank; k++)
        if (__builtin_mul_overflow(made, stage->shape[k], &made))
            return false;
    return row == made;
}

/* Whether some size of the unknown dimensions could make the shape hold. An overflow means that
 * nothing is known: each element is checked later. */
static bool
may_fit(const struct reshape *stage, const struct column_spec *column)
{
    int64_t known = 1, wanted = 1;

    for (int k = 0; k < column->rank; k++)
        if (column->shape[k] >= 0 && __builtin_mul_overflow(known, column->shape[k], &known))
            return true;
    for (uint32_t k = 0; k < stage->rank; k++)
        if (stage->shape[k] < 0 || __builtin_mul_overflow(wanted, stage->shape[k], &wanted))
            return true;
    return known == 0 ? wanted == 0 : wanted % known == 0;
}

static tundish_status
describe(void *state, const struct stage_config *config, void *own, struct column_spec *column,
         bool *batch_wide)
{
    const struct reshape *stage = state;
    int64_t values = column_spec_values(column), dims[RANK_MAX];
    char from[128], to[128];

    (void)own;
    if (column->kind != TUNDISH_DENSE)
        return stage_complain(config, "reshape: '%s' is %s; use to_dense", column->name,
                              column->kind == TUNDISH_SPARSE ? "sparse" : "ragged");
    if (values >= 0 && !fit(stage, values, dims))
        return stage_complain(config,
                              "reshape: '%s' has %lld values (shape %s), which do not "
                              "fit into %s",
                              column->name, (long long)values,
                              dims_text(column->shape, (uint32_t)column->rank, from),
                              dims_text(stage->shape, stage->rank, to));
    if (values < 0 && column->rank != RANK_UNKNOWN && !may_fit(stage, column))
        return stage_complain(config, "reshape: '%s' of shape %s never fits into %s", column->name,
                              dims_text(column->shape, (uint32_t)column->rank, from),
                              dims_text(stage->shape, stage->rank, to));
    if (config->depth > 0 && !keeps_rows(stage, column))
        *batch_wide = true;
    column->rank = (int)stage->rank;
    memcpy(column->shape, values >= 0 ? dims : stage->shape, stage->rank * sizeof *dims);
    return TUNDISH_OK;
}

/* Compute the new dimensions of one element. Reject the element if its values do not fit. */
static void
fit_element(const struct reshape *stage, const struct column *from, int64_t element,
            struct frame *output, int64_t *dims)
{
    char text[128];
    int64_t begin, end;

    column_value_range(from, element, element + 1, &begin, &end);
    if (fit(stage, end - begin, dims))
        return;
    frame_reject(output, element, "reshape: %lld values do not fit into %s",
                 (long long)(end - begin), dims_text(stage->shape, stage->rank, text));
    /* Keep the element's number of values, so that the values of later elements stay where they
     * are. */
    for (uint32_t k = 0; k < stage->rank; k++)
        dims[k] = k == 0 ? end - begin : 1;
}

static void
map_column(const void *state, const struct column_map *map)
{
    const struct reshape *stage = state;
    const struct column *from = map->from;
    struct scratch *scratch = map->output->scratch;
    int64_t *dims =
        scratch_array(scratch, (size_t)from->count * stage->rank + RANK_MAX, sizeof *dims);

    for (int64_t i = 0; i < from->count; i++)
        fit_element(stage, from, i, map->output, &dims[i * stage->rank]);
    /* An empty frame needs a shape all the same, for the plan promised one. */
    if (from->count == 0)
        for (uint32_t k = 0; k < stage->rank; k++)
            dims[k] = stage->shape[k] < 0 ? 0 : stage->shape[k];
    column_set_dims_each(map->to, from->count, stage->rank, dims, scratch);
    map->to->values = from->values;
}

static const struct column_wise_ops columns = {
    .read = read_shape,
    .describe = describe,
    .map = map_column,
};

const struct content_ops content_reshape = {
    .name = "reshape",
    .takes_missing = true,
    .state_bytes = sizeof(struct reshape),
    .columns = &columns,
    .open = column_wise_open,
    .apply = column_wise_apply,
    .close = column_wise_close,
};
