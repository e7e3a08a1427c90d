/* content_hashed_crossing.c - keras.layers.HashedCrossing: several columns hashed together to a
 * bin. */
#include <stdlib.h>
#include <string.h>

#include "column/literal.h"
#include "content/content.h"
#include "content/terms/encoding.h"
#include "content/terms/lookup.h"
#include "core/hash_farm.h"
#include "core/memory.h"
#include "spec/column_list.h"

struct crossed {
    uint32_t column; /* of the input */
    tundish_dtype dtype;
};

struct hashed_crossing {
    uint32_t count;
    struct crossed *crossed;
    uint64_t num_bins;
    uint32_t output;
    struct column_spec bins; /* the column to encode */
    struct encoding encoding;
};

static bool
have_equal_shapes(const struct column_spec *a, const struct column_spec *b)
{
    if (a->rank != b->rank)
        return false;
    for (int i = 0; i < a->rank; i++)
        if (a->shape[i] >= 0 && b->shape[i] >= 0 && a->shape[i] != b->shape[i])
            return false;
    return true;
}

/* Keras takes single values only: shape [], [batch] or [batch, 1], all of the same shape. */
static tundish_status
check_crossed(const struct stage_config *config, const struct column_spec *first,
              const struct column_spec *column)
{
    if (column->dtype != TUNDISH_STRING && !tnd_dtype_is_integer(column->dtype))
        return stage_complain(config,
                              "hashed_crossing works on integer or string columns, but '%s' is %s",
                              column->name, tnd_dtype_name(column->dtype));
    if (column->kind != TUNDISH_DENSE || column->rank < 0 || column->rank > 2 ||
        (column->rank == 2 && column->shape[1] != 1))
        return stage_complain(config,
                              "hashed_crossing takes columns of shape [], [batch] or [batch,1], "
                              "and '%s' has another shape",
                              column->name);
    if (!have_equal_shapes(first, column))
        return stage_complain(config,
                              "hashed_crossing needs columns of one shape, but '%s' and '%s' "
                              "differ",
                              first->name, column->name);
    return TUNDISH_OK;
}

static tundish_status
read_crossed(struct hashed_crossing *state, const struct stage_config *config)
{
    const struct spec_value *value = spec_get(config->stage, "columns");
    const char **known = schema_names(config->input);
    struct spec_names names = { 0 };
    tundish_status status =
        spec_expand_columns(value, known, config->input->count, config->errors, &names);

    free(known);
    if (status == TUNDISH_OK && names.count < 2)
        status = spec_complain(config->errors, value->line, value->column,
                               "hashed_crossing needs at least two columns");
    state->crossed = tnd_zalloc(names.count, sizeof *state->crossed);
    for (size_t i = 0; i < names.count && status == TUNDISH_OK; i++) {
        int32_t index = schema_find(config->input, names.names[i]);

        state->crossed[state->count++] =
            (struct crossed){ (uint32_t)index, config->input->columns[index].dtype };
        status = check_crossed(config, &config->input->columns[state->crossed[0].column],
                               &config->input->columns[index]);
    }
    spec_names_close(&names);
    return status;
}

static tundish_status
describe(struct hashed_crossing *state, const struct stage_config *config, struct schema *schema,
         bool *ret_batch_wide)
{
    const char *name = spec_text(config->stage, "output");
    const struct column_spec *first = &config->input->columns[state->crossed[0].column];
    struct column_spec *column;

    schema_pass_all(schema, config->input);
    if (schema_find(schema, name) >= 0)
        return stage_complain(config, "output '%s' is a column already", name);
    state->output = schema->count;
    column = schema_add(schema, name, TUNDISH_INT64);
    column->rank = first->rank;
    for (int i = 0; i < first->rank; i++)
        column->shape[i] = first->shape[i];
    state->bins = *column;
    column->has_range =
        state->encoding.mode == ENCODE_INT && tnd_dtype_is_integer(state->encoding.dtype);
    column->maximum = (int64_t)state->num_bins - 1;
    if (state->encoding.mode != ENCODE_INT)
        return encoding_open(&state->encoding, config, column, ret_batch_wide);
    column->dtype = state->encoding.dtype;
    return TUNDISH_OK;
}

static tundish_status
hashed_crossing_open(void *memory, const struct stage_config *config, struct schema *ret_schema,
                     bool *ret_batch_wide)
{
    struct hashed_crossing *state = memory;
    tundish_status status = read_crossed(state, config);

    state->num_bins = (uint64_t)spec_int(config->stage, "num_bins");
    state->encoding.depth = (int64_t)state->num_bins;
    if (status == TUNDISH_OK)
        status = encoding_read(&state->encoding, config, true);
    return status != TUNDISH_OK ? status : describe(state, config, ret_schema, ret_batch_wide);
}

/* Fold one more column into the hashes, as the op SparseCrossHashed does: a string by its
 * fingerprint, an integer by its value. */
static void
fold(const struct crossed *crossed, const struct column *column, struct scratch *scratch,
     uint64_t *crosses)
{
    const struct byte_view *texts = column->values;
    const int64_t *integers;

    if (crossed->dtype == TUNDISH_STRING) {
        for (int64_t i = 0; i < column->value_count; i++)
            crosses[i] = tnd_hash_farm_cat(crosses[i], tnd_hash_farm(texts[i].data, texts[i].size));
        return;
    }
    integers = lookup_integers(crossed->dtype, column, scratch);
    for (int64_t i = 0; i < column->value_count; i++)
        crosses[i] = tnd_hash_farm_cat(crosses[i], (uint64_t)integers[i]);
}

/* Reject elements whose columns have different lengths, which the plan could not see. False: there
 * are some, so that values do not lie at the same positions in both columns. */
static bool
check_lengths(const struct column *first, const struct column *column, struct frame *output)
{
    bool are_equal = true;

    for (int64_t e = 0; e < first->count && first->level_count > 0; e++) {
        int64_t begin, end, other_begin, other_end;

        column_value_range(first, e, e + 1, &begin, &end);
        column_value_range(column, e, e + 1, &other_begin, &other_end);
        if (end - begin == other_end - other_begin)
            continue;
        are_equal = false;
        frame_reject(output, e, "hashed_crossing: the columns have %lld and %lld values",
                     (long long)(end - begin), (long long)(other_end - other_begin));
    }
    return are_equal;
}

/* Copy the column's values to the positions of the first column's. An element of another length,
 * which is rejected, gets zeros. */
static struct column
aligned(const struct column *first, const struct column *column, size_t bytes,
        struct scratch *scratch)
{
    struct column copy = *first;
    uint8_t *values = scratch_array(scratch, (size_t)first->value_count, bytes);

    memset(values, 0, (size_t)first->value_count * bytes);
    for (int64_t e = 0; e < first->count; e++) {
        int64_t begin, end, other_begin, other_end;

        column_value_range(first, e, e + 1, &begin, &end);
        column_value_range(column, e, e + 1, &other_begin, &other_end);
        if (end - begin == other_end - other_begin && end > begin)
            memcpy(values + (size_t)begin * bytes,
                   (const uint8_t *)column->values + (size_t)other_begin * bytes,
                   (size_t)(end - begin) * bytes);
    }
    copy.values = values;
    return copy;
}

static tundish_status
hashed_crossing_apply(const void *memory, const struct frame *input, struct frame *output)
{
    const struct hashed_crossing *state = memory;
    const struct column *first = &input->columns[state->crossed[0].column];
    size_t bytes = (size_t)first->value_count * sizeof(uint64_t);
    bool is_wide = state->encoding.mode == ENCODE_INT && state->encoding.dtype == TUNDISH_INT64;
    uint64_t *crosses = is_wide ? frame_values(output, state->output, bytes)
                                : scratch_alloc(output->scratch, bytes);
    struct column numbered;

    for (int64_t i = 0; i < first->value_count; i++)
        /* The hash key that TensorFlow starts each cross with. */
        crosses[i] = TND_HASH_CROSS_KEY;
    for (uint32_t c = 0; c < state->count; c++) {
        struct column column = input->columns[state->crossed[c].column];

        if (!check_lengths(first, &column, output))
            column =
                aligned(first, &column, literal_bytes(state->crossed[c].dtype), output->scratch);
        fold(&state->crossed[c], &column, output->scratch, crosses);
    }
    for (int64_t i = 0; i < first->value_count; i++)
        crosses[i] %= state->num_bins;
    column_set_like(&numbered, first, crosses);
    encoding_store(&state->encoding, &state->bins, &numbered, output, state->output);
    return TUNDISH_OK;
}

static void
hashed_crossing_close(void *memory)
{
    struct hashed_crossing *state = memory;

    free(state->crossed);
}

const struct content_ops content_hashed_crossing = {
    .name = "hashed_crossing",
    .state_bytes = sizeof(struct hashed_crossing),
    .open = hashed_crossing_open,
    .apply = hashed_crossing_apply,
    .close = hashed_crossing_close,
};
