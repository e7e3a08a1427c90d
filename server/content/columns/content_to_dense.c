/* content_to_dense.c - ragged and sparse columns as boxes: tf.sparse.to_dense and
 * tf.RaggedTensor.to_tensor. */
#include <string.h>

#include "column/dims.h"
#include "content/column_wise.h"
#include "content/columns/filler.h"

struct to_dense {
    struct column_wise wise;
    bool has_shape;
    uint32_t rank;
    int64_t shape[RANK_MAX]; /* -1: as large as it takes */
};

struct boxed {
    struct filler fill;
    bool is_bounded; /* sparse, in a shape that is given */
};

static tundish_status
read_shape(void *state, const struct stage_config *config)
{
    struct to_dense *stage = state;
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
describe(void *state, const struct stage_config *config, void *own, struct column_spec *column,
         bool *batch_wide)
{
    const struct to_dense *stage = state;
    struct boxed *boxed = own;
    tundish_status status = filler_open(spec_get(config->stage, "default_value"), column->dtype,
                                        "default_value", config->errors, &boxed->fill);

    if (status != TUNDISH_OK)
        return status;
    boxed->is_bounded = stage->has_shape && column->kind == TUNDISH_SPARSE;
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
map_column(const void *state, const struct column_map *map)
{
    const struct to_dense *stage = state;
    const struct boxed *boxed = map->own;
    const struct column *from = map->from;
    uint32_t rank = from->level_count;
    size_t bytes = boxed->fill.bytes;
    int64_t *dims =
        scratch_array(map->output->scratch, (size_t)from->count * rank + RANK_MAX, sizeof *dims);
    struct column *column = map->to;
    uint8_t *values;

    for (int64_t i = 0; i < from->count; i++)
        box_of(stage, from, i, &dims[i * rank]);
    column_set_dims_each(column, from->count, rank, dims, map->output->scratch);
    values = frame_values(map->output, map->at, (size_t)column->value_count * bytes);
    column->values = values;
    filler_repeat(&boxed->fill, values, column->value_count);
    for (int64_t i = 0; i < from->count; i++) {
        const int64_t *own = &dims[i * rank];

        if (boxed->is_bounded && !lies_inside(from, i, own))
            frame_reject(map->output, i,
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

static void
close_boxed(void *own)
{
    struct boxed *boxed = own;

    filler_close(&boxed->fill);
}

static const struct column_wise_ops columns = {
    .own_bytes = sizeof(struct boxed),
    .read = read_shape,
    .describe = describe,
    .map = map_column,
    .close_own = close_boxed,
};

const struct content_ops content_to_dense = {
    .name = "to_dense",
    .takes_missing = true,
    .state_bytes = sizeof(struct to_dense),
    .columns = &columns,
    .open = column_wise_open,
    .apply = column_wise_apply,
    .close = column_wise_close,
};
