/* source_fixed_length_record.c - records of one length. */
#include "source/file_source.h"
#include "source/files/fetch.h"
#include "source/variable.h"

static int64_t
number_or_zero(const struct stage_config *config, const char *parameter)
{
    const struct spec_value *value = spec_get(config->stage, parameter);

    return value == NULL || value->kind == SPEC_NULL ? 0 : value->integer;
}

static tundish_status
fixed_length_record_open(void *state, const struct stage_config *config, struct schema *ret_schema)
{
    struct reader *reader = state;
    tundish_status status = file_source_open(reader, config, &scanner_fixed_length_record);

    if (status != TUNDISH_OK)
        return status;
    reader->format.numbers[FIXED_RECORD] = number_or_zero(config, "record_bytes");
    reader->format.numbers[FIXED_HEADER] = number_or_zero(config, "header_bytes");
    reader->format.numbers[FIXED_FOOTER] = number_or_zero(config, "footer_bytes");
    /* Negative lengths would move the scan backwards. */
    if (reader->format.numbers[FIXED_RECORD] < 1 ||
        reader->format.numbers[FIXED_RECORD] > RECORD_BYTES_MAX)
        return stage_complain(config, "record_bytes must be 1 to %d", RECORD_BYTES_MAX);
    if (reader->format.numbers[FIXED_HEADER] < 0 || reader->format.numbers[FIXED_FOOTER] < 0)
        return stage_complain(config, "header_bytes and footer_bytes must not be negative");
    schema_add(ret_schema, source_column_name(config), TUNDISH_STRING);
    return TUNDISH_OK;
}

static tundish_status
fixed_length_record_read(const void *state, const struct source_read *read)
{
    struct byte_view *views =
        scratch_array(read->output->scratch, (size_t)read->count + 1, sizeof *views);
    tundish_status status = fetch_rows(read, 0, views);

    (void)state;
    if (status == TUNDISH_OK)
        column_set_scalars(&read->output->columns[0], read->count, views);
    return status;
}

static void
fixed_length_record_close(void *state)
{
    (void)state;
}

const struct source_ops source_fixed_length_record = {
    .name = "fixed_length_record",
    .order = READER_ORDER("fixed_length_record"),
    .state_bytes = sizeof(struct reader),
    .open = fixed_length_record_open,
    .read = fixed_length_record_read,
    .row_bytes = file_source_row_bytes,
    .needs_cache = file_source_needs_cache,
    .reads_files = true,
    .refers_to_records = true,
    .words = WORDS_HAVE_FILE,
    .close = fixed_length_record_close,
};
