/* rows_npy.c - .npy files (version 1). The header holds the number of rows, so it has a fixed size
 * and is written again at the end. */
#include "commands/rows_out.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "core/status.h"
#include "learn/results/artifact.h"

enum { HEADER_BYTES = 256 };

struct npy_column {
    const struct column_spec *spec;
    struct artifact artifact;
    int rank;
    int64_t shape[RANK_MAX]; /* without the number of rows */
};

struct rows_npy {
    struct artifact_folder *folder;
    uint32_t count;
    struct npy_column *columns;
    int64_t rows;
};

/* NumPy's name of the dtype; NULL if NumPy has none. */
static const char *
descr(tundish_dtype dtype)
{
    switch (dtype) {
    case TUNDISH_BOOL:
        return "|b1";
    case TUNDISH_UINT8:
        return "|u1";
    case TUNDISH_INT8:
        return "|i1";
    case TUNDISH_UINT16:
        return "<u2";
    case TUNDISH_INT16:
        return "<i2";
    case TUNDISH_UINT32:
        return "<u4";
    case TUNDISH_INT32:
        return "<i4";
    case TUNDISH_UINT64:
        return "<u8";
    case TUNDISH_INT64:
        return "<i8";
    case TUNDISH_FLOAT16:
        return "<f2";
    case TUNDISH_FLOAT32:
        return "<f4";
    case TUNDISH_FLOAT64:
        return "<f8";
    default:
        return NULL;
    }
}

/* Magic, version, the length of the rest (2 bytes, little-endian), then a Python dict padded with
 * spaces and ended by a newline. The whole is a multiple of 64 bytes, as the format asks. */
static void
write_header(const struct npy_column *column, int64_t rows)
{
    char text[HEADER_BYTES];
    size_t used = 10;

    memset(text, ' ', sizeof text);
    memcpy(text, "\x93NUMPY\x01\x00", 8);
    text[8] = (char)((HEADER_BYTES - 10) & 0xFF);
    text[9] = (char)((HEADER_BYTES - 10) >> 8);
    used += (size_t)snprintf(text + used, sizeof text - used,
                             "{'descr': '%s', 'fortran_order': False, 'shape': (%lld,",
                             descr(column->spec->dtype), (long long)rows);
    for (int k = 1; k < column->rank; k++)
        used += (size_t)snprintf(text + used, sizeof text - used, " %lld,",
                                 (long long)column->shape[k]);
    used += (size_t)snprintf(text + used, sizeof text - used, "), }");
    text[used] = ' ';
    text[sizeof text - 1] = '\n';
    fwrite(text, 1, sizeof text, column->artifact.file);
}

tundish_status
rows_npy_open(const char *folder, const struct schema *columns, struct rows_npy **ret_npy)
{
    struct rows_npy *npy = tnd_zalloc(1, sizeof *npy);
    tundish_status status = artifact_folder_open(folder, &npy->folder);

    npy->columns = tnd_zalloc((size_t)columns->count + 1, sizeof *npy->columns);
    npy->count = columns->count;
    for (uint32_t i = 0; i < columns->count && status == TUNDISH_OK; i++) {
        struct npy_column *column = &npy->columns[i];

        column->spec = &columns->columns[i];
        if (column->spec->kind != TUNDISH_DENSE || descr(column->spec->dtype) == NULL)
            status = tnd_fail(
                TUNDISH_E_ARGUMENT, "column '%s' is %s: npy stores only dense numeric columns",
                column->spec->name,
                column->spec->kind != TUNDISH_DENSE ? "not dense"
                                                    : tnd_dtype_name(column->spec->dtype));
        else
            status = artifact_begin(npy->folder, column->spec->name, ".npy", &column->artifact);
    }
    if (status != TUNDISH_OK) {
        rows_npy_close(npy);
        return status;
    }
    *ret_npy = npy;
    return TUNDISH_OK;
}

static tundish_status
put(struct rows_npy *npy, struct npy_column *to, const struct output_column *from)
{
    bool is_same = to->rank == from->rank;

    if (from->rank == 0)
        return tnd_fail(TUNDISH_E_DATA, "column '%s' has no rows", from->spec->name);
    if (to->rank == 0) {
        to->rank = from->rank;
        memcpy(to->shape, from->shape, sizeof to->shape);
        /* The shape is known from the first batch; the number of rows is written at the end. */
        write_header(to, 0);
        is_same = true;
    }
    /* Dimension 0 is the rows of the batch, and the last batch may be smaller. */
    for (int k = 1; k < from->rank && is_same; k++)
        is_same = to->shape[k] == from->shape[k];
    if (!is_same)
        return tnd_fail(TUNDISH_E_DATA,
                        "the rows of column '%s' changed their shape after %lld of them, which npy "
                        "cannot store",
                        from->spec->name, (long long)npy->rows);
    fwrite(from->values, tnd_dtype_bytes(from->spec->dtype), (size_t)from->value_count,
           to->artifact.file);
    return ferror(to->artifact.file) ? tnd_fail_errno(errno, "%s", to->artifact.building)
                                     : TUNDISH_OK;
}

tundish_status
rows_npy_put(struct rows_npy *npy, const struct output_column *columns)
{
    tundish_status status = TUNDISH_OK;

    for (uint32_t i = 0; i < npy->count && status == TUNDISH_OK; i++)
        status = put(npy, &npy->columns[i], &columns[i]);
    if (status == TUNDISH_OK && npy->count > 0)
        npy->rows += columns[0].shape[0];
    return status;
}

tundish_status
rows_npy_finish(struct rows_npy *npy)
{
    tundish_status status = TUNDISH_OK;

    for (uint32_t i = 0; i < npy->count && status == TUNDISH_OK; i++) {
        /* The header has room for any number of rows, so the values after it stay. */
        rewind(npy->columns[i].artifact.file);
        write_header(&npy->columns[i], npy->rows);
        status = artifact_publish(&npy->columns[i].artifact);
    }
    return status;
}

void
rows_npy_close(struct rows_npy *npy)
{
    if (npy == NULL)
        return;
    for (uint32_t i = 0; i < npy->count; i++)
        artifact_cancel(&npy->columns[i].artifact);
    artifact_folder_close(npy->folder);
    free(npy->columns);
    free(npy);
}
