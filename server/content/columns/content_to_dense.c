/* content_to_dense.c - ragged and sparse columns as boxes: tf.sparse.to_dense and
 * tf.RaggedTensor.to_tensor. */
#include <stdlib.h>
#include <string.h>

#include "column/dims.h"
#include "content/columns/filler.h"
#include "content/content.h"
#include "core/memory.h"

struct to_dense {
    bool has_shape;
    uint32_t rank;
    int64_t shape[RANK_MAX]; /* -1: as large as it takes */
    struct content_targets targets;
    struct filler *fills; /* for each target */
    bool *is_bounded;     /* for each target: sparse, in a shape that is given */
};

static tundish_status
read_shape(const struct stage_config *config, struct to_dense *stage)
{
    const struct spec_value *shape = spec_get(config->stage, "shape");

    if (shape == NULL || shape->kind == SPEC_NULL)
        return TUNDISH_OK;
    if (shape->count > RANK_MAX)
        return spec_complain(config->errors, shape->line, shape->column,
                             "a shape has at most %d dimensions", RANK_MAX);
    stage->has_shape = true;
    stage->rank = shape->count;
    for (uint32_t i = 0; i < shape->count; i++)
        stage->shape[i] = shape->items[i].kind == SPEC_NULL ? -1 : shape->items[i].integer;
    return TUNDISH_OK;
}

/* Describe `column` as dense. A dimension without a given size becomes as large as the largest list
 * of the batch, so that the rows of a batch depend on each other. */
static tundish_status
open_column(const struct stage_config *config, const struct to_dense *stage,
            struct column_spec *column, bool *batch_wide)
{
    if (column->kind == TUNDISH_DENSE)
        return stage_complain(
            config, "to_dense: '%s' is dense already; use pad_or_truncate to change its length",
            column->name);
    if (column->rank == RANK_UNKNOWN || (stage->has_shape && (int)stage->rank != column->rank))
        return stage_complain(config, "to_dense: the shape has rank %u, but '%s' has rank %d",
                              stage->rank, column->name, column->rank);
    for (int k = 0; k < column->rank; k++) {
        bool is_set = stage->has_shape && stage->shape[k] >= 0;

        if (is_set)
            column->shape[k] = stage->shape[k];
        if (config->depth > 0 && (k == 0 ? is_set : column->shape[k] < 0))
            *batch_wide = true;
    }
    column->kind = TUNDISH_DENSE;
    column->ragged_rank = 0;
    return TUNDISH_OK;
}

static tundish_status
to_dense_open(void *state, const struct stage_config *config, struct schema *ret_schema,
              bool *ret_batch_wide)
{
    struct to_dense *stage = state;
    tundish_status status = read_shape(config, stage);

    *ret_batch_wide = false;
    if (status == TUNDISH_OK)
        status = content_targets_open(config, ret_schema, &stage->targets);
    stage->fills = tnd_zalloc(stage->targets.count + 1, sizeof *stage->fills);
    stage->is_bounded = tnd_zalloc(stage->targets.count + 1, sizeof *stage->is_bounded);
    for (uint32_t i = 0; i < stage->targets.count && status == TUNDISH_OK; i++) {
        struct column_spec *column = &ret_schema->columns[stage->targets.list[i].output];

        status = filler_open(spec_get(config->stage, "default_value"), column->dtype,
                             "default_value", config->errors, &stage->fills[i]);
        stage->is_bounded[i] = stage->has_shape && column->kind == TUNDISH_SPARSE;
        if (status == TUNDISH_OK)
            status = open_column(config, stage, column, ret_batch_wide);
    }
    return status;
}

/* The length of the longest list in each level of one element. */
static void
longest_lists(const struct column *from, int64_t element, int64_t *dims)
{
    int64_t begin = element, end = element + 1;

    for (uint32_t k = 0; k < from->level_count; k++) {
        const struct level *level = &from->levels[k];

        dims[k] = level->uniform >= 0 ? level->uniform : 0;
        for (int64_t list = begin; list < end && level->uniform < 0; list++)
            if (level_length(level, list) > dims[k])
                dims[k] = level_length(level, list);
        begin = level_begin(level, begin);
        end = level_begin(level, end);
    }
}

/* The dimensions of one element's box: the given ones, else the sparse shape or the longest
 * lists. */
static void
box_of(const struct to_dense *stage, const struct column *from, int64_t element, int64_t *dims)
{
    uint32_t rank = from->level_count;

    if (from->dense_shape != NULL)
        memcpy(dims, &from->dense_shape[element * rank], rank * sizeof *dims);
    else
        longest_lists(from, element, dims);
    for (uint32_t k = 0; k < rank && stage->has_shape; k++)
        if (stage->shape[k] >= 0)
            dims[k] = stage->shape[k];
}

/* Copy a list of level `k` into its part of the box, and cut off what does not fit. The recursion
 * is at most RANK_MAX deep. */
static void
put_list(const struct column *from, uint32_t k, int64_t list, const int64_t *dims, size_t bytes,
         uint8_t *to)
{
    const struct level *level = &from->levels[k];
    int64_t begin = level_begin(level, list), length = level_length(level, list);
    int64_t taken = length < dims[k] ? length : dims[k];
    size_t step = bytes * (size_t)dims_product(dims + k + 1, from->level_count - k - 1);

    if (k + 1 == from->level_count) {
        memcpy(to, (const uint8_t *)from->values + (size_t)begin * bytes, (size_t)taken * bytes);
        return;
    }
    for (int64_t i = 0; i < taken; i++)
        put_list(from, k + 1, begin + i, dims, bytes, to + (size_t)i * step);
}

/* Write a sparse element's values at their coordinates. Coordinates come from data, so each is
 * checked against the box. */
static void
put_sparse(const struct column *from, int64_t element, const int64_t *dims, size_t bytes,
           uint8_t *to)
{
    uint32_t rank = from->level_count;
    int64_t begin, end;

    column_value_range(from, element, element + 1, &begin, &end);
    for (int64_t v = begin; v < end; v++) {
        int64_t at = 0;
        bool is_inside = true;

        for (uint32_t k = 0; k < rank; k++) {
            int64_t index = from->indices[v * rank + k];

            is_inside &= index >= 0 && index < dims[k];
            at = at * dims[k] + index;
        }
        if (is_inside)
            memcpy(to + (size_t)at * bytes, (const uint8_t *)from->values + (size_t)v * bytes,
                   bytes);
    }
}

/* Does all of an element lie in its box? tf.RaggedTensor.to_tensor cuts off what does not, but the
 * shape of a sparse tensor bounds it. */
static bool
lies_inside(const struct column *from, int64_t element, const int64_t *dims)
{
    uint32_t rank = from->level_count;
    int64_t begin, end, longest[RANK_MAX];
    bool is_inside = true;

    if (from->indices == NULL) {
        longest_lists(from, element, longest);
        for (uint32_t k = 0; k < rank; k++)
            is_inside &= longest[k] <= dims[k];
        return is_inside;
    }
    column_value_range(from, element, element + 1, &begin, &end);
    for (int64_t v = begin; v < end; v++)
        for (uint32_t k = 0; k < rank; k++)
            is_inside &= from->indices[v * rank + k] < dims[k];
    return is_inside;
}

static void
apply_column(const struct to_dense *stage, uint32_t target, const struct column *from,
             struct frame *output)
{
    const struct filler *fill = &stage->fills[target];
    uint32_t rank = from->level_count, at = stage->targets.list[target].output;
    size_t bytes = fill->bytes;
    int64_t *dims =
        scratch_array(output->scratch, (size_t)from->count * rank + RANK_MAX, sizeof *dims);
    struct column *column = &output->columns[at];
    uint8_t *values;

    for (int64_t i = 0; i < from->count; i++)
        box_of(stage, from, i, &dims[i * rank]);
    column_set_dims_each(column, from->count, rank, dims, output->scratch);
    values = frame_values(output, at, (size_t)column->value_count * bytes);
    column->values = values;
    filler_repeat(fill, values, column->value_count);
    for (int64_t i = 0; i < from->count; i++) {
        const int64_t *own = &dims[i * rank];

        if (stage->is_bounded[target] && !lies_inside(from, i, own))
            frame_reject(output, i,
                         "to_dense: a value of a sparse column lies outside of the shape");
        if (from->indices != NULL)
            put_sparse(from, i, own, bytes, values);
        /* A scalar has no level to walk through. */
        else if (rank == 0)
            memcpy(values, (const uint8_t *)from->values + (size_t)i * bytes, bytes);
        else
            put_list(from, 0, i, own, bytes, values);
        values += (size_t)dims_product(own, rank) * bytes;
    }
}

static tundish_status
to_dense_apply(const void *state, const struct frame *input, struct frame *output)
{
    const struct to_dense *stage = state;

    for (uint32_t i = 0; i < stage->targets.count; i++)
        apply_column(stage, i, &input->columns[stage->targets.list[i].input], output);
    return TUNDISH_OK;
}

static void
to_dense_close(void *state)
{
    struct to_dense *stage = state;

    for (uint32_t i = 0; i < stage->targets.count && stage->fills != NULL; i++)
        filler_close(&stage->fills[i]);
    free(stage->fills);
    free(stage->is_bounded);
    content_targets_close(&stage->targets);
}

const struct content_ops content_to_dense = {
    .name = "to_dense",
    .takes_missing = true,
    .state_bytes = sizeof(struct to_dense),
    .open = to_dense_open,
    .apply = to_dense_apply,
    .close = to_dense_close,
};
