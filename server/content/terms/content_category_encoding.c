/* content_category_encoding.c - keras.layers.CategoryEncoding. */
#include <string.h>

#include "column/convert.h"
#include "column/dims.h"
#include "content/terms/encoding.h"

struct category_encoding {
    struct encoding encoding; /* indices are converted to its dtype, too */
    int32_t weights;          /* the column of count_weights, or -1 */
    struct content_targets targets;
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
category_encoding_open(void *state, const struct stage_config *config, struct schema *ret_schema,
                       bool *ret_batch_wide)
{
    struct category_encoding *layer = state;
    const struct spec_value *dtype = spec_get(config->stage, "dtype");
    tundish_status status;

    *ret_batch_wide = false;
    layer->encoding.depth = spec_int(config->stage, "num_tokens");
    layer->encoding.dtype = TUNDISH_FLOAT32;
    if (dtype != NULL && dtype->kind != SPEC_NULL)
        layer->encoding.dtype = spec_dtype(config->stage, "dtype");
    if (layer->encoding.dtype == TUNDISH_STRING)
        return spec_complain(config->errors, dtype->line, dtype->column,
                             "category_encoding: the dtype must be numeric, not string");
    layer->encoding.sparse = spec_bool(config->stage, "sparse");
    encoding_mode_of(spec_text(config->stage, "output_mode"), &layer->encoding.mode);
    status = find_weights(config, layer);
    if (status == TUNDISH_OK)
        status = content_targets_open(config, ret_schema, &layer->targets);
    for (uint32_t i = 0; i < layer->targets.count && status == TUNDISH_OK; i++) {
        struct column_spec *column = &ret_schema->columns[layer->targets.list[i].output];

        if (column->dtype == TUNDISH_STRING)
            return stage_complain(
                config,
                "category_encoding: '%s' has dtype string; expected integers (use string_lookup)",
                column->name);
        status = check_rank(config, layer, column);
        if (status == TUNDISH_OK)
            status = encoding_open(&layer->encoding, config, column, ret_batch_wide);
    }
    return status;
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

static tundish_status
category_encoding_apply(const void *state, const struct frame *input, struct frame *output)
{
    const struct category_encoding *layer = state;

    for (uint32_t i = 0; i < layer->targets.count; i++) {
        const struct content_target *target = &layer->targets.list[i];
        const struct column_spec *spec = &input->schema->columns[target->input];
        struct column indices = input->columns[target->input];

        indices.values = indices_of(layer, spec->dtype, &indices, output->scratch);
        encoding_apply(&layer->encoding, spec, &indices, weights_of(layer, input, &indices, output),
                       output, target->output);
    }
    return TUNDISH_OK;
}

static void
category_encoding_close(void *state)
{
    struct category_encoding *layer = state;

    content_targets_close(&layer->targets);
}

const struct content_ops content_category_encoding = {
    .name = "category_encoding",
    .takes_missing = true,
    .state_bytes = sizeof(struct category_encoding),
    .open = category_encoding_open,
    .apply = category_encoding_apply,
    .close = category_encoding_close,
};
