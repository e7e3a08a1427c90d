/* content_category_encoding.c - keras.layers.CategoryEncoding. */
#include <string.h>

#include "column/convert.h"
#include "column/dims.h"
#include "content/column_wise.h"
#include "content/terms/encoding.h"

struct category_encoding {
    struct column_wise wise;
    struct encoding encoding; /* indices are converted to its dtype, too */
    int32_t weights;          /* the column of count_weights, or -1 */
};

/* Find the column of weights, and refuse what Keras cannot weigh. */
static tundish_status
find_weights(const struct stage_config *config, struct category_encoding *layer)
{
    const struct spec_value *weights = spec_get(config->stage, "count_weights");

    layer->weights = -1;
    if (weights == NULL || weights->kind == SPEC_NULL)
        return TUNDISH_OK;
    if (layer->encoding.mode != ENCODE_COUNT)
        return spec_complain(config->errors, weights->line, weights->column,
                             "count_weights needs output_mode: count, not %s",
                             spec_text(config->stage, "output_mode"));
    layer->weights = schema_find(config->input, weights->text);
    if (layer->weights < 0)
        return spec_complain(config->errors, weights->line, weights->column,
                             "there is no column '%s' for count_weights", weights->text);
    if (layer->encoding.dtype != TUNDISH_FLOAT32)
        return spec_complain(config->errors, weights->line, weights->column,
                             "count_weights yields float32; remove dtype and use cast afterwards");
    if (config->input->columns[layer->weights].dtype == TUNDISH_STRING)
        return spec_complain(config->errors, weights->line, weights->column,
                             "count_weights: '%s' has dtype string; expected a numeric dtype",
                             weights->text);
    return TUNDISH_OK;
}

/* The dtypes that Keras can encode in. Its bincount serves up to two dimensions and takes no narrow
 * types; the sum that serves more gives no narrow integers; and a layer cannot have dtype int8. */
static bool
dtype_is_possible(const struct category_encoding *layer, int rank)
{
    tundish_dtype dtype = layer->encoding.dtype;
    bool is_integer = tnd_dtype_is_integer(dtype) || dtype == TUNDISH_BOOL;

    if (dtype == TUNDISH_INT8)
        return false;
    if (layer->encoding.mode == ENCODE_ONE_HOT || dtype == TUNDISH_INT32 ||
        dtype == TUNDISH_INT64 || dtype == TUNDISH_FLOAT32 || dtype == TUNDISH_FLOAT64)
        return true;
    return rank > 2 && (layer->encoding.mode != ENCODE_COUNT || !is_integer);
}

/* Refuse what fails in Keras. Its sparse counts take no floats, but without another dtype the layer
 * converts everything to float32. */
static tundish_status
check_rank(const struct stage_config *config, const struct category_encoding *layer,
           const struct column_spec *column)
{
    tundish_dtype dtype = layer->encoding.dtype;
    bool counts = layer->encoding.mode != ENCODE_ONE_HOT && column->rank <= 2;
    bool is_wide = dtype == TUNDISH_INT32 || dtype == TUNDISH_INT64;

    if (counts && layer->encoding.sparse && !is_wide)
        return stage_complain(config,
                              "category_encoding: a sparse %s of '%s' is not supported; remove "
                              "sparse and use to_sparse afterwards, or set dtype: int64",
                              spec_text(config->stage, "output_mode"), column->name);
    if (!dtype_is_possible(layer, column->rank))
        return stage_complain(config,
                              "category_encoding: %s of '%s' is not supported in %s; set another "
                              "dtype and use cast afterwards",
                              spec_text(config->stage, "output_mode"), column->name,
                              tnd_dtype_name(dtype));
    if (layer->weights >= 0 && column->rank == 0)
        return stage_complain(config,
                              "category_encoding: count_weights needs a batch, but '%s' is a "
                              "single value in each row; use batch first",
                              column->name);
    return TUNDISH_OK;
}

static tundish_status
read_parameters(void *state, const struct stage_config *config)
{
    struct category_encoding *layer = state;
    const struct spec_value *dtype = spec_get(config->stage, "dtype");

    layer->encoding.depth = spec_int(config->stage, "num_tokens");
    layer->encoding.dtype = TUNDISH_FLOAT32;
    if (dtype != NULL && dtype->kind != SPEC_NULL)
        layer->encoding.dtype = spec_dtype(config->stage, "dtype");
    if (layer->encoding.dtype == TUNDISH_STRING)
        return spec_complain(config->errors, dtype->line, dtype->column,
                             "category_encoding: the dtype must be numeric, not string");
    layer->encoding.sparse = spec_bool(config->stage, "sparse");
    encoding_mode_of(spec_text(config->stage, "output_mode"), &layer->encoding.mode);
    return find_weights(config, layer);
}

static tundish_status
describe(void *state, const struct stage_config *config, void *own, struct column_spec *column,
         bool *batch_wide)
{
    struct category_encoding *layer = state;
    tundish_status status;

    (void)own;
    if (column->dtype == TUNDISH_STRING)
        return stage_complain(
            config,
            "category_encoding: '%s' has dtype string; expected integers (use string_lookup)",
            column->name);
    status = check_rank(config, layer, column);
    return status != TUNDISH_OK ? status
                                : encoding_open(&layer->encoding, config, column, batch_wide);
}

/* Keras casts its input to the layer's dtype (float32 even for integers), and then to int32. Large
 * integers lose their low bits on the way; so do they here. */
static int64_t *
indices_of(const struct category_encoding *layer, tundish_dtype dtype, const struct column *column,
           struct scratch *scratch)
{
    tundish_dtype computed = layer->encoding.dtype;
    const void *numbers = convert_column(computed, dtype, column, scratch);
    size_t count = (size_t)column->value_count;
    int32_t *narrow = scratch_array(scratch, count, sizeof *narrow);
    int64_t *indices = scratch_array(scratch, count, sizeof *indices);

    convert_values(TUNDISH_INT32, narrow, computed, numbers, count);
    convert_values(TUNDISH_INT64, indices, TUNDISH_INT32, narrow, count);
    return indices;
}

/* The weights, one for each index. An element with another number of weights is bad. */
static const float *
weights_of(const struct category_encoding *layer, const struct frame *input,
           const struct column *indices, struct frame *output)
{
    const struct column *column;

    if (layer->weights < 0)
        return NULL;
    column = &input->columns[layer->weights];
    if (!column_same_structure(column, indices)) {
        for (int64_t i = 0; i < input->count; i++)
            frame_reject(output, i, "count_weights have another shape than what they weigh");
        return NULL;
    }
    return convert_column(TUNDISH_FLOAT32, input->schema->columns[layer->weights].dtype, column,
                          output->scratch);
}

static void
map_column(const void *state, const struct column_map *map)
{
    const struct category_encoding *layer = state;
    struct column indices = *map->from;

    indices.values = indices_of(layer, map->spec->dtype, &indices, map->output->scratch);
    encoding_apply(&layer->encoding, map->spec, &indices,
                   weights_of(layer, map->input, &indices, map->output), map->output, map->at);
}

static const struct column_wise_ops columns = {
    .read = read_parameters,
    .describe = describe,
    .map = map_column,
};

const struct content_ops content_category_encoding = {
    .name = "category_encoding",
    .takes_missing = true,
    .state_bytes = sizeof(struct category_encoding),
    .columns = &columns,
    .open = column_wise_open,
    .apply = column_wise_apply,
    .close = column_wise_close,
};
