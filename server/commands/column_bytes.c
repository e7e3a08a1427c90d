/* column_bytes.c - see column_bytes.h. */
#include "commands/column_bytes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands/print_batch.h"
#include "core/memory.h"

struct column_bytes {
    char *bytes; /* its rank, its shape, then its parts */
    size_t size;
};

enum { HEAD = (1 + RANK_MAX) * sizeof(int64_t) };

static void
take_bytes(const struct output_column *column, struct column_bytes *ret_bytes)
{
    int64_t head[1 + RANK_MAX] = { column->rank };
    FILE *file;

    if (column->spec == NULL)
        return;
    file = open_memstream(&ret_bytes->bytes, &ret_bytes->size);
    tnd_must_have(file != NULL);
    memcpy(head + 1, column->shape, (size_t)column->rank * sizeof *head);
    fwrite(head, sizeof head, 1, file);
    print_column_values(file, column);
    tnd_must_have(fclose(file) == 0);
}

struct column_bytes *
column_bytes_open(const struct output_column *columns, size_t count)
{
    struct column_bytes *bytes = tnd_zalloc(count + 1, sizeof *bytes);

    for (size_t i = 0; i < count; i++)
        take_bytes(&columns[i], &bytes[i]);
    return bytes;
}

void
column_bytes_close(struct column_bytes *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(bytes[i].bytes);
    free(bytes);
}

/* The row that a byte is of, in a batch of numbers; -1: nobody knows. */
static int64_t
row_of(const struct output_column *column, size_t at)
{
    size_t row_bytes;

    if (column->spec->kind != TUNDISH_DENSE || column->spec->dtype == TUNDISH_STRING ||
        column->rank == 0 || column->shape[0] <= 0)
        return -1;
    row_bytes =
        tnd_dtype_bytes(column->spec->dtype) * (size_t)(column->value_count / column->shape[0]);
    return row_bytes > 0 ? (int64_t)((at - HEAD) / row_bytes) : -1;
}

static tundish_status
say_difference(const struct output_column *column, const struct column_bytes *one,
               const struct column_bytes *other)
{
    char row[48] = "";
    size_t at = 0;

    while (at < one->size && at < other->size && one->bytes[at] == other->bytes[at])
        at++;
    if (at >= HEAD && row_of(column, at) >= 0)
        snprintf(row, sizeof row, ", in row %lld", (long long)row_of(column, at));
    return tnd_fail(TUNDISH_E_CORRUPT,
                    "column '%s' differs between two interpreters that made it%s%s: what makes it "
                    "depends on more than its row and the numbers it draws",
                    column->spec->name, at < HEAD ? ", in its shape" : "", row);
}

tundish_status
column_bytes_compare(const struct column_bytes *bytes, const struct output_column *columns,
                     size_t count)
{
    tundish_status status = TUNDISH_OK;

    for (size_t i = 0; i < count && status == TUNDISH_OK; i++) {
        struct column_bytes other = { 0 };

        take_bytes(&columns[i], &other);
        if (bytes[i].size != other.size ||
            (other.size > 0 && memcmp(bytes[i].bytes, other.bytes, other.size) != 0))
            status = say_difference(&columns[i], &bytes[i], &other);
        free(other.bytes);
    }
    return status;
}
