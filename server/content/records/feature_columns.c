/* feature_columns.c - tell a parser which features are wanted, and turn its values into columns. */
#include <stdlib.h>
#include <string.h>

#include "column/literal.h"
#include "content/records/example_ragged.h"
#include "content/records/feature_columns.h"
#include "core/memory.h"

static bool
is_same_list(const struct example_feature *a, const struct example_feature *b)
{
    return a->is_list && b->is_list && !a->is_padded && !b->is_padded && a->dtype == b->dtype &&
           a->name_bytes == b->name_bytes && memcmp(a->name, b->name, a->name_bytes) == 0 &&
           a->rank == b->rank &&
           (a->rank == 0 || memcmp(a->shape, b->shape, a->rank * sizeof *a->shape) == 0);
}

/* Add a wanted feature. A list that several columns want is read once. */
static uint32_t
want(struct example_feature *wanted, uint32_t *count, struct example_feature feature)
{
    for (uint32_t i = 0; feature.is_list && i < *count; i++)
        if (is_same_list(&wanted[i], &feature)) {
            free(feature.name);
            free(feature.shape);
            free(feature.features_shape_text);
            return i;
        }
    wanted[*count] = feature;
    return (*count)++;
}

static struct example_feature
list_of(const char *key, tundish_dtype dtype)
{
    return (struct example_feature){
        .name = tnd_strdup(key),
        .name_bytes = strlen(key),
        .dtype = dtype,
        .is_list = true,
        .value_count = 1,
        .features_shape_text = tnd_strdup("[]"),
    };
}

/* Say which form the values' lists have. Rows of equal length are a shape, too. */
static void
take_form(struct example_feature *wanted, const struct feature *feature)
{
    uint32_t rows = 0;

    while (rows < feature->partition_count && feature->partitions[rows].type == PARTITION_UNIFORM)
        rows++;
    wanted->rank = (uint8_t)feature->rank;
    if (rows == feature->partition_count && rows > 0)
        wanted->rank = (uint8_t)rows;
    if (wanted->rank == 0)
        return;
    wanted->shape = tnd_zalloc(wanted->rank, sizeof *wanted->shape);
    for (int i = 0; i < wanted->rank; i++)
        wanted->shape[i] = rows > 0 ? feature->partitions[i].length : feature->shape[i];
}

/* Tell the parser every list and value that columns need. Partitions of ragged features are lists
 * of their own. */
static void
make_parser(struct feature_columns *state)
{
    struct example_feature *wanted;
    size_t most = state->list.count;

    for (uint32_t i = 0; i < state->list.count; i++)
        most += state->list.features[i].partition_count;
    wanted = tnd_zalloc(most, sizeof *wanted);
    state->values = tnd_zalloc(state->list.count, sizeof *state->values);
    state->partitions = tnd_zalloc(state->list.count, sizeof *state->partitions);
    for (uint32_t i = 0; i < state->list.count; i++) {
        struct feature *feature = &state->list.features[i];
        struct example_feature one = list_of(feature->key, feature->dtype);

        free(one.features_shape_text);
        one.features_shape_text = features_shape_text(feature->shape, feature->rank);
        one.is_list = feature->type != FEATURE_FIXED;
        one.is_padded = feature->type == FEATURE_SEQUENCE;
        one.value_count = feature->value_count;
        take_form(&one, feature);
        if (feature->type == FEATURE_FIXED) {
            one.fallback = feature->fallback;
            feature->fallback = NULL;
        }
        state->values[i] = want(wanted, &state->parser_count, one);
        state->partitions[i] = tnd_zalloc(feature->partition_count, sizeof **state->partitions);
        for (uint32_t k = 0; k < feature->partition_count; k++)
            if (feature->partitions[k].key != NULL)
                state->partitions[i][k] = want(wanted, &state->parser_count,
                                               list_of(feature->partitions[k].key, TUNDISH_INT64));
    }
    state->parser = example_parser_open(wanted, state->parser_count);
}

/* Describe a feature's column, after the batch's dimension if there is one. */
static void
describe(const struct feature_columns *state, const struct feature *feature, int64_t batch,
         struct column_spec *column)
{
    int rank = 0;

    if (state->is_batch)
        column->shape[rank++] = batch;
    if (feature->type != FEATURE_FIXED)
        column->shape[rank++] = -1;
    for (int i = 0; i < feature->rank; i++)
        column->shape[rank++] = feature->shape[i];
    if (feature->type == FEATURE_VARLEN) {
        column->kind = TUNDISH_SPARSE;
        column->shape[0] = -1; /* TensorFlow loses the number of rows */
    }
    if (feature->type == FEATURE_RAGGED) {
        for (uint32_t k = 0; k < feature->partition_count; k++)
            column->shape[rank++] = feature->partitions[k].type == PARTITION_UNIFORM
                                        ? feature->partitions[k].length
                                        : -1;
        column->ragged_rank =
            ragged_rank_of(feature->partitions, feature->partition_count, state->is_batch);
        column->kind = column->ragged_rank > 0 ? TUNDISH_RAGGED : TUNDISH_DENSE;
        column->splits_int32 = feature->splits_int32;
    }
    column->rank = rank;
}

static tundish_status
make_schema(struct feature_columns *state, const struct stage_config *config, struct schema *schema)
{
    const struct column_spec *serialized = &config->input->columns[state->serialized];
    tundish_status status = TUNDISH_OK;

    for (uint32_t i = 0; i < config->input->count; i++)
        if (i != state->serialized)
            schema_pass(schema, config->input, i);
    state->outputs = tnd_zalloc(state->list.count, sizeof *state->outputs);
    for (uint32_t i = 0; i < state->list.count; i++) {
        const struct feature *feature = &state->list.features[i];

        if (schema_find(schema, feature->column) >= 0)
            status = spec_complain(config->errors, feature->line, feature->at_column,
                                   "'%s' is a column already", feature->column);
        state->outputs[i] = schema->count;
        describe(state, feature, serialized->shape[0],
                 schema_add(schema, feature->column, feature->dtype));
    }
    return status;
}

tundish_status
feature_columns_open(struct feature_columns *state, const struct stage_config *config,
                     struct schema *ret_schema, bool *ret_batch_wide)
{
    tundish_status status = features_serialized(config, &state->serialized);
    tundish_status features = features_open(config, &state->list);
    int rank;

    if (status != TUNDISH_OK || features != TUNDISH_OK)
        return status != TUNDISH_OK ? status : features;
    rank = config->input->columns[state->serialized].rank;
    if (rank > 1)
        return stage_complain(config,
                              "column '%s' has %d dimensions; %s takes one record or a vector "
                              "of them",
                              config->input->columns[state->serialized].name, rank,
                              config->stage->info->name);
    state->is_batch = rank == 1;
    status = make_schema(state, config, ret_schema);
    make_parser(state);
    for (uint32_t i = 0; i < state->list.count; i++)
        if (config->depth > 0 && (state->list.features[i].type == FEATURE_SEQUENCE ||
                                  state->list.features[i].type == FEATURE_VARLEN))
            *ret_batch_wide = true;
    return status;
}

/* In a batch, every column starts with the records' level. */
static void
batch_levels(const struct feature_columns *state, const struct column *records,
             struct column *column)
{
    column_clear(column);
    column->count = records->count;
    if (state->is_batch)
        column->levels[column->level_count++] = records->levels[0];
}

static void
fixed_column(const struct feature *feature, struct column *column, int64_t records,
             const void *values)
{
    for (int i = 0; i < feature->rank; i++)
        column->levels[column->level_count++] = (struct level){ .uniform = feature->shape[i] };
    column->value_count = records * feature->value_count;
    column->values = values;
}

static void
list_column(struct column *column, const struct example_values *list, int64_t records)
{
    column->levels[column->level_count++] = (struct level){ .uniform = -1, .splits = list->splits };
    column->value_count = list->splits[records];
    column->values = list->values;
}

/* FixedLenSequence in a single row: as long as it is. */
static void
sequence_column(const struct feature *feature, struct frame *output, struct column *column,
                const struct example_values *list, int64_t records)
{
    int64_t *splits = scratch_array(output->scratch, (size_t)records + 1, sizeof *splits);

    list_column(column, list, records);
    for (int64_t i = 0; i <= records; i++)
        splits[i] = list->splits[i] / feature->value_count;
    column->levels[column->level_count - 1].splits = splits;
    for (int i = 0; i < feature->rank; i++)
        column->levels[column->level_count++] = (struct level){ .uniform = feature->shape[i] };
}

/* FixedLenSequence in a batch: pad every row to the longest with the default, in items of
 * value_count values. */
static void
padded_column(const struct feature *feature, struct frame *output, uint32_t index,
              struct column *column, const struct example_values *list, int64_t records)
{
    const struct level rows = column->levels[0];
    size_t bytes = literal_bytes(feature->dtype);
    int64_t *lengths = scratch_array(output->scratch, (size_t)records + 1, sizeof *lengths);
    int64_t *splits = scratch_array(output->scratch, (size_t)records + 1, sizeof *splits);
    int64_t total = 0;
    uint8_t *to;

    splits[0] = 0;
    for (int64_t e = 0; e < column->count; e++) {
        int64_t longest = 0;

        for (int64_t r = level_begin(&rows, e); r < level_begin(&rows, e + 1); r++)
            if (list->splits[r + 1] - list->splits[r] > longest)
                longest = list->splits[r + 1] - list->splits[r];
        for (int64_t r = level_begin(&rows, e); r < level_begin(&rows, e + 1); r++) {
            lengths[r] = longest;
            total += longest;
            splits[r + 1] = total / feature->value_count;
        }
    }
    to = frame_values(output, index, (size_t)total * bytes);
    column->values = to;
    column->value_count = total;
    for (int64_t r = 0; r < records; r++) {
        int64_t own = list->splits[r + 1] - list->splits[r];

        if (own > 0)
            memcpy(to, (const uint8_t *)list->values + (size_t)list->splits[r] * bytes,
                   (size_t)own * bytes);
        for (int64_t i = own; i < lengths[r]; i++)
            memcpy(to + (size_t)i * bytes, feature->fallback, bytes);
        to += (size_t)lengths[r] * bytes;
    }
    column->levels[column->level_count++] = (struct level){ .uniform = -1, .splits = splits };
    for (int i = 0; i < feature->rank; i++)
        column->levels[column->level_count++] = (struct level){ .uniform = feature->shape[i] };
}

/* VarLen in a batch: the dense shape is as wide as the longest row, also for slices of the
 * batch. */
static void
sparse_shape(struct frame *output, struct column *column, const struct example_values *list)
{
    const struct level *rows = &column->levels[0];
    int64_t *shape;

    if (column->level_count < 2)
        return;
    shape = scratch_array(output->scratch, (size_t)column->count * 2, sizeof *shape);
    for (int64_t e = 0; e < column->count; e++) {
        int64_t longest = 0;

        for (int64_t r = level_begin(rows, e); r < level_begin(rows, e + 1); r++)
            if (list->splits[r + 1] - list->splits[r] > longest)
                longest = list->splits[r + 1] - list->splits[r];
        shape[2 * e] = level_length(rows, e);
        shape[2 * e + 1] = longest;
    }
    column->dense_shape = shape;
}

static void
ragged_column(const struct feature_columns *state, uint32_t i, int64_t records,
              struct frame *output, const struct example_values *values)
{
    const struct feature *feature = &state->list.features[i];
    const struct example_values *keys[RANK_MAX];
    struct column *column = &output->columns[state->outputs[i]];

    for (uint32_t k = 0; k < feature->partition_count; k++)
        keys[k] = &values[state->partitions[i][k]];
    ragged_build(&(struct ragged_input){ .name = feature->column,
                                         .partitions = feature->partitions,
                                         .partition_count = feature->partition_count,
                                         .keys = keys,
                                         .values = &values[state->values[i]],
                                         .is_batch = state->is_batch },
                 records, output, column);
}

static void
make_column(const struct feature_columns *state, uint32_t i, const struct column *records,
            struct frame *output, const struct example_values *values)
{
    const struct feature *feature = &state->list.features[i];
    const struct example_values *mine = &values[state->values[i]];
    struct column *column = &output->columns[state->outputs[i]];

    batch_levels(state, records, column);
    switch (feature->type) {
    case FEATURE_FIXED:
        fixed_column(feature, column, records->value_count, mine->values);
        break;
    case FEATURE_SEQUENCE:
        if (state->is_batch)
            padded_column(feature, output, state->outputs[i], column, mine, records->value_count);
        else
            sequence_column(feature, output, column, mine, records->value_count);
        break;
    case FEATURE_VARLEN:
        list_column(column, mine, records->value_count);
        sparse_shape(output, column, mine);
        break;
    case FEATURE_RAGGED:
        ragged_column(state, i, records->value_count, output, values);
        break;
    }
}

void
feature_columns_apply(const struct feature_columns *state, const struct frame *input,
                      struct frame *output, feature_parse *parse)
{
    const struct column *records = &input->columns[state->serialized];
    const struct example_input examples = {
        .records = records->values,
        .count = records->value_count,
        .column = records,
        .is_batch = state->is_batch,
    };
    struct example_values *values =
        scratch_array(output->scratch, state->parser_count, sizeof *values);

    memset(values, 0, state->parser_count * sizeof *values);
    for (uint32_t i = 0; i < state->list.count; i++) {
        const struct feature *feature = &state->list.features[i];

        if (feature->type == FEATURE_FIXED)
            values[state->values[i]].values =
                frame_values(output, state->outputs[i],
                             (size_t)(records->value_count * feature->value_count) *
                                 literal_bytes(feature->dtype));
    }
    parse(state->parser, &examples, output, values);
    for (uint32_t i = 0; i < state->list.count; i++)
        make_column(state, i, records, output, values);
}

void
feature_columns_close(struct feature_columns *state)
{
    for (uint32_t i = 0; state->partitions != NULL && i < state->list.count; i++)
        free(state->partitions[i]);
    free(state->partitions);
    free(state->values);
    free(state->outputs);
    features_close(&state->list);
    example_parser_close(state->parser);
}
