/* content_decode_csv.c - tf.io.decode_csv. */
#include "column/literal.h"
#include "content/content.h"
#include "content/records/csv_fields.h"
#include "content/records/features.h"

struct decode_csv {
    uint32_t serialized; /* input column */
    struct csv_table table;
    uint32_t first_output; /* the columns are the last ones */
};

static tundish_status
decode_csv_open(void *memory, const struct stage_config *config, struct schema *ret_schema,
                bool *ret_batch_wide)
{
    struct decode_csv *state = memory;
    tundish_status status = features_serialized(config, &state->serialized);
    tundish_status table = csv_table_open(config, false, &state->table);

    (void)ret_batch_wide;
    if (status != TUNDISH_OK || table != TUNDISH_OK)
        return status != TUNDISH_OK ? status : table;
    for (uint32_t i = 0; i < config->input->count; i++)
        /* The text is consumed; every other column passes. */
        if (i != state->serialized)
            schema_pass(ret_schema, config->input, i);
    state->first_output = ret_schema->count;
    for (uint32_t c = 0; c < state->table.count; c++) {
        const struct csv_column *column = &state->table.columns[c];
        const struct column_spec *records = &config->input->columns[state->serialized];
        struct column_spec *spec;

        if (schema_find(ret_schema, column->name) >= 0)
            status = stage_complain(config, "'%s' is a column already", column->name);
        spec = schema_add(ret_schema, column->name, column->dtype);
        /* Each output has the shape of the records. */
        spec->rank = records->rank;
        for (int i = 0; i < records->rank; i++)
            spec->shape[i] = records->shape[i];
    }
    return status;
}

static tundish_status
decode_csv_apply(const void *memory, const struct frame *input, struct frame *output)
{
    const struct decode_csv *state = memory;
    const struct column *lines = &input->columns[state->serialized];
    void **values = scratch_array(output->scratch, state->table.count, sizeof *values);
    struct csv_records records = { .records = lines->values,
                                   .count = lines->value_count,
                                   .column = lines };

    for (uint32_t c = 0; c < state->table.count; c++) {
        uint32_t index = state->first_output + c;

        values[c] =
            frame_values(output, index,
                         (size_t)lines->value_count * literal_bytes(state->table.columns[c].dtype));
        column_set_like(&output->columns[index], lines, values[c]);
    }
    csv_table_read(&state->table, &records, output, values);
    return TUNDISH_OK;
}

static void
decode_csv_close(void *memory)
{
    struct decode_csv *state = memory;

    csv_table_close(&state->table);
}

const struct content_ops content_decode_csv = {
    .name = "decode_csv",
    .state_bytes = sizeof(struct decode_csv),
    .open = decode_csv_open,
    .apply = decode_csv_apply,
    .close = decode_csv_close,
};
