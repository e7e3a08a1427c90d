/* content_rescaling.c - keras.layers.Rescaling: x * scale, then + offset, in float32. */
#include <stdlib.h>
#include <string.h>

#include "column/convert.h"
#include "column/dims.h"
#include "column/literal.h"
#include "content/column_wise.h"
#include "core/memory.h"

/* A number, or nested lists of numbers that broadcast with each element. */
struct factors {
    uint32_t rank; /* 0: a number */
    int64_t dims[RANK_MAX];
    int64_t count;
    float *values;
};

struct rescaling {
    struct column_wise wise;
    struct factors scale, offset;
};

/* Read a number or nested lists. Dimensions come from the first item of each list; literal_count
 * refused lists of different lengths. */
static tundish_status
read_factors(const struct stage_config *config, const char *name, struct factors *factors)
{
    const struct spec_value *value = spec_get(config->stage, name), *at = value;

    factors->count = literal_count(value);
    for (; factors->count > 0 && at->kind == SPEC_LIST; at = &at->items[0]) {
        if (factors->rank == RANK_MAX)
            break;
        factors->dims[factors->rank++] = at->count;
    }
    if (factors->count < 1 || at->kind == SPEC_LIST)
        return spec_complain(config->errors, value->line, value->column,
                             "%s must be a number or lists of numbers, equally long and at most %d "
                             "deep",
                             name, RANK_MAX);
    factors->values = tnd_zalloc((size_t)factors->count, sizeof(float));
    return literal_store_all(value, TUNDISH_FLOAT32, name, config->errors, factors->values);
}

/* Whether the factor acts as a single number. A list of one number does too, if it adds no
 * dimension. */
static bool
is_number(const struct factors *factors, const struct column_spec *column)
{
    return factors->rank == 0 || (factors->count == 1 && (int)factors->rank <= column->rank);
}

static tundish_status
open_column(const struct stage_config *config, const struct factors *factors, const char *name,
            struct column_spec *column, bool *ret_batch_wide)
{
    char own[128], its[128];
    uint32_t rank;

    if (column->dtype == TUNDISH_STRING)
        return stage_complain(config, "rescaling: '%s' has dtype string; expected a numeric dtype",
                              column->name);
    if (column->kind == TUNDISH_SPARSE)
        return stage_complain(config, "rescaling: '%s' is sparse; use to_dense", column->name);
    if (is_number(factors, column))
        return TUNDISH_OK;
    if (column->kind != TUNDISH_DENSE || column->rank == RANK_UNKNOWN)
        return stage_complain(
            config,
            "rescaling: %s is a list and '%s' is %s; a list needs a dense column of known rank",
            name, column->name, column->kind == TUNDISH_DENSE ? "of unknown rank" : "ragged");
    /* A factor with more dimensions than a row reaches into the batch's own: rows then differ by
     * place. */
    if (factors->rank + config->depth > (uint32_t)column->rank && config->depth > 0)
        *ret_batch_wide = true;
    if (!dims_broadcast(column->shape, (uint32_t)column->rank, factors->dims, factors->rank,
                        column->shape, &rank))
        return stage_complain(config, "rescaling: %s of shape %s does not fit '%s' of shape %s",
                              name, dims_text(factors->dims, factors->rank, own), column->name,
                              dims_text(column->shape, (uint32_t)column->rank, its));
    column->rank = (int)rank;
    return TUNDISH_OK;
}

static tundish_status
read_both(void *state, const struct stage_config *config)
{
    struct rescaling *layer = state;
    tundish_status status = read_factors(config, "scale", &layer->scale);

    return status != TUNDISH_OK ? status : read_factors(config, "offset", &layer->offset);
}

static tundish_status
describe(void *state, const struct stage_config *config, void *own, struct column_spec *column,
         bool *batch_wide)
{
    const struct rescaling *layer = state;
    tundish_status status = open_column(config, &layer->scale, "scale", column, batch_wide);

    (void)own;
    if (status == TUNDISH_OK)
        status = open_column(config, &layer->offset, "offset", column, batch_wide);
    column->dtype = TUNDISH_FLOAT32;
    column->has_range = false;
    return status;
}

/* Two roundings, as in Keras: the build allows no contraction into a fused multiply-add. */
static void
scale_all(const float *restrict x, float *restrict y, int64_t count, float scale, float offset)
{
    for (int64_t i = 0; i < count; i++)
        y[i] = x[i] * scale + offset;
}

/* Factors along the last axis, for rows of that width. */
static void
scale_rows(const float *restrict x, float *restrict y, int64_t rows, int64_t width,
           const struct rescaling *layer)
{
    for (int64_t r = 0; r < rows; r++, x += width, y += width)
        for (int64_t i = 0; i < width; i++)
            y[i] = x[i] * layer->scale.values[layer->scale.count == 1 ? 0 : i] +
                   layer->offset.values[layer->offset.count == 1 ? 0 : i];
}

/* Set each element's broadcast shape. An element that does not fit is rejected, and empty. */
static void
set_shape(const struct rescaling *layer, const struct column *from, uint32_t rank,
          struct frame *output, struct column *column)
{
    int64_t *dims =
        scratch_array(output->scratch, (size_t)from->count * (rank > 0 ? rank : 1), sizeof *dims);
    char text[128];

    for (int64_t i = 0; i < from->count; i++) {
        int64_t own[RANK_MAX], made[RANK_MAX];
        uint32_t made_rank;

        column_dims(from, i, own);
        if (dims_broadcast(own, from->level_count, layer->scale.dims, layer->scale.rank, made,
                           &made_rank) &&
            dims_broadcast(made, made_rank, layer->offset.dims, layer->offset.rank, made,
                           &made_rank)) {
            memcpy(&dims[i * rank], made, rank * sizeof *dims);
            continue;
        }
        memset(&dims[i * rank], 0, rank * sizeof *dims);
        frame_reject(output, i, "rescaling: scale or offset does not fit a shape of %s",
                     dims_text(own, from->level_count, text));
    }
    column_set_dims_each(column, from->count, rank, dims, output->scratch);
}

/* Repeat a factor over the shape of `to`. */
static const float *
spread(const struct factors *factors, const struct column *to, struct scratch *scratch)
{
    float *values = scratch_array(scratch, (size_t)to->value_count, sizeof *values);
    struct column column;

    column_clear(&column);
    column_set_dims(&column, 1, factors->rank, factors->dims);
    column.values = factors->values;
    column_broadcast(&column, to, sizeof *values, values);
    return values;
}

/* The general path: repeat both factors and the numbers over the result's shape. It takes memory,
 * but only unusual shapes come here. */
static void
scale_broadcast(const struct rescaling *layer, const struct column *from, const float *x,
                uint32_t rank, struct frame *output, uint32_t index)
{
    struct column *column = &output->columns[index], numbers;
    const float *scale, *offset;
    float *y;

    column_copy(&numbers, from);
    numbers.values = x;
    set_shape(layer, from, rank, output, column);
    y = frame_values(output, index, (size_t)column->value_count * sizeof *y);
    column->values = y;
    scale = spread(&layer->scale, column, output->scratch);
    offset = spread(&layer->offset, column, output->scratch);
    column_broadcast(&numbers, column, sizeof *y, y);
    for (int64_t i = 0; i < column->value_count; i++)
        y[i] = y[i] * scale[i] + offset[i];
}

/* Whether the factor leaves an element's shape alone: a number, or a list as long as the last
 * axis. */
static bool
keeps_shape(const struct factors *factors, const struct column_spec *column)
{
    return is_number(factors, column) || (factors->rank == 1 && column->rank > 0 &&
                                          column->shape[column->rank - 1] == factors->count);
}

static void
map_column(const void *state, const struct column_map *map)
{
    const struct rescaling *layer = state;
    const struct column *from = map->from;
    int64_t width =
        layer->scale.count > layer->offset.count ? layer->scale.count : layer->offset.count;
    const float *x = convert_column(TUNDISH_FLOAT32, map->spec->dtype, from, map->output->scratch);
    float *y;

    if (!keeps_shape(&layer->scale, map->spec) || !keeps_shape(&layer->offset, map->spec)) {
        scale_broadcast(layer, from, x, (uint32_t)map->output->schema->columns[map->at].rank,
                        map->output, map->at);
        return;
    }
    y = frame_values(map->output, map->at, (size_t)from->value_count * sizeof *y);
    if (width == 1)
        scale_all(x, y, from->value_count, layer->scale.values[0], layer->offset.values[0]);
    else
        scale_rows(x, y, from->value_count / width, width, layer);
    column_set_like(map->to, from, y);
}

static void
close_factors(void *state)
{
    struct rescaling *layer = state;

    free(layer->scale.values);
    free(layer->offset.values);
}

static const struct column_wise_ops columns = {
    .read = read_both,
    .describe = describe,
    .map = map_column,
    .close = close_factors,
};

const struct content_ops content_rescaling = {
    .name = "rescaling",
    .takes_missing = true,
    .keeps_pixels = true,
    .state_bytes = sizeof(struct rescaling),
    .columns = &columns,
    .open = column_wise_open,
    .apply = column_wise_apply,
    .close = column_wise_close,
};
