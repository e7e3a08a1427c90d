/* content_reshape.c - tf.reshape: the same values in other dimensions. */
#include <stdlib.h>
#include <string.h>

#include "column/dims.h"
#include "content/content.h"

struct reshape {
    uint32_t rank;
    int64_t shape[RANK_MAX]; /* -1: at most one, computed from the values */
    struct content_targets targets;
};

/* Read the parameter `shape`. YAML's null means the same as -1, as None does in TensorFlow. */
static tundish_status
read_shape(const struct stage_config *config, struct reshape *stage)
{
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
open_column(const struct stage_config *config, const struct reshape *stage,
            struct column_spec *column, bool *batch_wide)
{
    int64_t values = column_spec_values(column), dims[RANK_MAX];
    char from[128], to[128];

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

static tundish_status
reshape_open(void *state, const struct stage_config *config, struct schema *ret_schema,
             bool *ret_batch_wide)
{
    struct reshape *stage = state;
    tundish_status status = read_shape(config, stage);

    *ret_batch_wide = false;
    if (status == TUNDISH_OK)
        status = content_targets_open(config, ret_schema, &stage->targets);
    for (uint32_t i = 0; i < stage->targets.count && status == TUNDISH_OK; i++)
        status = open_column(config, stage, &ret_schema->columns[stage->targets.list[i].output],
                             ret_batch_wide);
    return status;
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
apply_column(const struct reshape *stage, const struct column *from, struct frame *output,
             struct column *to)
{
    int64_t *dims =
        scratch_array(output->scratch, (size_t)from->count * stage->rank + RANK_MAX, sizeof *dims);

    for (int64_t i = 0; i < from->count; i++)
        fit_element(stage, from, i, output, &dims[i * stage->rank]);
    /* An empty frame needs a shape all the same, for the plan promised one. */
    if (from->count == 0)
        for (uint32_t k = 0; k < stage->rank; k++)
            dims[k] = stage->shape[k] < 0 ? 0 : stage->shape[k];
    column_set_dims_each(to, from->count, stage->rank, dims, output->scratch);
    to->values = from->values;
}

static tundish_status
reshape_apply(const void *state, const struct frame *input, struct frame *output)
{
    const struct reshape *stage = state;

    for (uint32_t i = 0; i < stage->targets.count; i++)
        apply_column(stage, &input->columns[stage->targets.list[i].input], output,
                     &output->columns[stage->targets.list[i].output]);
    return TUNDISH_OK;
}

static void
reshape_close(void *state)
{
    struct reshape *stage = state;

    content_targets_close(&stage->targets);
}

const struct content_ops content_reshape = {
    .name = "reshape",
    .takes_missing = true,
    .state_bytes = sizeof(struct reshape),
    .open = reshape_open,
    .apply = reshape_apply,
    .close = reshape_close,
};
