/* content_tfidf.c - tft.tfidf: the distinct ids of each row in ascending order, with weights: the
 * frequency in the row times the learned inverse document frequency. */
#include <stdlib.h>
#include <string.h>

#include "content/learned/learning.h"
#include "content/terms/lookup.h"
#include "core/memory.h"

struct tfidf {
    uint32_t input, ids, weights; /* columns */
    int64_t vocab_size;
    float *rarities; /* by id */
};

static tundish_status
output_names(const struct stage_config *config, const char *column, struct spec_names *ret_names)
{
    const struct spec_value *output = spec_get(config->stage, "output");
    tundish_status status = spec_expand_columns(output, NULL, 0, config->errors, ret_names);

    if (status == TUNDISH_OK && ret_names->count != 2)
        status = spec_complain(config->errors, output->line, output->column,
                               "output must be two names: one for the ids, one for the weights");
    for (size_t i = 0; i < ret_names->count && status == TUNDISH_OK; i++)
        if (strcmp(ret_names->names[i], column) != 0 &&
            schema_find(config->input, ret_names->names[i]) >= 0)
            status = spec_complain(config->errors, output->line, output->column,
                                   "output '%s' is a column already", ret_names->names[i]);
    return status;
}

static tundish_status
find_input(struct tfidf *stage, const struct stage_config *config)
{
    const struct spec_value *value = spec_get(config->stage, "columns");
    const char **known = schema_names(config->input);
    struct spec_names columns = { 0 };
    tundish_status status = TUNDISH_OK;

    if (value != NULL)
        status = spec_expand_columns(value, known, config->input->count, config->errors, &columns);
    if (status == TUNDISH_OK && (value != NULL ? columns.count : config->input->count) != 1)
        status = stage_complain(config, "tfidf works on one column: name it in columns");
    if (status == TUNDISH_OK && value != NULL)
        stage->input = (uint32_t)schema_find(config->input, columns.names[0]);
    free(known);
    spec_names_close(&columns);
    return status;
}

/* Read the learned weights: one for each id of the vocabulary. */
static tundish_status
read_rarities(struct tfidf *stage, const struct stage_config *config, const char *name)
{
    struct learned_table table = { 0 };
    tundish_status status = learned_require(config, name);

    if (status == TUNDISH_OK)
        status = learned_table_open(config, name, ".idf_weights", TUNDISH_FLOAT32, &table);
    if (status == TUNDISH_OK && table.value_count != stage->vocab_size)
        status = stage_complain(config, "tfidf: %s.idf_weights has %lld weights, not %lld", name,
                                (long long)table.value_count, (long long)stage->vocab_size);
    if (status == TUNDISH_OK) {
        stage->rarities = table.values;
        table.values = NULL;
    }
    learned_table_close(&table);
    return status;
}

/* The output has all columns except the input, and the two new ones. */
static void
describe(struct tfidf *stage, const struct stage_config *config, const struct spec_names *names,
         struct schema *schema)
{
    struct content_target list[2] = { { 0, 0 }, { 0, 0 } };
    struct content_targets added = { 2, list };

    for (uint32_t i = 0; i < config->input->count; i++)
        if (i != stage->input)
            schema_pass(schema, config->input, i);
    for (uint32_t i = 0; i < 2; i++) {
        struct column_spec *column = schema_pass(schema, config->input, stage->input);

        list[i].output = schema->count - 1;
        free(column->name);
        column->name = tnd_strdup(names->names[i]);
        column->passed_from = -1;
        column->dtype = i == 0 ? TUNDISH_INT64 : TUNDISH_FLOAT32;
        column->has_range = i == 0;
        column->minimum = 0;
        column->maximum = stage->vocab_size - 1;
    }
    content_sort_columns(schema, &added);
    stage->ids = list[0].output;
    stage->weights = list[1].output;
}

static tundish_status
tfidf_open(void *state, const struct stage_config *config, struct schema *ret_schema,
           bool *ret_batch_wide)
{
    struct tfidf *stage = state;
    struct spec_names names = { 0 };
    const struct column_spec *column;
    tundish_status status = find_input(stage, config);

    *ret_batch_wide = config->depth > 0; /* the dense shape is that of the longest row */
    if (status != TUNDISH_OK)
        return status;
    column = &config->input->columns[stage->input];
    stage->vocab_size = spec_int(config->stage, "vocab_size");
    if (!tnd_dtype_is_integer(column->dtype) || column->kind != TUNDISH_SPARSE ||
        column->rank != (int)config->depth + 1)
        return stage_complain(config,
                              "tfidf: '%s' must be a sparse column of integers, with one list of "
                              "ids per row; use to_sparse",
                              column->name);
    status = output_names(config, column->name, &names);
    if (status == TUNDISH_OK)
        status = read_rarities(stage, config, learned_name_of(config, names.names[1]));
    if (status == TUNDISH_OK)
        describe(stage, config, &names, ret_schema);
    spec_names_close(&names);
    return status;
}

static int
compare_ids(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;

    return (left > right) - (left < right);
}

/* The vocabulary index of a value. tf.Transform takes ids modulo vocab_size (floormod), so that -1
 * becomes the last. */
static int64_t
id_of(const struct tfidf *stage, int64_t value)
{
    int64_t id = value % stage->vocab_size;

    return id < 0 ? id + stage->vocab_size : id;
}

static tundish_status
tfidf_apply(const void *state, const struct frame *input, struct frame *output)
{
    const struct tfidf *stage = state;
    const struct column *from = &input->columns[stage->input];
    uint32_t last = from->level_count - 1;
    int64_t rows = column_list_count(from, last), used = 0;
    const int64_t *values =
        lookup_integers(input->schema->columns[stage->input].dtype, from, output->scratch);
    size_t most = (size_t)from->value_count;
    int64_t *splits = scratch_array(output->scratch, (size_t)rows + 1, sizeof *splits);
    int64_t *sorted = scratch_array(output->scratch, most, sizeof *sorted);
    int64_t *ids = scratch_array(output->scratch, most, sizeof *ids);
    float *weights = scratch_array(output->scratch, most, sizeof *weights);
    struct column *column = &output->columns[stage->ids];

    splits[0] = 0;
    for (int64_t row = 0; row < rows; row++) {
        int64_t begin = level_begin(&from->levels[last], row);
        int64_t length = level_length(&from->levels[last], row);

        for (int64_t i = 0; i < length; i++)
            sorted[i] = id_of(stage, values[begin + i]);
        /* Sorting brings equal ids together, in the ascending order that the output needs. */
        qsort(sorted, (size_t)length, sizeof *sorted, compare_ids);
        for (int64_t i = 0, next; i < length; i = next) {
            for (next = i + 1; next < length && sorted[next] == sorted[i];)
                next++;
            ids[used] = sorted[i];
            weights[used++] =
                /* tf.Transform divides int64 counts, which is float64 division, and then casts the
                 * quotient. */
                (float)((double)(next - i) / (double)length) * stage->rarities[sorted[i]];
        }
        splits[row + 1] = used;
    }
    *column = *from;
    column->levels[last] = (struct level){ .uniform = -1, .splits = splits };
    column->value_count = used;
    column->values = ids;
    column->indices = NULL;
    column->dense_shape = NULL;
    column_set_like(&output->columns[stage->weights], column, weights);
    return TUNDISH_OK;
}

static void
tfidf_close(void *state)
{
    struct tfidf *stage = state;

    free(stage->rarities);
}

static const struct content_learning learning = {
    .kind = LEARNED_RARITIES,
    .has_own_outputs = true,
};

const struct content_ops content_tfidf = {
    .name = "tfidf",
    .learning = &learning,
    .state_bytes = sizeof(struct tfidf),
    .open = tfidf_open,
    .apply = tfidf_apply,
    .close = tfidf_close,
};
