/* rows_in.c - reads rows from a stream of bytes: lines or TFRecord. */
#include "commands/rows_in.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "commands/rows_json.h"
#include "core/crc32c.h"
#include "core/memory.h"

/* A limit against damaged lengths. */
enum { RECORD_MAX = 1 << 30 };

struct rows_in {
    FILE *file;
    bool is_tfrecord;
    uint64_t taken;
    char *line;
    size_t line_capacity;
    struct rows_json *objects; /* for named columns; NULL: records are passed as they are */
};

bool
rows_in_knows(const char *form)
{
    return strcmp(form, "csv") == 0 || strcmp(form, "jsonl") == 0 || strcmp(form, "tfrecord") == 0;
}

tundish_status
rows_in_open(FILE *file, const char *form, const struct transform *transform,
             struct rows_in **ret_in)
{
    struct rows_in *in = tnd_zalloc(1, sizeof *in);
    bool takes_records = transform_takes_records(transform);
    tundish_status status = TUNDISH_OK;

    in->file = file;
    in->is_tfrecord = strcmp(form, "tfrecord") == 0;
    if (!takes_records && strcmp(form, "jsonl") == 0)
        status = rows_json_open(transform_inputs(transform), &in->objects);
    else if (!takes_records)
        status = tnd_fail(TUNDISH_E_ARGUMENT,
                          "this stream takes rows of named columns: use --from jsonl");
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
    rows_json_close(in->objects);
    free(in->line);
    free(in);
}

uint64_t
rows_in_taken(const struct rows_in *in)
{
    return in->taken;
}

static tundish_status
cut_off(const struct rows_in *in)
{
    return tnd_fail(TUNDISH_E_DATA, "record %llu: the input ends within it",
                    (unsigned long long)in->taken);
}

/* Read the next TFRecord: length, its masked CRC-32C, data, their CRC. NO_VALUE at the end. */
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
        return tnd_fail(TUNDISH_E_DATA,
                        "record %llu: its length is damaged; is this a TFRecord file?",
                        (unsigned long long)in->taken);
    /* The length has passed its checksum and a limit, so it may size memory. */
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
        return ferror(in->file) ? tnd_fail_errno(errno, "cannot read rows") : TUNDISH_NO_VALUE;
    if (got > 0 && in->line[got - 1] == '\n')
        got--;
    /* Files from Windows end lines with both. */
    if (got > 0 && in->line[got - 1] == '\r')
        got--;
    /* getline reuses its buffer, so each line is copied. */
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

    /* The records before a bad one are not returned: the batch fails as a whole. */
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
rows_in_next(struct rows_in *in, struct scratch *scratch, int64_t most,
             const struct byte_view **ret_records, const struct column **ret_rows,
             int64_t *ret_count)
{
    struct byte_view *records;
    int64_t bad = 0;
    tundish_status status = next_records(in, scratch, most, &records, ret_count);

    *ret_records = records;
    *ret_rows = NULL;
    if (status != TUNDISH_OK || in->objects == NULL || *ret_count == 0)
        return status;
    status = rows_json_read(in->objects, records, *ret_count, scratch, ret_rows, &bad);
    if (status == TUNDISH_E_DATA)
        return tnd_fail_while(status, "row %llu",
                              (unsigned long long)(in->taken - (uint64_t)(*ret_count - bad)));
    return status;
}
