/* content_rescaling.c - keras.layers.Rescaling: x * scale, then + offset, in float32. */
#include <stdlib.h>

#include "content/content.h"
#include "content/convert.h"
#include "content/dims.h"
#include "content/literal.h"
#include "core/memory.h"

struct factors {
    int64_t count;  /* 1: the same for all */
    uint32_t depth; /* lists in lists; 0: a bare number */
    float *values;
};

struct rescaling {
    struct factors scale, offset;
    struct content_targets targets;
};

static tundish_status
read_factors(const struct content_config *config, const char *name, struct factors *factors)
{
    const struct spec_value *value = spec_get(config->stage, name);

    factors->count = literal_count(value);
    if (factors->count < 1)
        return spec_complain(config->errors, value->line, value->column,
                             "%s must be a number or a list of numbers", name);
    for (const struct spec_value *at = value; at->kind == SPEC_LIST; at = &at->items[0])
        factors->depth++;
    if (factors->depth > 1)
        return spec_complain(config->errors, value->line, value->column,
                             "%s must be a number or a list of numbers: a table of them would give "
                             "the column new dimensions (map with an expression can)",
                             name);
    factors->values = tnd_zalloc((size_t)factors->count, sizeof(float));
    return literal_store_all(value, TUNDISH_FLOAT32, name, config->errors, factors->values);
}

static tundish_status
open_column(const struct content_config *config, const struct factors *factors, const char *name,
            struct column_spec *column)
{
    int64_t last = column->rank > 0 ? column->shape[column->rank - 1] : 1;

    if (column->dtype == TUNDISH_STRING)
        return content_complain(config, "rescaling: '%s' is string, and numbers are needed",
                                column->name);
    if (column->kind == TUNDISH_SPARSE)
        return content_complain(config, "rescaling: '%s' is sparse; to_dense makes it dense",
                                column->name);
    if (factors->count == 1 && (factors->depth == 0 || column->rank > 0))
        return TUNDISH_OK;
    if (column->kind != TUNDISH_DENSE || column->rank < 1 || (last >= 0 && last != factors->count))
        return content_complain(config,
                                "rescaling: %s has %lld numbers, but the last axis of '%s' has not",
                                name, (long long)factors->count, column->name);
    column->shape[column->rank - 1] = factors->count;
    return TUNDISH_OK;
}

static tundish_status
rescaling_open(void *state, const struct content_config *config, struct schema *ret_schema,
               bool *ret_batch_wide)
{
    struct rescaling *layer = state;
    tundish_status status = read_factors(config, "scale", &layer->scale);

    *ret_batch_wide = false;
    if (status == TUNDISH_OK)
        status = read_factors(config, "offset", &layer->offset);
    if (status == TUNDISH_OK)
        status = content_targets_open(config, ret_schema, &layer->targets);
    for (uint32_t i = 0; i < layer->targets.count && status == TUNDISH_OK; i++) {
        struct column_spec *column = &ret_schema->columns[layer->targets.list[i].output];

        /* A list along the only dimension of a batch of scalars tells rows apart. */
        if (config->depth > 0 && column->rank == 1 && layer->scale.count + layer->offset.count > 2)
            *ret_batch_wide = true;
        status = open_column(config, &layer->scale, "scale", column);
        if (status == TUNDISH_OK)
            status = open_column(config, &layer->offset, "offset", column);
        column->dtype = TUNDISH_FLOAT32;
        column->has_range = false;
    }
    return status;
}

static void
scale_all(const float *restrict x, float *restrict y, int64_t count, float scale, float offset)
{
    for (int64_t i = 0; i < count; i++)
        y[i] = x[i] * scale + offset;
}

static void
scale_rows(const float *restrict x, float *restrict y, int64_t rows, int64_t width,
           const struct rescaling *layer)
{
    for (int64_t r = 0; r < rows; r++, x += width, y += width)
        for (int64_t i = 0; i < width; i++)
            y[i] = x[i] * layer->scale.values[layer->scale.count == 1 ? 0 : i] +
                   layer->offset.values[layer->offset.count == 1 ? 0 : i];
}

/* Elements whose last axis, unknown to the plan, turns out otherwise than the lists are long. */
static bool
is_as_wide(const struct column *column, int64_t width, struct frame *output)
{
    bool ok = true;

    for (int64_t i = 0; i < column->count; i++) {
        int64_t dims[RANK_MAX];

        column_dims(column, i, dims);
        if (dims[column->level_count - 1] == width ||
            dims_product(dims, column->level_count - 1) == 0)
            continue;
        frame_reject(output, i, "rescaling with %lld numbers along an axis of %lld",
                     (long long)width, (long long)dims[column->level_count - 1]);
        ok = false;
    }
    return ok;
}

static tundish_status
rescaling_apply(const void *state, const struct frame *input, struct frame *output)
{
    const struct rescaling *layer = state;
    int64_t width =
        layer->scale.count > layer->offset.count ? layer->scale.count : layer->offset.count;

    for (uint32_t i = 0; i < layer->targets.count; i++) {
        const struct content_target *target = &layer->targets.list[i];
        const struct column *from = &input->columns[target->input];
        tundish_dtype dtype = input->schema->columns[target->input].dtype;
        const float *x = convert_column(TUNDISH_FLOAT32, dtype, from, output->scratch);
        float *y = frame_values(output, target->output, (size_t)from->value_count * sizeof *y);

        if (width == 1)
            scale_all(x, y, from->value_count, layer->scale.values[0], layer->offset.values[0]);
        else if (is_as_wide(from, width, output))
            scale_rows(x, y, from->value_count / width, width, layer);
        column_set_like(&output->columns[target->output], from, y);
    }
    return TUNDISH_OK;
}

static void
rescaling_close(void *state)
{
    struct rescaling *layer = state;

    free(layer->scale.values);
    free(layer->offset.values);
    content_targets_close(&layer->targets);
}

const struct content_ops content_rescaling = {
    .name = "rescaling",
    .state_bytes = sizeof(struct rescaling),
    .open = rescaling_open,
    .apply = rescaling_apply,
    .close = rescaling_close,
};
