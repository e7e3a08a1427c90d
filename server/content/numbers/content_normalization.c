/* content_normalization.c - keras.layers.Normalization: (x - mean) / sqrt(variance), or back. */
#include <math.h>
#include <stdlib.h>

#include "column/array_loops.h"
#include "column/convert.h"
#include "column/dims.h"
#include "column/literal.h"
#include "content/column_wise.h"
#include "content/learned/learning.h"
#include "core/memory.h"

enum { REPEATED = 96 };

/* Learned statistics differ from column to column. */
struct normalized {
    bool invert;
    int64_t count;    /* of means; 1: the same for all values */
    int64_t repeated; /* as they are repeated for one loop */
    float *means, *deviations;
    uint32_t axes; /* bit k: dimension k has statistics of its own */
};

static tundish_status
read_floats(const struct stage_config *config, const struct spec_value *value, const char *name,
            int64_t count, float **ret_values)
{
    *ret_values = tnd_zalloc((size_t)count, sizeof **ret_values);
    return literal_store_all(value, TUNDISH_FLOAT32, name, config->errors, *ret_values);
}

/* The depth of nested lists, judged by the first item of each. */
static uint32_t
rank_of(const struct spec_value *value)
{
    uint32_t rank = 0;

    for (; value->kind == SPEC_LIST; value = &value->items[0]) {
        rank++;
        if (value->count == 0)
            break;
    }
    return rank;
}

static uint32_t
axis_count(const struct stage_config *config)
{
    const struct spec_value *axis = spec_get(config->stage, "axis");

    return axis->kind == SPEC_NULL ? 0 : axis->kind == SPEC_LIST ? axis->count : 1;
}

/* Take mean and variance from the pipeline file. Keras wants both or neither, and no more
 * dimensions than the axis names. */
static tundish_status
given_statistics(const struct stage_config *config, struct normalized *layer)
{
    const struct spec_value *mean = spec_get(config->stage, "mean");
    const struct spec_value *variance = spec_get(config->stage, "variance");
    bool has_mean = mean != NULL && mean->kind != SPEC_NULL;
    bool has_variance = variance != NULL && variance->kind != SPEC_NULL;
    tundish_status status;

    if (has_mean != has_variance)
        return stage_complain(config,
                              "normalization needs both mean and variance, or neither; "
                              "%s is missing",
                              has_mean ? "variance" : "mean");
    layer->count = literal_count(mean);
    if (layer->count < 1 || literal_count(variance) != layer->count ||
        (mean->kind == SPEC_LIST) != (variance->kind == SPEC_LIST))
        return stage_complain(config, "normalization: mean and variance must have the same shape");
    if (rank_of(mean) > axis_count(config))
        return spec_complain(config->errors, mean->line, mean->column,
                             "mean has rank %u, but axis names %u", rank_of(mean),
                             axis_count(config));
    status = read_floats(config, mean, "mean", layer->count, &layer->means);
    if (status == TUNDISH_OK)
        status = read_floats(config, variance, "variance", layer->count, &layer->deviations);
    return status;
}

static tundish_status
learned_floats(const struct stage_config *config, const char *name, const char *suffix,
               float **ret_values, int64_t *ret_count)
{
    struct learned_table table = { 0 };
    tundish_status status = learned_table_open(config, name, suffix, TUNDISH_FLOAT32, &table);

    if (status == TUNDISH_OK) {
        *ret_values = table.values;
        *ret_count = table.value_count;
        table.values = NULL;
    }
    learned_table_close(&table);
    return status;
}

static tundish_status
learned_statistics(const struct stage_config *config, const char *column, struct normalized *layer)
{
    const char *name = learned_name_of(config, column);
    int64_t variance_count = 0;
    tundish_status status = learned_require(config, name);

    if (status == TUNDISH_OK)
        status = learned_floats(config, name, ".mean", &layer->means, &layer->count);
    if (status == TUNDISH_OK)
        status = learned_floats(config, name, ".variance", &layer->deviations, &variance_count);
    if (status == TUNDISH_OK && (layer->count < 1 || layer->count != variance_count))
        status = stage_complain(
            config, "normalization: %s.mean and %s.variance must have the same shape", name, name);
    return status;
}

static void
repeat_statistics(struct normalized *layer)
{
    int64_t count = layer->count, times = count < REPEATED ? REPEATED / count : 1;
    size_t values = (size_t)(layer->repeated = count * times);

    layer->means = tnd_realloc(layer->means, values, sizeof *layer->means);
    layer->deviations = tnd_realloc(layer->deviations, values, sizeof *layer->deviations);
    for (int64_t i = count; i < layer->repeated; i++) {
        layer->means[i] = layer->means[i - count];
        layer->deviations[i] = layer->deviations[i - count];
    }
}

static tundish_status
read_statistics(const struct stage_config *config, const char *column, struct normalized *layer)
{
    tundish_status status = learned_is_needed(config->stage)
                                ? learned_statistics(config, column, layer)
                                : given_statistics(config, layer);

    layer->invert = spec_bool(config->stage, "invert");
    for (int64_t i = 0; i < layer->count && status == TUNDISH_OK; i++) {
        /* Keras divides by maximum(sqrt(variance), epsilon()), and its epsilon is 1e-7. */
        float deviation = sqrtf(layer->deviations[i]);

        layer->deviations[i] = deviation < 1e-7F ? 1e-7F : deviation;
    }
    if (status == TUNDISH_OK)
        repeat_statistics(layer);
    return status;
}

/* Add one axis along which statistics differ. */
static tundish_status
keep_axis(const struct stage_config *config, const struct column_spec *column,
          const struct spec_value *axis, uint32_t *axes, int64_t *kept)
{
    int64_t k = axis->integer < 0 ? axis->integer + column->rank : axis->integer;
    char text[128];

    if (k < 0 || k >= column->rank)
        return stage_complain(config, "normalization: '%s' has no axis %lld: its shape is %s",
                              column->name, (long long)axis->integer,
                              dims_text(column->shape, (uint32_t)column->rank, text));
    if (column->shape[k] < 0)
        return stage_complain(config,
                              "normalization: the size of axis %lld of '%s' is unknown (shape %s); "
                              "axis: null uses one mean for all",
                              (long long)axis->integer, column->name,
                              dims_text(column->shape, (uint32_t)column->rank, text));
    *axes |= 1U << k;
    *kept *= column->shape[k];
    return TUNDISH_OK;
}

/* Find the axes and the statistics of one column, and check that there are as many as the axes'
 * sizes demand. */
static tundish_status
open_column(const struct stage_config *config, struct normalized *layer, struct column_spec *column)
{
    const struct spec_value *axis = spec_get(config->stage, "axis");
    uint32_t axes = 0;
    int64_t kept = 1;
    tundish_status status = TUNDISH_OK;

    if (column->dtype == TUNDISH_STRING || column->kind == TUNDISH_SPARSE)
        return stage_complain(config, "normalization: '%s' is %s", column->name,
                              column->dtype == TUNDISH_STRING
                                  ? "of dtype string; expected a numeric dtype"
                                  : "sparse; use to_dense");
    if (axis != NULL && axis->kind != SPEC_NULL && axis_count(config) > 0) {
        if (column->rank == RANK_UNKNOWN || column->kind == TUNDISH_RAGGED)
            return stage_complain(
                config,
                "normalization: the shape of '%s' is unknown; axis: null uses one mean for all",
                column->name);
        if (axis->kind == SPEC_INTEGER)
            status = keep_axis(config, column, axis, &axes, &kept);
        for (uint32_t i = 0; axis->kind == SPEC_LIST && i < axis->count; i++)
            if (status == TUNDISH_OK)
                status = keep_axis(config, column, &axis->items[i], &axes, &kept);
    }
    if (status == TUNDISH_OK)
        status = read_statistics(config, column->name, layer);
    if (status == TUNDISH_OK && layer->count != 1 && layer->count != kept)
        return stage_complain(config,
                              "normalization: there are %lld means, but '%s' has %lld "
                              "along the axis",
                              (long long)layer->count, column->name, (long long)kept);
    /* A single mean is the same for all values, whatever the axes are. */
    layer->axes = layer->count == 1 ? 0 : axes;
    column->dtype = TUNDISH_FLOAT32;
    column->has_range = false;
    return status;
}

static tundish_status
describe(void *state, const struct stage_config *config, void *own, struct column_spec *column,
         bool *batch_wide)
{
    struct normalized *layer = own;
    tundish_status status = open_column(config, layer, column);

    (void)state;
    /* Dimension 0 after `batch` counts rows: statistics along it depend on a row's position. */
    *batch_wide |= config->depth > 0 && (layer->axes & 1) != 0;
    return status;
}

/* Values with statistics of their own for each position. */
static void
normalize(const struct normalized *layer, const float *x, float *y, int64_t count,
          const float *mean, const float *deviation)
{
    if (layer->invert)
        array_denormalize_each_loop(x, (size_t)count, mean, deviation, y);
    else
        array_normalize_each_loop(x, (size_t)count, mean, deviation, y);
}

static void
normalize_alike(const struct normalized *layer, const float *x, float *y, int64_t count)
{
    float mean = layer->means[0], deviation = layer->deviations[0];

    if (layer->invert)
        array_denormalize_loop(x, (size_t)count, mean, deviation, y);
    else
        array_normalize_loop(x, (size_t)count, mean, deviation, y);
}

/* Repeat the statistics over the shape of every element, so that one loop serves any set of
 * axes. */
static const float *
spread(const float *statistics, uint32_t axes, const struct column *column, struct scratch *scratch)
{
    struct column small = { .count = 1 };
    float *all = scratch_array(scratch, (size_t)column->value_count, sizeof *all);
    int64_t dims[RANK_MAX];

    if (column->count == 0)
        return all;
    column_dims(column, 0, dims);
    for (uint32_t k = 0; k < column->level_count; k++)
        if ((axes >> k & 1) == 0)
            dims[k] = 1;
    column_set_dims(&small, 1, column->level_count, dims);
    small.values = statistics;
    column_broadcast(&small, column, sizeof *all, all);
    return all;
}

static void
apply_column(const struct normalized *layer, const struct column *from, const float *x, float *y,
             struct scratch *scratch)
{
    uint32_t rank = from->level_count, axes = layer->axes;

    if (axes == 0) {
        normalize_alike(layer, x, y, from->value_count);
        /* Along the last axis the statistics repeat in memory order and need no copies. */
    } else if (axes == 1U << (rank - 1)) {
        for (int64_t i = 0, left; (left = from->value_count - i) > 0; i += layer->repeated)
            normalize(layer, x + i, y + i, left < layer->repeated ? left : layer->repeated,
                      layer->means, layer->deviations);
    } else {
        normalize(layer, x, y, from->value_count, spread(layer->means, axes, from, scratch),
                  spread(layer->deviations, axes, from, scratch));
    }
}

static void
map_column(const void *state, const struct column_map *map)
{
    struct scratch *scratch = map->output->scratch;
    const float *x = convert_column(TUNDISH_FLOAT32, map->spec->dtype, map->from, scratch);
    float *y = frame_values(map->output, map->at, (size_t)map->from->value_count * sizeof *y);

    (void)state;
    apply_column(map->own, map->from, x, y, scratch);
    column_set_like(map->to, map->from, y);
}

static void
close_normalized(void *own)
{
    struct normalized *layer = own;

    free(layer->means);
    free(layer->deviations);
}

static const struct column_wise_ops columns = {
    .own_bytes = sizeof(struct normalized),
    .describe = describe,
    .map = map_column,
    .close_own = close_normalized,
};

static bool
normalization_learns(const struct spec_stage *stage)
{
    return !spec_has_value(stage, "mean") && !spec_has_value(stage, "variance");
}

static const struct content_learning learning = {
    .kind = LEARNED_MOMENTS,
    .is_keras = true,
    .is_needed = normalization_learns,
};

const struct content_ops content_normalization = {
    .name = "normalization",
    .takes_missing = true,
    .learning = &learning,
    .state_bytes = sizeof(struct column_wise),
    .columns = &columns,
    .open = column_wise_open,
    .apply = column_wise_apply,
    .close = column_wise_close,
};
