/* content_transpose.c - tf.transpose: the dimensions in another order. */
#include <string.h>

#include "column/dims.h"
#include "column/literal.h"
#include "content/column_wise.h"

/* Dimension k of the result is dimension axes[k] of the column. */
struct permutation {
    uint32_t axes[RANK_MAX];
};

/* The order of the dimensions: the given one, or else the reverse. */
static tundish_status
read_permutation(const struct stage_config *config, const struct column_spec *column,
                 struct permutation *permutation)
{
    const struct spec_value *perm = spec_get(config->stage, "perm");
    uint32_t rank = (uint32_t)column->rank, seen = 0;
    bool is_given = perm != NULL && perm->kind == SPEC_LIST;

    if (is_given && perm->count != rank)
        return spec_complain(config->errors, perm->line, perm->column,
                             "perm is for rank %u, but '%s' has rank %u", perm->count, column->name,
                             rank);
    for (uint32_t k = 0; k < rank; k++) {
        int64_t axis = is_given ? perm->items[k].integer : (int64_t)rank - 1 - k;

        axis += axis < 0 ? rank : 0;
        if (axis < 0 || axis >= rank || (seen >> axis & 1) != 0)
            return spec_complain(config->errors, perm->line, perm->column,
                                 "perm names each dimension once, of rank %u", rank);
        seen |= 1U << axis;
        permutation->axes[k] = (uint32_t)axis;
    }
    return TUNDISH_OK;
}

static tundish_status
describe(void *state, const struct stage_config *config, void *own, struct column_spec *column,
         bool *batch_wide)
{
    struct permutation *permutation = own;
    int64_t shape[RANK_MAX];
    tundish_status status;

    (void)state;
    if (column->kind != TUNDISH_DENSE || column->rank == RANK_UNKNOWN)
        return stage_complain(config, "transpose: '%s' is %s", column->name,
                              column->kind == TUNDISH_DENSE ? "of unknown rank"
                                                            : "not dense; use to_dense");
    status = read_permutation(config, column, permutation);
    if (status != TUNDISH_OK || column->rank == 0)
        return status;
    memcpy(shape, column->shape, sizeof shape);
    for (int k = 0; k < column->rank; k++)
        column->shape[k] = shape[permutation->axes[k]];
    /* After `batch`, dimension 0 is that of the batch. */
    *batch_wide |= config->depth > 0 && permutation->axes[0] != 0;
    return TUNDISH_OK;
}

/* Copy `count` values that lie `step` values apart. */
static void
gather(const uint8_t *from, int64_t step, int64_t count, size_t bytes, uint8_t *to)
{
    size_t step_bytes = (size_t)step * bytes;

    if (step == 1) {
        memcpy(to, from, (size_t)count * bytes);
        return;
    }
    for (int64_t i = 0; i < count; i++)
        memcpy(to + (size_t)i * bytes, from + (size_t)i * step_bytes, bytes);
}

/* Write one element in its new order, a run of its last dimension at a time. `dims` are the old
 * dimensions, of which none is 0. */
static void
transpose_element(const struct permutation *permutation, uint32_t rank, const int64_t *dims,
                  size_t bytes, const uint8_t *from, uint8_t *to)
{
    int64_t strides[RANK_MAX], sizes[RANK_MAX], steps[RANK_MAX], index[RANK_MAX] = { 0 };
    int64_t stride = 1, at = 0, runs;

    for (uint32_t k = rank; k-- > 0;) {
        strides[k] = stride;
        stride *= dims[k];
    }
    for (uint32_t k = 0; k < rank; k++) {
        sizes[k] = dims[permutation->axes[k]];
        steps[k] = strides[permutation->axes[k]];
    }
    runs = stride / sizes[rank - 1];
    for (int64_t run = 0; run < runs; run++) {
        gather(from + (size_t)at * bytes, steps[rank - 1], sizes[rank - 1], bytes, to);
        to += (size_t)sizes[rank - 1] * bytes;
        for (uint32_t k = rank - 1; k-- > 0;) {
            at += steps[k];
            if (++index[k] < sizes[k])
                break;
            at -= steps[k] * sizes[k];
            index[k] = 0;
        }
    }
}

static void
map_column(const void *state, const struct column_map *map)
{
    const struct column *from = map->from;
    const struct permutation *permutation = map->own;
    struct column *column = map->to;
    uint32_t rank = from->level_count;
    size_t bytes = literal_bytes(map->spec->dtype);
    int64_t *dims =
        scratch_array(map->output->scratch, (size_t)from->count * rank + RANK_MAX, sizeof *dims);
    const uint8_t *values = from->values;
    uint8_t *to;

    (void)state;
    if (rank < 2) {
        *column = *from;
        return;
    }
    for (int64_t i = 0; i < from->count; i++) {
        int64_t own[RANK_MAX];

        column_dims(from, i, own);
        for (uint32_t k = 0; k < rank; k++)
            dims[(size_t)i * rank + k] = own[permutation->axes[k]];
    }
    column_set_dims_each(column, from->count, rank, dims, map->output->scratch);
    to = frame_values(map->output, map->at, (size_t)column->value_count * bytes);
    column->values = to;
    for (int64_t i = 0; i < from->count; i++) {
        int64_t own[RANK_MAX], count;

        column_dims(from, i, own);
        count = dims_product(own, rank);
        if (count > 0)
            transpose_element(permutation, rank, own, bytes, values, to);
        values += (size_t)count * bytes;
        to += (size_t)count * bytes;
    }
}

static const struct column_wise_ops columns = {
    .own_bytes = sizeof(struct permutation),
    .describe = describe,
    .map = map_column,
};

const struct content_ops content_transpose = {
    .name = "transpose",
    .takes_missing = true,
    .state_bytes = sizeof(struct column_wise),
    .columns = &columns,
    .open = column_wise_open,
    .apply = column_wise_apply,
    .close = column_wise_close,
};
