/* rows_in.c - rows from a stream of bytes. */
#include "commands/rows_in.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "column/convert.h"
#include "core/crc32c.h"
#include "core/memory.h"

enum { RECORD_MAX = 1 << 30 };

struct rows_in {
    FILE *file;
    bool is_tfrecord;
    uint64_t taken;
    char *line;
    size_t line_capacity;
    /* JSON objects of columns: parsed by a pipeline of their own. */
    struct transform *parsing;
    struct transformer *parser;
    const struct schema *inputs;
    struct column *columns;
    uint32_t column_count;
};

bool
rows_in_knows(const char *form)
{
    return strcmp(form, "csv") == 0 || strcmp(form, "jsonl") == 0 || strcmp(form, "tfrecord") == 0;
}

/* --- JSON objects to columns ------------------------------------------------------------------ */

/* A dtype that decode_json gives and that casts to what is wanted. */
static tundish_dtype
parsed_dtype(tundish_dtype dtype)
{
    if (dtype == TUNDISH_STRING)
        return TUNDISH_STRING;
    return tnd_dtype_is_integer(dtype) || dtype == TUNDISH_BOOL ? TUNDISH_INT64 : TUNDISH_FLOAT32;
}

/* Integers are narrowed here, where one that does not fit can be told. */
static bool
is_narrowed(tundish_dtype dtype)
{
    return dtype != TUNDISH_INT64 && (tnd_dtype_is_integer(dtype) || dtype == TUNDISH_BOOL);
}

static void
write_feature(FILE *out, const struct column_spec *column)
{
    bool is_open = column->rank > 0 && column->shape[0] < 0;

    fprintf(out, "            \"%s\": {type: %s, dtype: %s, shape: [", column->name,
            is_open ? "FixedLenSequence" : "FixedLen", tnd_dtype_name(parsed_dtype(column->dtype)));
    for (int k = is_open; k < column->rank; k++)
        fprintf(out, "%s%lld", k > is_open ? ", " : "", (long long)column->shape[k]);
    fprintf(out, "]%s}\n", is_open ? ", allow_missing: true" : "");
}

/* A pipeline that makes the columns out of lines. */
static char *
parsing_text(const struct schema *inputs)
{
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);

    fprintf(out, "streams:\n  rows:\n    dataset:\n      - text_line: rows\n"
                 "      - decode_json:\n          features:\n");
    for (uint32_t i = 0; i < inputs->count; i++)
        write_feature(out, &inputs->columns[i]);
    for (uint32_t i = 0; i < inputs->count; i++)
        if (parsed_dtype(inputs->columns[i].dtype) != inputs->columns[i].dtype &&
            !is_narrowed(inputs->columns[i].dtype))
            fprintf(out, "      - cast: {dtype: %s, columns: \"%s\"}\n",
                    tnd_dtype_name(inputs->columns[i].dtype), inputs->columns[i].name);
    fclose(out);
    return text;
}

static tundish_status
open_parsing(struct rows_in *in, const struct schema *inputs, struct spec_errors *errors)
{
    struct transform_options options = { .path = "rows that come in", .root = "/" };
    char *text = parsing_text(inputs);
    tundish_status status;

    options.text = text;
    status = transform_open(&options, errors, &in->parsing);
    free(text);
    if (status != TUNDISH_OK)
        return status;
    in->parser = transformer_open(in->parsing);
    in->inputs = inputs;
    in->column_count = inputs->count;
    in->columns = tnd_zalloc((size_t)inputs->count + 1, sizeof *in->columns);
    return TUNDISH_OK;
}

/* From rows together back to rows: the first dimension goes. */
static void
to_column(const struct output_column *from, struct scratch *scratch, struct column *column)
{
    int64_t *rows = scratch_array(scratch, 1, sizeof *rows);

    *rows = from->splits_count > 0 ? from->splits_lengths[0] - 1 : from->shape[0];
    *column = (struct column){ .count = *rows,
                               .level_count = (uint32_t)from->rank - 1,
                               .value_count = from->value_count,
                               .values = from->values };
    for (int k = 1; k < from->rank; k++)
        column->levels[k - 1] = k <= (int)from->splits_count
                                    ? (struct level){ .uniform = -1, .splits = from->splits[k - 1] }
                                    : (struct level){ .uniform = from->shape[k] };
}

/* --- Open ------------------------------------------------------------------------------------- */

tundish_status
rows_in_open(FILE *file, const char *form, const struct transform *transform,
             struct spec_errors *errors, struct rows_in **ret_in)
{
    struct rows_in *in = tnd_zalloc(1, sizeof *in);
    bool takes_records = transform_takes_records(transform);
    tundish_status status = TUNDISH_OK;

    in->file = file;
    in->is_tfrecord = strcmp(form, "tfrecord") == 0;
    if (!takes_records && strcmp(form, "jsonl") == 0)
        status = open_parsing(in, transform_inputs(transform), errors);
    else if (!takes_records)
        status = tnd_fail(TUNDISH_E_ARGUMENT,
                          "this stream takes rows of named columns: give them with --from jsonl");
    if (status != TUNDISH_OK) {
        rows_in_close(in);
        return status;
    }
    *ret_in = in;
    return TUNDISH_OK;
}

void
rows_in_close(struct rows_in *in)
{
    if (in == NULL)
        return;
    transformer_close(in->parser);
    transform_close(in->parsing);
    free(in->columns);
    free(in->line);
    free(in);
}

uint64_t
rows_in_taken(const struct rows_in *in)
{
    return in->taken;
}

/* --- Records ---------------------------------------------------------------------------------- */

static tundish_status
cut_off(const struct rows_in *in)
{
    return tnd_fail(TUNDISH_E_DATA, "record %llu: the input ends within it",
                    (unsigned long long)in->taken);
}

/* NO_VALUE: there is no other. */
static tundish_status
next_tfrecord(struct rows_in *in, struct scratch *scratch, struct byte_view *ret_record)
{
    uint8_t head[12], tail[4];
    uint64_t bytes;
    uint8_t *data;
    size_t got = fread(head, 1, sizeof head, in->file);

    if (got == 0 && feof(in->file))
        return TUNDISH_NO_VALUE;
    if (got < sizeof head)
        return cut_off(in);
    bytes = load_u64(head);
    if (tnd_crc32c_unmask(load_u32(head + 8)) != tnd_crc32c(0, head, 8) || bytes > RECORD_MAX)
        return tnd_fail(TUNDISH_E_DATA, "record %llu: its length is damaged; is this TFRecord?",
                        (unsigned long long)in->taken);
    data = scratch_alloc(scratch, bytes);
    if (fread(data, 1, bytes, in->file) < bytes || fread(tail, 1, 4, in->file) < 4)
        return cut_off(in);
    if (tnd_crc32c_unmask(load_u32(tail)) != tnd_crc32c(0, data, bytes))
        return tnd_fail(TUNDISH_E_DATA, "record %llu is damaged: its checksum is wrong",
                        (unsigned long long)in->taken);
    *ret_record = (struct byte_view){ data, bytes };
    return TUNDISH_OK;
}

static tundish_status
next_line(struct rows_in *in, struct scratch *scratch, struct byte_view *ret_record)
{
    ssize_t got = getline(&in->line, &in->line_capacity, in->file);
    uint8_t *data;

    if (got < 0)
        return ferror(in->file) ? tnd_fail_errno(errno, "reading rows") : TUNDISH_NO_VALUE;
    if (got > 0 && in->line[got - 1] == '\n')
        got--;
    if (got > 0 && in->line[got - 1] == '\r')
        got--;
    data = scratch_alloc(scratch, (size_t)got);
    memcpy(data, in->line, (size_t)got);
    *ret_record = (struct byte_view){ data, (uint64_t)got };
    return TUNDISH_OK;
}

static tundish_status
next_records(struct rows_in *in, struct scratch *scratch, int64_t most,
             struct byte_view **ret_records, int64_t *ret_count)
{
    struct byte_view *records = scratch_array(scratch, (size_t)most, sizeof *records);
    tundish_status status = TUNDISH_OK;

    for (*ret_count = 0; *ret_count < most; ++*ret_count, in->taken++) {
        status = in->is_tfrecord ? next_tfrecord(in, scratch, &records[*ret_count])
                                 : next_line(in, scratch, &records[*ret_count]);
        if (status != TUNDISH_OK)
            break;
    }
    *ret_records = records;
    return status == TUNDISH_NO_VALUE ? TUNDISH_OK : status;
}

tundish_status
rows_in_blame(tundish_status status, struct transformer *transformer,
              const struct byte_view *records, int64_t count, uint64_t taken)
{
    char *text = tnd_strdup(tnd_error_text());

    for (int64_t i = 0; i < count; i++) {
        const struct output_column *columns;
        tundish_status alone = transformer_run_records(transformer, &records[i], 1, &columns);

        if (alone != TUNDISH_OK) {
            free(text);
            return tnd_fail_while(alone, "row %llu", (unsigned long long)taken + (uint64_t)i);
        }
    }
    status = tnd_fail(status, "rows from %llu on: %s", (unsigned long long)taken, text);
    free(text);
    return status;
}

/* The integers that were parsed, in the column's own dtype. */
static tundish_status
narrow(const struct rows_in *in, uint32_t i, const int64_t *integers, struct scratch *scratch)
{
    const struct column_spec *spec = &in->inputs->columns[i];
    struct column *column = &in->columns[i];
    size_t count = (size_t)column->value_count;
    void *values = scratch_array(scratch, count, tnd_dtype_bytes(spec->dtype));
    int64_t *back = scratch_array(scratch, count, sizeof *back);

    convert_values(spec->dtype, values, TUNDISH_INT64, integers, count);
    convert_values(TUNDISH_INT64, back, spec->dtype, values, count);
    for (size_t k = 0; k < count; k++)
        if (back[k] != integers[k])
            return tnd_fail(TUNDISH_E_DATA, "'%s': %lld is no %s", spec->name,
                            (long long)integers[k], tnd_dtype_name(spec->dtype));
    column->values = values;
    return TUNDISH_OK;
}

tundish_status
rows_in_next(struct rows_in *in, struct scratch *scratch, int64_t most,
             const struct byte_view **ret_records, const struct column **ret_rows,
             int64_t *ret_count)
{
    const struct output_column *parsed;
    struct byte_view *records;
    tundish_status status = next_records(in, scratch, most, &records, ret_count);

    *ret_records = records;
    *ret_rows = NULL;
    if (status != TUNDISH_OK || in->parser == NULL || *ret_count == 0)
        return status;
    transformer_begin(in->parser);
    status = transformer_run_records(in->parser, records, *ret_count, &parsed);
    if (status == TUNDISH_E_DATA)
        return rows_in_blame(status, in->parser, records, *ret_count,
                             in->taken - (uint64_t)*ret_count);
    for (uint32_t i = 0; status == TUNDISH_OK && i < in->column_count; i++) {
        to_column(&parsed[i], scratch, &in->columns[i]);
        if (is_narrowed(in->inputs->columns[i].dtype))
            status = narrow(in, i, in->columns[i].values, scratch);
    }
    *ret_rows = in->columns;
    return status;
}
