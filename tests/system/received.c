/* received.c - a trainer that keeps what it is given:
 *
 *     received FOLDER
 *
 * For each column, FOLDER/COLUMN.values has the values of all batches (a string: its length as a
 * u64, and its bytes), .counts how many of them each row has, as u64, and .dtype its name. The last
 * line is "received ROWS".
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tundish/tundish.h>

static void
fail(const char *what, const char *detail)
{
    printf("%s: %s\n", what, detail);
    exit(1);
}

static FILE *
open_file(const char *folder, const char *column, const char *suffix)
{
    char path[512];
    FILE *file;

    snprintf(path, sizeof path, "%s/%s.%s", folder, column, suffix);
    file = fopen(path, "ab");
    if (file == NULL)
        fail(path, "cannot be written");
    return file;
}

static void
keep_values(FILE *file, const tundish_tensor *tensor)
{
    const uint8_t *bytes = tensor->data;
    const int64_t *offsets = tensor->string_offsets;

    if (tensor->dtype != TUNDISH_STRING) {
        fwrite(bytes, 1, tensor->data_bytes, file);
        return;
    }
    for (uint64_t i = 0; i < tensor->element_count; i++) {
        uint64_t size = (uint64_t)(offsets[i + 1] - offsets[i]);

        fwrite(&size, sizeof size, 1, file);
        fwrite(bytes + offsets[i], 1, size, file);
    }
}

static uint64_t
row_count(const tundish_tensor *tensor)
{
    return tensor->ragged_rank > 0 ? tensor->row_split_counts[0] - 1 : (uint64_t)tensor->shape[0];
}

/* How many of a tensor's values are in its first `rows` rows. */
static uint64_t
values_before(const tundish_tensor *tensor, uint64_t rows)
{
    uint64_t at = rows;

    if (tensor->kind == TUNDISH_SPARSE) {
        for (at = 0; at < tensor->element_count; at++)
            if ((uint64_t)tensor->indices[at * tensor->rank] >= rows)
                break;
        return at;
    }
    for (uint32_t k = 1; k < tensor->rank; k++)
        at = k <= tensor->ragged_rank ? (uint64_t)tensor->row_splits[k - 1][at]
                                      : at * (uint64_t)tensor->shape[k];
    return at;
}

static void
keep_counts(FILE *file, const tundish_tensor *tensor)
{
    for (uint64_t row = 0; row < row_count(tensor); row++) {
        uint64_t count = values_before(tensor, row + 1) - values_before(tensor, row);

        fwrite(&count, sizeof count, 1, file);
    }
}

static void
keep(const char *folder, const tundish_tensor *tensor)
{
    FILE *values = open_file(folder, tensor->name, "values");
    FILE *counts = open_file(folder, tensor->name, "counts");
    FILE *dtype = open_file(folder, tensor->name, "dtype");

    keep_values(values, tensor);
    keep_counts(counts, tensor);
    if (ftell(dtype) == 0)
        fputs(tundish_dtype_name(tensor->dtype), dtype);
    if (fclose(values) != 0 || fclose(counts) != 0 || fclose(dtype) != 0)
        fail(tensor->name, "cannot be written");
}

int
main(int argc, char **argv)
{
    tundish_options options = TUNDISH_OPTIONS_INIT;
    tundish_reader *reader;
    const tundish_batch *batch;
    const tundish_tensor *tensor;
    unsigned long long rows = 0;
    tundish_status status;

    if (argc != 2)
        return 2;
    if (tundish_open(&options, &reader) != TUNDISH_OK)
        fail("tundish_open", tundish_last_error());
    while ((status = tundish_next(reader, TUNDISH_FOREVER, &batch)) == TUNDISH_OK) {
        for (uint32_t i = 0; i < batch->tensor_count; i++) {
            if (tundish_tensor_at(batch, i, &tensor) != TUNDISH_OK)
                fail("tundish_tensor_at", tundish_last_error());
            keep(argv[1], tensor);
            rows += i == 0 ? row_count(tensor) : 0;
        }
        tundish_release(reader, batch);
    }
    if (status != TUNDISH_END)
        fail("tundish_next", tundish_last_error());
    printf("received %llu\n", rows);
    tundish_close(reader);
    return 0;
}
