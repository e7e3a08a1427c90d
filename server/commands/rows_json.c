/* rows_json.c - JSON objects, one for each row, to named columns. They are parsed as tf.Examples
 * with a required feature for each column. */
#include "commands/rows_json.h"

#include <stdlib.h>
#include <string.h>

#include "column/literal.h"
#include "content/records/json_parse.h"
#include "core/memory.h"

struct rows_json {
    const struct schema *inputs;
    struct example_parser *parser;
};

/* Describe a column as a feature that every row must have. */
static tundish_status
make_feature(const struct column_spec *column, struct example_feature *feature)
{
    /* A list is a feature of any length (FixedLenSequence), so its first dimension may be
     * unknown. */
    bool is_list = column->rank > 0 && column->shape[0] < 0;

    *feature = (struct example_feature){
        .name = tnd_strdup(column->name),
        .name_bytes = strlen(column->name),
        .dtype = column->dtype,
        .is_list = is_list,
        .value_count = 1,
        .features_shape_text =
            column->rank >= 0 ? features_shape_text(column->shape, column->rank) : NULL,
    };
    if (column->kind != TUNDISH_DENSE || column->rank < 0)
        return tnd_fail(TUNDISH_E_ARGUMENT, "column '%s' is not dense and cannot be an input",
                        column->name);
    feature->rank = (uint8_t)(column->rank - is_list);
    feature->shape = tnd_zalloc(feature->rank, sizeof *feature->shape);
    for (int k = is_list; k < column->rank; k++) {
        feature->shape[k - is_list] = column->shape[k];
        if (column->shape[k] < 0 || (is_list && column->shape[k] == 0) ||
            __builtin_mul_overflow(feature->value_count, column->shape[k], &feature->value_count))
            return tnd_fail(TUNDISH_E_ARGUMENT,
                            "column '%s' of shape %s cannot be an input: only the first dimension "
                            "may be unknown",
                            column->name, feature->features_shape_text);
    }
    return TUNDISH_OK;
}

tundish_status
rows_json_open(const struct schema *inputs, struct rows_json **ret_json)
{
    struct rows_json *json = tnd_zalloc(1, sizeof *json);
    struct example_feature *features = tnd_zalloc((size_t)inputs->count + 1, sizeof *features);
    tundish_status status = TUNDISH_OK;

    for (uint32_t i = 0; i < inputs->count; i++) {
        tundish_status made = make_feature(&inputs->columns[i], &features[i]);

        /* All features are made even after an error, since the parser takes over the whole list. */
        status = status == TUNDISH_OK ? made : status;
    }
    json->inputs = inputs;
    json->parser = example_parser_open(features, inputs->count);
    if (status != TUNDISH_OK)
        rows_json_close(json);
    else
        *ret_json = json;
    return status;
}

void
rows_json_close(struct rows_json *json)
{
    if (json == NULL)
        return;
    example_parser_close(json->parser);
    free(json);
}

static void
make_column(const struct column_spec *spec, const struct example_values *values, int64_t rows,
            struct column *column)
{
    int64_t lists = rows;

    *column = (struct column){ .count = rows,
                               .level_count = (uint32_t)spec->rank,
                               .values = values->values };
    for (int k = 0; k < spec->rank; k++)
        column->levels[k] = (struct level){ .uniform = spec->shape[k] };
    if (values->splits != NULL) {
        int64_t item = 1, *splits = values->splits;

        for (int k = 1; k < spec->rank; k++)
            item *= spec->shape[k];
        for (int64_t i = 0; i <= rows; i++)
            /* The parser counts values; a level counts items of the inner shape. */
            splits[i] /= item;
        column->levels[0].splits = splits;
        lists = splits[rows];
    }
    for (int k = values->splits != NULL; k < spec->rank; k++)
        lists *= spec->shape[k];
    column->value_count = lists;
}

tundish_status
rows_json_read(const struct rows_json *json, const struct byte_view *lines, int64_t count,
               struct scratch *scratch, const struct column **ret_columns, int64_t *ret_bad)
{
    uint32_t width = json->inputs->count;
    struct example_values *values = scratch_array(scratch, (size_t)width + 1, sizeof *values);
    struct column *columns = scratch_array(scratch, (size_t)width + 1, sizeof *columns);
    const struct example_input input = { .records = lines, .count = count };
    struct frame_errors errors = { 0 };
    struct frame frame = { .count = count, .scratch = scratch, .errors = &errors };

    for (uint32_t i = 0; i < width; i++) {
        const struct example_feature *feature = example_parser_feature(json->parser, i);

        values[i] = (struct example_values){ 0 };
        if (!feature->is_list)
            values[i].values = scratch_array(scratch, (size_t)(count * feature->value_count) + 1,
                                             literal_bytes(feature->dtype));
    }
    json_parse_printed(json->parser, &input, &frame, values);
    if (errors.status != TUNDISH_OK) {
        *ret_bad = errors.first_bad;
        return tnd_fail(errors.status, "%s", errors.text);
    }
    for (uint32_t i = 0; i < width; i++)
        make_column(&json->inputs->columns[i], &values[i], count, &columns[i]);
    *ret_columns = columns;
    return TUNDISH_OK;
}
