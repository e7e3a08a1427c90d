/* rows_out.c - transformed rows as JSON lines and as TFRecords of tf.Example. */
#include "commands/rows_out.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "column/convert.h"
#include "commands/print_batch.h"
#include "core/crc32c.h"
#include "core/memory.h"
#include "core/status.h"

struct rows_out {
    bool is_tfrecord;
    uint32_t count;
    struct rows_npy *npy;
    struct buffer {
        uint8_t *bytes;
        size_t used, capacity;
    } record, feature, list;
};

bool
rows_out_knows(const char *form)
{
    return strcmp(form, "jsonl") == 0 || strcmp(form, "npy") == 0 || strcmp(form, "tfrecord") == 0;
}

tundish_status
rows_out_open(const char *form, const char *folder, const struct schema *columns,
              struct rows_out **ret_out)
{
    struct rows_out *out = tnd_zalloc(1, sizeof *out);
    tundish_status status = TUNDISH_OK;

    out->is_tfrecord = strcmp(form, "tfrecord") == 0;
    out->count = columns->count;
    if (strcmp(form, "npy") == 0)
        status = rows_npy_open(folder, columns, &out->npy);
    if (status != TUNDISH_OK) {
        rows_out_close(out);
        return status;
    }
    *ret_out = out;
    return TUNDISH_OK;
}

void
rows_out_close(struct rows_out *out)
{
    if (out == NULL)
        return;
    rows_npy_close(out->npy);
    free(out->record.bytes);
    free(out->feature.bytes);
    free(out->list.bytes);
    free(out);
}

static int64_t
row_count(const struct output_column *column)
{
    if (column->rank == 0)
        return -1;
    return column->splits_count > 0 ? column->splits_lengths[0] - 1 : column->shape[0];
}

/* Where the lists or values below entry `index` of dimension `k` begin. */
static int64_t
begin_below(const struct output_column *column, int k, int64_t index)
{
    return k < (int)column->splits_count ? column->splits[k][index] : index * column->shape[k + 1];
}

/* The first value of a sparse column in `row` or a later row. The indices are sorted, so this is a
 * binary search. */
static int64_t
sparse_begin(const struct output_column *column, int64_t row)
{
    int64_t low = 0, high = column->value_count;

    while (low < high) {
        int64_t middle = low + (high - low) / 2;

        if (column->indices[middle * column->rank] < row)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void
value_range(const struct output_column *column, int64_t row, int64_t *ret_begin, int64_t *ret_end)
{
    int64_t begin = row, end = row + 1;
    /* In every other kind the values of a row are next to each other. */

    if (column->spec->kind == TUNDISH_SPARSE) {
        begin = sparse_begin(column, row);
        end = sparse_begin(column, row + 1);
    } else {
        for (int k = 0; k + 1 < column->rank; k++) {
            begin = begin_below(column, k, begin);
            end = begin_below(column, k, end);
        }
    }
    *ret_begin = begin;
    *ret_end = end;
}

static void
print_nested(struct json *json, const struct output_column *column, int k, int64_t index)
{
    int64_t end;

    if (k + 1 >= column->rank) {
        print_value(json, column->spec->dtype, column->values, index);
        return;
    }
    end = begin_below(column, k, index + 1);
    json_array(json);
    for (int64_t i = begin_below(column, k, index); i < end; i++)
        print_nested(json, column, k + 1, i);
    json_array_end(json);
}

/* The first index is the row, which the line stands for. */
static void
print_sparse(struct json *json, const struct output_column *column, int64_t row)
{
    int64_t begin, end;

    value_range(column, row, &begin, &end);
    json_object(json);
    json_key(json, "indices");
    json_array(json);
    for (int64_t i = begin; i < end; i++) {
        json_array(json);
        for (int k = 1; k < column->rank; k++)
            json_int(json, column->indices[i * column->rank + k]);
        json_array_end(json);
    }
    json_array_end(json);
    json_key(json, "values");
    json_array(json);
    for (int64_t i = begin; i < end; i++)
        print_value(json, column->spec->dtype, column->values, i);
    json_array_end(json);
    json_object_end(json);
}

static void
put_json(const struct rows_out *out, const struct output_column *columns, int64_t row)
{
    struct json json;

    json_start(&json, stdout);
    json_object(&json);
    for (uint32_t i = 0; i < out->count; i++) {
        json_key(&json, columns[i].spec->name);
        if (columns[i].spec->kind == TUNDISH_SPARSE)
            print_sparse(&json, &columns[i], row);
        else
            print_nested(&json, &columns[i], 0, row);
    }
    json_object_end(&json);
    fputc('\n', stdout);
}

/* Doubled, so that the time for a record is proportional to its size. Buffers are kept for the next
 * row. */
static void
append(struct buffer *buffer, const void *bytes, size_t count)
{
    if (buffer->capacity - buffer->used < count) {
        buffer->capacity = 2 * buffer->capacity + count + 256;
        buffer->bytes = tnd_realloc(buffer->bytes, buffer->capacity, 1);
    }
    if (count > 0)
        memcpy(buffer->bytes + buffer->used, bytes, count);
    buffer->used += count;
}

/* A protobuf varint: seven bits a byte, lowest first; the top bit says that more follow. */
static void
append_varint(struct buffer *buffer, uint64_t value)
{
    uint8_t bytes[10];
    size_t used = 0;

    for (; value >= 0x80; value >>= 7)
        bytes[used++] = (uint8_t)(value | 0x80);
    bytes[used++] = (uint8_t)value;
    append(buffer, bytes, used);
}

/* A protobuf field of wire type 2: tag, length, bytes. */
static void
append_bytes(struct buffer *buffer, uint8_t field, const void *bytes, size_t count)
{
    uint8_t tag = (uint8_t)(field << 3 | 2);

    append(buffer, &tag, 1);
    append_varint(buffer, count);
    append(buffer, bytes, count);
}

/* The values of a row as bytes_list (1), float_list (2) or int64_list (3). */
static uint8_t
make_list(const struct output_column *column, int64_t begin, int64_t end, struct buffer *list)
{
    tundish_dtype dtype = column->spec->dtype;
    size_t bytes = tnd_dtype_bytes(dtype);
    const uint8_t *values = column->values;

    list->used = 0;
    for (int64_t i = begin; i < end; i++) {
        if (dtype == TUNDISH_STRING) {
            const struct byte_view *text = &((const struct byte_view *)column->values)[i];

            append_bytes(list, 1, text->data, text->size);
        } else if (tnd_dtype_is_integer(dtype) || dtype == TUNDISH_BOOL) {
            int64_t value;

            /* tf.Example has only int64, float and bytes. */
            convert_values(TUNDISH_INT64, &value, dtype, values + (size_t)i * bytes, 1);
            append_varint(list, (uint64_t)value);
        } else {
            float value;

            convert_values(TUNDISH_FLOAT32, &value, dtype, values + (size_t)i * bytes, 1);
            append(list, &value, sizeof value);
        }
    }
    return dtype == TUNDISH_STRING                                ? 1
           : tnd_dtype_is_integer(dtype) || dtype == TUNDISH_BOOL ? 3
                                                                  : 2;
}

static void
put_feature(struct rows_out *out, const struct output_column *column, int64_t row)
{
    int64_t begin, end;
    struct buffer entry = { 0 };
    uint8_t kind;

    value_range(column, row, &begin, &end);
    kind = make_list(column, begin, end, &out->list);
    out->feature.used = 0;
    if (kind == 1) {
        append_bytes(&out->feature, 1, out->list.bytes, out->list.used);
    } else { /* float_list and int64_list are packed: one field with all values */
        struct buffer packed = { 0 };

        append_bytes(&packed, 1, out->list.bytes, out->list.used);
        append_bytes(&out->feature, kind, packed.bytes, packed.used);
        free(packed.bytes);
    }
    append_bytes(&entry, 1, column->spec->name, strlen(column->spec->name));
    append_bytes(&entry, 2, out->feature.bytes, out->feature.used);
    append_bytes(&out->record, 1, entry.bytes, entry.used);
    free(entry.bytes);
}

/* A TFRecord: length, masked CRC-32C of the length, data, masked CRC-32C of the data. */
static void
put_record(const void *bytes, uint64_t count)
{
    uint32_t crc = tnd_crc32c_mask(tnd_crc32c(0, &count, sizeof count));

    fwrite(&count, sizeof count, 1, stdout);
    fwrite(&crc, sizeof crc, 1, stdout);
    fwrite(bytes, 1, count, stdout);
    crc = tnd_crc32c_mask(tnd_crc32c(0, bytes, count));
    fwrite(&crc, sizeof crc, 1, stdout);
}

/* tf.Example: features (1) holds a map (1) from name (1) to feature (2). */
static void
put_example(struct rows_out *out, const struct output_column *columns, int64_t row)
{
    struct buffer example = { 0 };

    out->record.used = 0;
    for (uint32_t i = 0; i < out->count; i++)
        put_feature(out, &columns[i], row);
    append_bytes(&example, 1, out->record.bytes, out->record.used);
    put_record(example.bytes, example.used);
    free(example.bytes);
}

tundish_status
rows_out_put(struct rows_out *out, const struct output_column *columns)
{
    int64_t rows = out->count > 0 ? row_count(&columns[0]) : 0;

    /* A stage after batch may have combined rows, so that there is nothing to print for each. */
    for (uint32_t i = 0; i < out->count; i++)
        if (row_count(&columns[i]) != rows || rows < 0)
            return tnd_fail(TUNDISH_E_DATA,
                            "column '%s' does not have one entry for each row: a stage combines "
                            "the rows of a batch; use --until with an earlier stage, or --batch 1",
                            columns[i].spec->name);
    /* npy files grow by whole batches, the other forms row by row. */
    if (out->npy != NULL)
        return rows_npy_put(out->npy, columns);
    for (int64_t row = 0; row < rows; row++)
        if (out->is_tfrecord)
            put_example(out, columns, row);
        else
            put_json(out, columns, row);
    return ferror(stdout) ? tnd_fail_errno(errno, "cannot write rows") : TUNDISH_OK;
}

tundish_status
rows_out_finish(struct rows_out *out)
{
    if (out->npy != NULL)
        return rows_npy_finish(out->npy);
    return fflush(stdout) != 0 ? tnd_fail_errno(errno, "cannot write rows") : TUNDISH_OK;
}
