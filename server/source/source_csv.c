/* source_csv.c - the rows of CSV files: split by the scan, cut into fields and converted as
 * decode_csv does. */
#include <stdio.h>

#include "column/literal.h"
#include "content/records/csv_fields.h"
#include "source/file_source.h"
#include "source/files/fetch.h"
#include "source/files/whereabouts.h"

struct csv {
    struct reader reader; /* first, as file_source.h asks for */
    struct csv_table table;
};

static tundish_status
csv_open(void *state, const struct stage_config *config, struct schema *ret_schema)
{
    struct csv *csv = state;
    tundish_status status = file_source_open(&csv->reader, config, &scanner_csv);
    tundish_status table = csv_table_open(config, true, &csv->table);

    if (status != TUNDISH_OK || table != TUNDISH_OK)
        return status != TUNDISH_OK ? status : table;
    /* The scan needs these too: a newline within quotes does not end a row. They are part of the
     * format, so files with other rules have an index of their own. */
    csv->reader.format.numbers[CSV_DELIMITER] = csv->table.rules.delimiter;
    csv->reader.format.numbers[CSV_QUOTES] = csv->table.rules.quotes;
    csv->reader.format.numbers[CSV_HEADER] = spec_bool(config->stage, "header");
    for (uint32_t i = 0; i < csv->table.count; i++)
        schema_add(ret_schema, csv->table.columns[i].name, csv->table.columns[i].dtype);
    return TUNDISH_OK;
}

/* For csv_table_read's sentences; the context is the read. */
static void
say_where(const void *context, int64_t record, char *text, size_t bytes)
{
    const struct source_read *read = context;

    const struct frame_errors *errors = read->output->errors;
    bool is_kept = errors->status == TUNDISH_OK || record < errors->first_bad;
    char where[WHEREABOUTS_TEXT_BYTES];

    whereabouts_say(read->files, fetch_words(read, record), read->skips_bad || !is_kept, where);
    snprintf(text, bytes, " in %s, %s", fetch_file_name(read, record), where);
}

static tundish_status
csv_read(const void *state, const struct source_read *read)
{
    const struct csv *csv = state;
    struct frame *output = read->output;
    struct byte_view *rows = scratch_array(output->scratch, (size_t)read->count + 1, sizeof *rows);
    void **values = scratch_array(output->scratch, csv->table.count, sizeof *values);
    struct csv_records records = {
        .records = rows, .count = read->count, .where = say_where, .context = read
    };
    tundish_status status = fetch_rows(read, 0, rows);

    if (status != TUNDISH_OK)
        return status;
    for (uint32_t i = 0; i < csv->table.count; i++) {
        /* The fields are converted straight into the batch where that has room for the column. */
        values[i] = frame_values(output, i,
                                 (size_t)read->count * literal_bytes(csv->table.columns[i].dtype));
        column_set_scalars(&output->columns[i], read->count, values[i]);
    }
    csv_table_read(&csv->table, &records, output, values);
    return TUNDISH_OK;
}

static void
csv_close(void *state)
{
    struct csv *csv = state;

    csv_table_close(&csv->table);
}

const struct source_ops source_csv = {
    .name = "csv",
    .is_csv = true,
    .order = READER_ORDER("csv"),
    .state_bytes = sizeof(struct csv),
    .open = csv_open,
    .read = csv_read,
    .needs_cache = file_source_needs_cache,
    .reads_files = false, /* TensorFlow's FILE sharding does not see it */
    .refers_to_records = true,
    .words = WORDS_HAVE_FILE,
    .close = csv_close,
};
