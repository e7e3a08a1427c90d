/* content_transpose.c - tf.transpose: the dimensions in another order. */
#include <stdlib.h>
#include <string.h>

#include "column/dims.h"
#include "column/literal.h"
#include "content/content.h"
#include "core/memory.h"

/* Dimension k of the result is dimension axes[k] of the column. */
struct permutation {
    uint32_t axes[RANK_MAX];
};

struct transpose {
    struct content_targets targets;
    struct permutation *permutations; /* for each target */
    size_t *bytes;                    /* of a value, for each target */
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
open_column(const struct stage_config *config, struct permutation *permutation,
            struct column_spec *column, bool *batch_wide)
{
    int64_t shape[RANK_MAX];
    tundish_status status;

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

static tundish_status
transpose_open(void *state, const struct stage_config *config, struct schema *ret_schema,
               bool *ret_batch_wide)
{
    struct transpose *stage = state;
    tundish_status status = content_targets_open(config, ret_schema, &stage->targets);

    *ret_batch_wide = false;
    stage->permutations = tnd_zalloc(stage->targets.count + 1, sizeof *stage->permutations);
    stage->bytes = tnd_zalloc(stage->targets.count + 1, sizeof *stage->bytes);
    for (uint32_t i = 0; i < stage->targets.count && status == TUNDISH_OK; i++) {
        struct column_spec *column = &ret_schema->columns[stage->targets.list[i].output];

        stage->bytes[i] = literal_bytes(column->dtype);
        status = open_column(config, &stage->permutations[i], column, ret_batch_wide);
    }
    return status;
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
apply_column(const struct transpose *stage, uint32_t target, const struct frame *input,
             struct frame *output)
{
    const struct content_target *columns = &stage->targets.list[target];
    const struct column *from = &input->columns[columns->input];
    const struct permutation *permutation = &stage->permutations[target];
    struct column *column = &output->columns[columns->output];
    uint32_t rank = from->level_count;
    size_t bytes = stage->bytes[target];
    int64_t *dims =
        scratch_array(output->scratch, (size_t)from->count * rank + RANK_MAX, sizeof *dims);
    const uint8_t *values = from->values;
    uint8_t *to;

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
    column_set_dims_each(column, from->count, rank, dims, output->scratch);
    to = frame_values(output, columns->output, (size_t)column->value_count * bytes);
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

static tundish_status
transpose_apply(const void *state, const struct frame *input, struct frame *output)
{
    const struct transpose *stage = state;

    for (uint32_t i = 0; i < stage->targets.count; i++)
        apply_column(stage, i, input, output);
    return TUNDISH_OK;
}

static void
transpose_close(void *state)
{
    struct transpose *stage = state;

    free(stage->permutations);
    free(stage->bytes);
    content_targets_close(&stage->targets);
}

const struct content_ops content_transpose = {
    .name = "transpose",
    .takes_missing = true,
    .state_bytes = sizeof(struct transpose),
    .open = transpose_open,
    .apply = transpose_apply,
    .close = transpose_close,
};
