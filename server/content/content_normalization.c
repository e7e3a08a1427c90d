/* content_normalization.c - keras.layers.Normalization: (x - mean) / sqrt(variance), or back. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "content/content.h"
#include "content/convert.h"
#include "content/dims.h"
#include "content/literal.h"
#include "core/memory.h"

struct normalization {
    bool invert;
    int64_t count; /* 1: the same for all */
    float *means, *deviations;
    struct content_targets targets;
    uint32_t *axes; /* for each target: bit k: dimension k has statistics of its own */
};

/* --- Parameters ------------------------------------------------------------------------------- */

static tundish_status
read_floats(const struct content_config *config, const struct spec_value *value, const char *name,
            int64_t count, float **ret_values)
{
    *ret_values = tnd_zalloc((size_t)count, sizeof **ret_values);
    return literal_store_all(value, TUNDISH_FLOAT32, name, config->errors, *ret_values);
}

static tundish_status
read_statistics(const struct content_config *config, struct normalization *layer)
{
    const struct spec_value *mean = spec_get(config->stage, "mean");
    const struct spec_value *variance = spec_get(config->stage, "variance");
    bool has_mean = mean != NULL && mean->kind != SPEC_NULL;
    bool has_variance = variance != NULL && variance->kind != SPEC_NULL;
    tundish_status status;

    if (has_mean != has_variance)
        return content_complain(config,
                                "normalization needs both mean and variance, or neither; "
                                "%s is missing",
                                has_mean ? "variance" : "mean");
    if (!has_mean)
        return content_complain(config, "normalization: mean and variance have not been learned; "
                                        "run tundish analyze, or give them");
    layer->count = literal_count(mean);
    if (layer->count < 1 || literal_count(variance) != layer->count ||
        (mean->kind == SPEC_LIST) != (variance->kind == SPEC_LIST))
        return content_complain(config,
                                "normalization: mean and variance must have the same shape");
    status = read_floats(config, mean, "mean", layer->count, &layer->means);
    if (status == TUNDISH_OK)
        status = read_floats(config, variance, "variance", layer->count, &layer->deviations);
    for (int64_t i = 0; i < layer->count && status == TUNDISH_OK; i++) {
        float deviation = sqrtf(layer->deviations[i]);

        layer->deviations[i] = deviation < 1e-7F ? 1e-7F : deviation;
    }
    return status;
}

static tundish_status
keep_axis(const struct content_config *config, const struct column_spec *column,
          const struct spec_value *axis, uint32_t *axes, int64_t *kept)
{
    int64_t k = axis->integer < 0 ? axis->integer + column->rank : axis->integer;
    char text[128];

    if (k < 0 || k >= column->rank)
        return content_complain(config, "normalization: '%s' has no axis %lld: its shape is %s",
                                column->name, (long long)axis->integer,
                                dims_text(column->shape, (uint32_t)column->rank, text));
    if (column->shape[k] < 0)
        return content_complain(config,
                                "normalization: the size of axis %lld of '%s' is not known "
                                "(shape %s); axis: null takes one mean for all",
                                (long long)axis->integer, column->name,
                                dims_text(column->shape, (uint32_t)column->rank, text));
    *axes |= 1U << k;
    *kept *= column->shape[k];
    return TUNDISH_OK;
}

static tundish_status
open_column(const struct content_config *config, const struct normalization *layer,
            struct column_spec *column, uint32_t *ret_axes)
{
    const struct spec_value *axis = spec_get(config->stage, "axis");
    uint32_t axes = 0;
    int64_t kept = 1;
    tundish_status status = TUNDISH_OK;

    if (column->dtype == TUNDISH_STRING || column->kind == TUNDISH_SPARSE)
        return content_complain(config, "normalization: '%s' is %s", column->name,
                                column->dtype == TUNDISH_STRING
                                    ? "string, and numbers are needed"
                                    : "sparse; to_dense makes it dense");
    if (axis != NULL && axis->kind != SPEC_NULL) {
        if (column->rank == RANK_UNKNOWN || column->kind == TUNDISH_RAGGED)
            return content_complain(config,
                                    "normalization: the shape of '%s' is not known; axis: "
                                    "null takes one mean for all",
                                    column->name);
        if (axis->kind == SPEC_INTEGER)
            status = keep_axis(config, column, axis, &axes, &kept);
        for (uint32_t i = 0; axis->kind == SPEC_LIST && i < axis->count; i++)
            if (status == TUNDISH_OK)
                status = keep_axis(config, column, &axis->items[i], &axes, &kept);
    }
    if (status == TUNDISH_OK && layer->count != 1 && layer->count != kept)
        return content_complain(config,
                                "normalization: there are %lld means, but '%s' has %lld "
                                "along the axis",
                                (long long)layer->count, column->name, (long long)kept);
    *ret_axes = layer->count == 1 ? 0 : axes;
    column->dtype = TUNDISH_FLOAT32;
    column->has_range = false;
    return status;
}

static tundish_status
normalization_open(void *state, const struct content_config *config, struct schema *ret_schema,
                   bool *ret_batch_wide)
{
    struct normalization *layer = state;
    tundish_status status = read_statistics(config, layer);

    *ret_batch_wide = false;
    layer->invert = spec_bool(config->stage, "invert");
    if (status == TUNDISH_OK)
        status = content_targets_open(config, ret_schema, &layer->targets);
    if (status == TUNDISH_OK)
        layer->axes = tnd_zalloc(layer->targets.count, sizeof *layer->axes);
    for (uint32_t i = 0; i < layer->targets.count && status == TUNDISH_OK; i++) {
        status = open_column(config, layer, &ret_schema->columns[layer->targets.list[i].output],
                             &layer->axes[i]);
        if (config->depth > 0 && (layer->axes[i] & 1) != 0)
            *ret_batch_wide = true;
    }
    return status;
}

/* --- Values ----------------------------------------------------------------------------------- */

static void
normalize(const struct normalization *layer, const float *restrict x, float *restrict y,
          int64_t count, const float *restrict mean, const float *restrict deviation)
{
    if (layer->invert)
        for (int64_t i = 0; i < count; i++)
            y[i] = mean[i] + x[i] * deviation[i];
    else
        for (int64_t i = 0; i < count; i++)
            y[i] = (x[i] - mean[i]) / deviation[i];
}

static void
normalize_alike(const struct normalization *layer, const float *restrict x, float *restrict y,
                int64_t count)
{
    float mean = layer->means[0], deviation = layer->deviations[0];

    if (layer->invert)
        for (int64_t i = 0; i < count; i++)
            y[i] = mean + x[i] * deviation;
    else
        for (int64_t i = 0; i < count; i++)
            y[i] = (x[i] - mean) / deviation;
}

/* Spread the statistics over the shape of every element. */
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
apply_column(const struct normalization *layer, uint32_t axes, const struct column *from,
             const float *x, float *y, struct scratch *scratch)
{
    uint32_t rank = from->level_count;

    if (axes == 0) {
        normalize_alike(layer, x, y, from->value_count);
    } else if (axes == 1U << (rank - 1)) {
        for (int64_t i = 0; i < from->value_count; i += layer->count)
            normalize(layer, x + i, y + i, layer->count, layer->means, layer->deviations);
    } else {
        normalize(layer, x, y, from->value_count, spread(layer->means, axes, from, scratch),
                  spread(layer->deviations, axes, from, scratch));
    }
}

static tundish_status
normalization_apply(const void *state, const struct frame *input, struct frame *output)
{
    const struct normalization *layer = state;

    for (uint32_t i = 0; i < layer->targets.count; i++) {
        const struct content_target *target = &layer->targets.list[i];
        const struct column *from = &input->columns[target->input];
        tundish_dtype dtype = input->schema->columns[target->input].dtype;
        const float *x = convert_column(TUNDISH_FLOAT32, dtype, from, output->scratch);
        float *y = frame_values(output, target->output, (size_t)from->value_count * sizeof *y);

        apply_column(layer, layer->axes[i], from, x, y, output->scratch);
        column_set_like(&output->columns[target->output], from, y);
    }
    return TUNDISH_OK;
}

static void
normalization_close(void *state)
{
    struct normalization *layer = state;

    free(layer->means);
    free(layer->deviations);
    free(layer->axes);
    content_targets_close(&layer->targets);
}

const struct content_ops content_normalization = {
    .name = "normalization",
    .state_bytes = sizeof(struct normalization),
    .open = normalization_open,
    .apply = normalization_apply,
    .close = normalization_close,
};
