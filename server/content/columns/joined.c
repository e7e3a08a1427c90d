/* joined.c - concat and stack: blocks of each column in turn. */
#include "content/columns/joined.h"

#include <stdlib.h>
#include <string.h>

#include "column/dims.h"
#include "column/literal.h"
#include "core/memory.h"
#include "spec/column_list.h"

/* A quarter of a usual first-level cache of 32 KiB; the columns' own lines need the rest. */
enum { TILE_BYTES = 8 << 10 };

static tundish_status
find_inputs(const struct stage_config *config, struct joined *joined)
{
    const char **known = schema_names(config->input);
    struct spec_names names = { 0 };
    tundish_status status = spec_expand_columns(spec_get(config->stage, "columns"), known,
                                                config->input->count, config->errors, &names);

    joined->inputs = tnd_zalloc(names.count + 1, sizeof *joined->inputs);
    if (status == TUNDISH_OK)
        for (size_t i = 0; i < names.count; i++)
            joined->inputs[joined->count++] = (uint32_t)schema_find(config->input, names.names[i]);
    free(known);
    spec_names_close(&names);
    if (status == TUNDISH_OK && joined->count == 0)
        return stage_complain(config, "%s needs columns", config->stage->info->name);
    return status;
}

static tundish_status
check_column(const struct stage_config *config, const struct joined *joined,
             const struct column_spec *first, const struct column_spec *column)
{
    const char *stage = config->stage->info->name;
    char a[128], b[128];

    if (column->kind == TUNDISH_SPARSE || column->rank == RANK_UNKNOWN)
        return stage_complain(config, "%s: '%s' is %s", stage, column->name,
                              column->kind == TUNDISH_SPARSE
                                  ? "sparse; use to_dense or to_ragged first"
                                  : "of unknown rank");
    if (!joined->is_new && column->rank == 0)
        return stage_complain(config, "concat: '%s' is a scalar; stack joins scalars",
                              column->name);
    if (column->dtype != first->dtype)
        return stage_complain(config, "%s: '%s' is %s, but '%s' is %s", stage, first->name,
                              tnd_dtype_name(first->dtype), column->name,
                              tnd_dtype_name(column->dtype));
    if (column->rank != first->rank)
        return stage_complain(config, "%s: shapes %s ('%s') and %s ('%s') are incompatible", stage,
                              dims_text(first->shape, (uint32_t)first->rank, a), first->name,
                              dims_text(column->shape, (uint32_t)column->rank, b), column->name);
    return TUNDISH_OK;
}

/* Count a negative axis from the end of the result, which has one dimension more for stack. */
static tundish_status
find_axis(const struct stage_config *config, struct joined *joined, int rank)
{
    const struct spec_value *axis = spec_get(config->stage, "axis");
    int limit = rank + joined->is_new;

    if (axis->integer < -limit || axis->integer >= limit || limit > RANK_MAX)
        return spec_complain(config->errors, axis->line, axis->column,
                             "axis %lld is outside: the rank is %d", (long long)axis->integer,
                             limit);
    joined->axis = (uint32_t)(axis->integer < 0 ? axis->integer + limit : axis->integer);
    return TUNDISH_OK;
}

/* Combine one more column's shape with the result's: add along the axis of concat, and demand
 * equality elsewhere unless a size is unknown. */
static tundish_status
join_shape(const struct stage_config *config, const struct joined *joined,
           const struct column_spec *first, const struct column_spec *column,
           struct column_spec *result)
{
    char a[128], b[128];

    for (int k = 0; k < column->rank; k++) {
        int64_t size = column->shape[k];
        int64_t *made = &result->shape[k + (joined->is_new && k >= (int)joined->axis)];

        if (!joined->is_new && k == (int)joined->axis)
            *made = *made < 0 || size < 0 ? -1 : *made + size;
        else if (*made < 0)
            *made = size;
        else if (size >= 0 && size != *made)
            return stage_complain(
                config, "%s: shapes %s ('%s') and %s ('%s') are incompatible",
                config->stage->info->name, dims_text(first->shape, (uint32_t)first->rank, a),
                first->name, dims_text(column->shape, (uint32_t)column->rank, b), column->name);
    }
    return TUNDISH_OK;
}

/* The result's range covers every column's. It is known only if all are. */
static void
join_ranges(const struct stage_config *config, const struct joined *joined,
            struct column_spec *result)
{
    const struct column_spec *first = &config->input->columns[joined->inputs[0]];

    result->has_range = first->has_range;
    result->minimum = first->minimum;
    result->maximum = first->maximum;
    for (uint32_t i = 1; i < joined->count; i++) {
        const struct column_spec *column = &config->input->columns[joined->inputs[i]];

        result->has_range &= column->has_range;
        if (column->minimum < result->minimum)
            result->minimum = column->minimum;
        if (column->maximum > result->maximum)
            result->maximum = column->maximum;
    }
}

/* Check the columns against the first, and add the output. Along axis 0 after `batch`, rows of the
 * batch come to lie one after the other, so the whole batch is needed. */
static tundish_status
joined_open(struct joined *joined, bool is_new, const struct stage_config *config,
            struct schema *ret_schema, bool *ret_batch_wide)
{
    const struct spec_value *name = spec_get(config->stage, "output");
    const struct column_spec *first;
    struct column_spec *result;
    tundish_status status;

    *ret_batch_wide = false;
    joined->is_new = is_new;
    status = find_inputs(config, joined);
    if (status != TUNDISH_OK)
        return status;
    first = &config->input->columns[joined->inputs[0]];
    for (uint32_t i = 0; i < joined->count && status == TUNDISH_OK; i++) {
        status = check_column(config, joined, first, &config->input->columns[joined->inputs[i]]);
        joined->is_ragged |= config->input->columns[joined->inputs[i]].kind == TUNDISH_RAGGED;
    }
    if (status == TUNDISH_OK)
        status = find_axis(config, joined, first->rank);
    if (status != TUNDISH_OK)
        return status;
    schema_pass_all(ret_schema, config->input);
    if (schema_find(ret_schema, name->text) >= 0)
        return spec_complain(config->errors, name->line, name->column,
                             "output '%s' is a column already", name->text);
    joined->output = ret_schema->count;
    result = schema_add(ret_schema, name->text, first->dtype);
    result->rank = first->rank + is_new;
    join_ranges(config, joined, result);
    *ret_batch_wide = config->depth > 0 && joined->axis == 0;
    if (joined->is_ragged)
        return joined_ragged_describe(joined, config, result);
    for (int k = 0; k < result->rank; k++)
        result->shape[k] = -1;
    result->shape[joined->axis] = is_new ? joined->count : 0;
    for (uint32_t i = 0; i < joined->count && status == TUNDISH_OK; i++)
        status =
            join_shape(config, joined, first, &config->input->columns[joined->inputs[i]], result);
    return status;
}

/* Compute the dimensions of one joined element. False: its columns' shapes do not match. */
static bool
element_dims(const struct joined *joined, const struct frame *input, int64_t element,
             int64_t dims[RANK_MAX])
{
    for (uint32_t i = 0; i < joined->count; i++) {
        const struct column *column = &input->columns[joined->inputs[i]];
        int64_t own[RANK_MAX];

        column_dims(column, element, own);
        if (joined->is_new) {
            memmove(&own[joined->axis + 1], &own[joined->axis],
                    (column->level_count - joined->axis) * sizeof *own);
            own[joined->axis] = 1;
        }
        for (uint32_t k = 0; k < column->level_count + joined->is_new; k++) {
            if (i == 0)
                dims[k] = own[k];
            else if (k == joined->axis)
                dims[k] += own[k];
            else if (dims[k] != own[k])
                return false;
        }
    }
    return true;
}

/* Copy one element: of each column in turn the values that are contiguous after the axis, and so on
 * for each block. */
static uint8_t *
copy_element(const struct joined *joined, const struct frame *input, int64_t element,
             const int64_t *dims, size_t bytes, uint8_t *to)
{
    int64_t blocks = dims_product(dims, joined->axis);

    for (int64_t block = 0; block < blocks; block++)
        for (uint32_t i = 0; i < joined->count; i++) {
            const struct column *column = &input->columns[joined->inputs[i]];
            int64_t begin, end;
            size_t size;

            column_value_range(column, element, element + 1, &begin, &end);
            size = (size_t)((end - begin) / blocks) * bytes;
            memcpy(to,
                   (const uint8_t *)column->values + (size_t)begin * bytes + (size_t)block * size,
                   size);
            to += size;
        }
    return to;
}

/* Copy `count` blocks of `bytes` bytes to addresses `stride` bytes apart. A constant size compiles
 * to one load and one store. */
static void
copy_blocks(uint8_t *to, size_t stride, const uint8_t *from, size_t bytes, int64_t count)
{
    if (bytes == 8)
        for (int64_t i = 0; i < count; i++)
            memcpy(to + (size_t)i * stride, from + (size_t)i * 8, 8);
    else if (bytes == 4)
        for (int64_t i = 0; i < count; i++)
            memcpy(to + (size_t)i * stride, from + (size_t)i * 4, 4);
    else
        for (int64_t i = 0; i < count; i++)
            memcpy(to + (size_t)i * stride, from + (size_t)i * bytes, bytes);
}

/* Join columns of one value a block each, ROWS blocks at a time, so that the result is written as
 * it lies, and a column's address is read once for several values. */
enum { ROWS = 4 };

static inline __attribute__((always_inline)) void
interleave(const uint8_t *const *columns, size_t count, size_t blocks, size_t bytes, uint8_t *to)
{
    size_t block = 0;

    for (; block + ROWS <= blocks; block += ROWS, to += ROWS * count * bytes)
        for (size_t i = 0; i < count; i++)
            for (size_t k = 0; k < ROWS; k++)
                memcpy(to + (k * count + i) * bytes, columns[i] + (block + k) * bytes, bytes);
    for (; block < blocks; block++, to += count * bytes)
        for (size_t i = 0; i < count; i++)
            memcpy(to + i * bytes, columns[i] + block * bytes, bytes);
}

/* False: a column has other blocks than one value of 4 or 8 bytes. */
static bool
join_values(const struct joined *joined, const struct frame *input, size_t value_bytes,
            int64_t blocks, size_t stride, uint8_t *values)
{
    const uint8_t **columns;

    if (stride != joined->count * value_bytes || (value_bytes != 4 && value_bytes != 8))
        return false;
    columns = scratch_array(input->scratch, joined->count, sizeof *columns);
    for (uint32_t i = 0; i < joined->count; i++) {
        const struct column *column = &input->columns[joined->inputs[i]];

        if (column->value_count != blocks)
            return false;
        columns[i] = column->values;
    }
    if (value_bytes == 8) /* a constant compiles to one load and one store */
        interleave(columns, joined->count, (size_t)blocks, 8, values);
    else
        interleave(columns, joined->count, (size_t)blocks, 4, values);
    return true;
}

/* Write a tile of the result from all columns before the next tile, so that each cache line of the
 * result is written while it is in the cache. */
static void
join_blocks(const struct joined *joined, const struct frame *input, size_t value_bytes,
            int64_t blocks, size_t stride, uint8_t *values)
{
    int64_t tile = stride < TILE_BYTES ? (int64_t)(TILE_BYTES / stride) : 1;

    for (int64_t begin = 0; begin < blocks; begin += tile) {
        int64_t count = blocks - begin < tile ? blocks - begin : tile;
        uint8_t *to = values + (size_t)begin * stride;

        for (uint32_t i = 0; i < joined->count; i++) {
            const struct column *from = &input->columns[joined->inputs[i]];
            size_t bytes = (size_t)(from->value_count / blocks) * value_bytes;

            copy_blocks(to, stride, (const uint8_t *)from->values + (size_t)begin * bytes, bytes,
                        count);
            to += bytes;
        }
    }
}

/* The fast path, if each column's elements all have the same shape: then the frame is one large
 * element. False: it does not apply. */
static bool
join_alike(const struct joined *joined, const struct frame *input, size_t bytes,
           struct frame *output)
{
    struct column *column = &output->columns[joined->output];
    int64_t dims[RANK_MAX], first[RANK_MAX], blocks;
    uint8_t *values;
    size_t stride;

    if (input->count == 0 || !element_dims(joined, input, 0, first))
        return false;
    for (uint32_t i = 0; i < joined->count; i++)
        if (!column_same_dims(&input->columns[joined->inputs[i]], dims))
            return false;
    column_set_dims(column, input->count,
                    input->columns[joined->inputs[0]].level_count + joined->is_new, first);
    values = frame_values(output, joined->output, (size_t)column->value_count * bytes);
    column->values = values;
    blocks = input->count * dims_product(first, joined->axis);
    /* Without values there may be no blocks to divide by. */
    if (column->value_count == 0)
        return true;
    stride = (size_t)(column->value_count / blocks) * bytes;
    if (!join_values(joined, input, bytes, blocks, stride, values))
        join_blocks(joined, input, bytes, blocks, stride, values);
    return true;
}

static tundish_status
joined_apply(const void *state, const struct frame *input, struct frame *output)
{
    const struct joined *joined = state;
    const struct column_spec *spec = &input->schema->columns[joined->inputs[0]];
    uint32_t rank = (uint32_t)spec->rank + joined->is_new;
    size_t bytes = literal_bytes(spec->dtype);
    struct column *column = &output->columns[joined->output];
    int64_t *dims;
    uint8_t *values;

    if (joined->is_ragged) {
        joined_ragged_apply(joined, input, output);
        return TUNDISH_OK;
    }
    if (join_alike(joined, input, bytes, output))
        return TUNDISH_OK;
    dims = scratch_array(output->scratch, (size_t)input->count * rank + RANK_MAX, sizeof *dims);
    for (int64_t i = 0; i < input->count; i++) {
        int64_t own[RANK_MAX];

        if (!element_dims(joined, input, i, own)) {
            frame_reject(output, i, "the shapes of the columns to join are incompatible");
            /* A rejected element still needs a shape. An empty one copies nothing. */
            memset(own, 0, sizeof own);
        }
        memcpy(&dims[i * rank], own, rank * sizeof *own);
    }
    column_set_dims_each(column, input->count, rank, dims, output->scratch);
    values = frame_values(output, joined->output, (size_t)column->value_count * bytes);
    column->values = values;
    for (int64_t i = 0; i < input->count; i++)
        if (dims_product(&dims[i * rank], rank) > 0)
            values = copy_element(joined, input, i, &dims[i * rank], bytes, values);
    return TUNDISH_OK;
}

static void
joined_close(void *state)
{
    struct joined *joined = state;

    free(joined->inputs);
    *joined = (struct joined){ 0 };
}

static bool
joined_takes_words(const void *state, uint32_t column, struct words_maker *ret_maker)
{
    const struct joined *joined = state;

    (void)ret_maker;
    for (uint32_t i = 0; i < joined->count; i++)
        if (joined->inputs[i] == column)
            return false;
    return true;
}

#define JOINED(stage_, is_new_)                                                                    \
    static tundish_status stage_##_open(void *state, const struct stage_config *config,            \
                                        struct schema *ret_schema, bool *ret_batch_wide)           \
    {                                                                                              \
        return joined_open(state, is_new_, config, ret_schema, ret_batch_wide);                    \
    }                                                                                              \
                                                                                                   \
    const struct content_ops content_##stage_ = {                                                  \
        .name = #stage_,                                                                           \
        .state_bytes = sizeof(struct joined),                                                      \
        .open = stage_##_open,                                                                     \
        .takes_words = joined_takes_words,                                                         \
        .apply = joined_apply,                                                                     \
        .close = joined_close,                                                                     \
    }

JOINED(concat, false);
JOINED(stack, true);
