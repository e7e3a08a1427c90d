/* content_discretization.c - keras.layers.Discretization: the bin that a number falls into. */
#include <stdlib.h>
#include <string.h>

#include "column/convert.h"
#include "column/literal.h"
#include "content/column_wise.h"
#include "content/learned/learning.h"
#include "content/numbers/bins.h"
#include "content/terms/encoding.h"
#include "core/memory.h"

/* Learned boundaries differ from column to column. */
struct discretized {
    struct encoding encoding;
    int64_t boundary_count;
    float *boundaries;
    struct bins bins;
};

struct discretization {
    struct column_wise wise;
    struct encoding encoding; /* without the depth */
    tundish_dtype computed;   /* numbers are converted to it first */
};

/* Keras wants exactly one of num_bins and bin_boundaries. */
static tundish_status
check_parameters(const struct stage_config *config)
{
    const struct spec_value *boundaries = spec_get(config->stage, "bin_boundaries");
    const struct spec_value *bins = spec_get(config->stage, "num_bins");
    bool has_boundaries = boundaries != NULL && boundaries->kind != SPEC_NULL;
    bool has_bins = bins != NULL && bins->kind != SPEC_NULL;

    if (has_boundaries == has_bins)
        return stage_complain(config, "discretization needs %s num_bins %s bin_boundaries%s",
                              has_bins ? "only one of" : "either", has_bins ? "and" : "or",
                              has_bins ? ", and both are given" : "");
    return TUNDISH_OK;
}

static tundish_status
learned_boundaries(const struct stage_config *config, const char *column, struct discretized *layer)
{
    const char *name = learned_name_of(config, column);
    struct learned_table table = { 0 };
    tundish_status status = learned_require(config, name);

    if (status == TUNDISH_OK)
        status = learned_table_open(config, name, ".boundaries", TUNDISH_FLOAT32, &table);
    if (status == TUNDISH_OK) {
        layer->boundary_count = table.value_count;
        layer->boundaries = tnd_zalloc((size_t)table.value_count + 1, sizeof(float));
        memcpy(layer->boundaries, table.values, (size_t)table.value_count * sizeof(float));
    }
    learned_table_close(&table);
    return status;
}

static tundish_status
read_boundaries(const struct stage_config *config, const char *column, struct discretized *layer)
{
    const struct spec_value *boundaries = spec_get(config->stage, "bin_boundaries");
    tundish_status status;

    if (learned_is_needed(config->stage))
        return learned_boundaries(config, column, layer);
    layer->boundary_count = literal_count(boundaries);
    layer->boundaries = tnd_zalloc((size_t)layer->boundary_count + 1, sizeof(float));
    status = literal_store_all(boundaries, TUNDISH_FLOAT32, "bin_boundaries", config->errors,
                               layer->boundaries);
    for (int64_t i = 1; i < layer->boundary_count && status == TUNDISH_OK; i++)
        /* Compared after rounding to float32, in which the layer compares. The negation refuses
         * NaN. */
        if (!(layer->boundaries[i - 1] <= layer->boundaries[i]))
            return spec_complain(
                config->errors, boundaries->line, boundaries->column,
                "bin_boundaries must be in ascending order, but %.9g precedes %.9g",
                (double)layer->boundaries[i - 1], (double)layer->boundaries[i]);
    return status;
}

/* The layer's dtype: numbers are converted to it, and the encoded result has it. Bin numbers are
 * integers in any case. */
static tundish_dtype
dtype_of(const struct stage_config *config)
{
    const struct spec_value *dtype = spec_get(config->stage, "dtype");

    return dtype != NULL && dtype->kind != SPEC_NULL ? spec_dtype(config->stage, "dtype")
                                                     : TUNDISH_FLOAT32;
}

static tundish_status
describe(void *state, const struct stage_config *config, void *own, struct column_spec *column,
         bool *batch_wide)
{
    const struct discretization *stage = state;
    struct discretized *layer = own;
    tundish_status status;

    if (column->dtype == TUNDISH_STRING)
        return stage_complain(config,
                              "discretization: '%s' has dtype string; expected a numeric dtype",
                              column->name);
    status = read_boundaries(config, column->name, layer);
    if (status != TUNDISH_OK)
        return status;
    bins_open(&layer->bins, layer->boundaries, layer->boundary_count);
    layer->encoding = stage->encoding;
    layer->encoding.depth = layer->boundary_count + 1;
    if (layer->encoding.mode != ENCODE_INT)
        return encoding_open(&layer->encoding, config, column, batch_wide);
    column->dtype = layer->encoding.dtype;
    column->has_range = tnd_dtype_is_integer(column->dtype);
    column->minimum = 0;
    column->maximum = layer->boundary_count;
    return TUNDISH_OK;
}

static tundish_status
read_parameters(void *state, const struct stage_config *config)
{
    struct discretization *layer = state;

    encoding_mode_of(spec_text(config->stage, "output_mode"), &layer->encoding.mode);
    layer->encoding.sparse = spec_bool(config->stage, "sparse");
    layer->computed = dtype_of(config);
    layer->encoding.dtype = layer->encoding.mode == ENCODE_INT ? TUNDISH_INT32 : layer->computed;
    if (layer->encoding.sparse && layer->encoding.mode == ENCODE_INT)
        return stage_complain(config, "discretization: sparse needs another output_mode than int");
    if (layer->computed == TUNDISH_STRING || layer->computed == TUNDISH_BOOL)
        return stage_complain(config, "discretization: dtype must be numeric");
    return check_parameters(config);
}

/* Values on their way to float32: in their own dtype, or in the layer's. */
struct numbers {
    tundish_dtype dtype;
    const void *values;
};

/* Convert to the layer's dtype if that can change a value. float64 holds every number that float32
 * does, so a conversion through it changes nothing. */
static struct numbers
numbers_of(const struct discretization *layer, tundish_dtype dtype, const struct column *from,
           struct scratch *scratch)
{
    if (layer->computed == TUNDISH_FLOAT32 || layer->computed == TUNDISH_FLOAT64)
        return (struct numbers){ dtype, from->values };
    return (struct numbers){ layer->computed,
                             convert_column(layer->computed, dtype, from, scratch) };
}

static void
apply_int(const struct discretized *layer, const struct column *from, const struct numbers *numbers,
          struct frame *output, uint32_t index)
{
    size_t count = (size_t)from->value_count;
    tundish_dtype dtype = layer->encoding.dtype;
    void *values = frame_values(output, index, count * tnd_dtype_bytes(dtype));

    bins_find_as(&layer->bins, numbers->dtype, numbers->values, count, dtype, values);
    column_set_like(&output->columns[index], from, values);
}

static void
apply_encoded(const struct discretized *layer, const struct column_spec *spec,
              const struct column *from, const struct numbers *numbers, struct frame *output,
              uint32_t index)
{
    size_t count = (size_t)from->value_count;
    struct column indices = *from;
    int64_t *bins = scratch_array(output->scratch, count, sizeof *bins);

    bins_find_as(&layer->bins, numbers->dtype, numbers->values, count, TUNDISH_INT64, bins);
    indices.values = bins;
    encoding_apply(&layer->encoding, spec, &indices, NULL, output, index);
}

static void
map_column(const void *state, const struct column_map *map)
{
    const struct discretization *layer = state;
    const struct numbers numbers =
        numbers_of(layer, map->spec->dtype, map->from, map->output->scratch);

    if (layer->encoding.mode == ENCODE_INT)
        apply_int(map->own, map->from, &numbers, map->output, map->at);
    else
        apply_encoded(map->own, map->spec, map->from, &numbers, map->output, map->at);
}

static void
close_discretized(void *own)
{
    struct discretized *layer = own;

    bins_close(&layer->bins);
    free(layer->boundaries);
}

static const struct column_wise_ops columns = {
    .own_bytes = sizeof(struct discretized),
    .read = read_parameters,
    .describe = describe,
    .map = map_column,
    .close_own = close_discretized,
};

static bool
discretization_learns(const struct spec_stage *stage)
{
    return spec_has_value(stage, "num_bins") && !spec_has_value(stage, "bin_boundaries");
}

static const struct content_learning learning = {
    .kind = LEARNED_BINS,
    .is_keras = true,
    .is_needed = discretization_learns,
};

const struct content_ops content_discretization = {
    .name = "discretization",
    .takes_missing = true,
    .learning = &learning,
    .state_bytes = sizeof(struct discretization),
    .columns = &columns,
    .open = column_wise_open,
    .apply = column_wise_apply,
    .close = column_wise_close,
};
