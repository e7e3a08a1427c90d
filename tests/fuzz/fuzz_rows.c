/* fuzz_rows.c - what a program writes: a row is found in the same place however much of it is
 * there, and a row that is one comes back as it was.
 *
 * The first bytes give the schema, the rest are its rows.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/must.h"
#include "source/rows/row_codec.h"

enum { COLUMNS = 3 };

static const tundish_dtype dtypes[] = { TUNDISH_BOOL,  TUNDISH_UINT8,   TUNDISH_INT32,
                                        TUNDISH_INT64, TUNDISH_FLOAT64, TUNDISH_STRING };

/* One byte a column: dtype, dimensions, which of them are known, ragged or dense. */
static void
make_schema(struct schema *schema, const uint8_t *data)
{
    for (int i = 0; i < COLUMNS; i++) {
        char name[2] = { (char)('a' + i), '\0' };
        struct column_spec *column =
            schema_add(schema, name, dtypes[data[i] % (sizeof dtypes / sizeof *dtypes)]);

        column->rank = data[i] / 6 % 4;
        for (int k = 0; k < column->rank; k++)
            column->shape[k] = (data[i] >> (5 + k) & 1) != 0 ? k : -1;
        if ((data[i] & 1) != 0 && column->rank > 1) {
            column->kind = TUNDISH_RAGGED;
            column->ragged_rank = column->rank - 1;
            for (int k = 0; k < column->rank; k++)
                column->shape[k] = -1;
        }
    }
}

static void
say_where(const void *context, int64_t row, char *text, size_t bytes)
{
    (void)context;
    snprintf(text, bytes, "row %lld", (long long)row);
}

/* A whole row is partial at every cut, and good on its own. */
static void
check_whole(const struct schema *schema, const uint8_t *data, size_t bytes, struct scratch *scratch)
{
    struct frame_errors errors = { 0 };
    struct column columns[COLUMNS];
    struct frame frame = { .count = 1,
                           .column_count = COLUMNS,
                           .columns = columns,
                           .schema = schema,
                           .scratch = scratch,
                           .errors = &errors };
    uint8_t *copy = scratch_alloc(scratch, bytes);
    struct byte_view row = { copy, bytes };
    struct row_bytes again = { 0 }, once_more = { 0 };
    size_t needed = 0;

    memcpy(copy, data, bytes);
    for (size_t cut = bytes > 64 ? bytes - 64 : 0; cut < bytes; cut++) {
        must(row_codec_measure(schema, data, cut, &needed) == ROW_PARTIAL);
        must(needed > cut && needed <= bytes);
    }
    must(row_codec_decode(&row, 1, &frame, say_where, NULL) == TUNDISH_OK);
    must(errors.bad_count == 0);
    row_codec_encode(&frame, 0, &again); /* sizes of lists in no list are not kept */
    must(row_codec_measure(schema, again.data, again.used, &needed) == ROW_WHOLE);
    must(needed == again.used);
    row = (struct byte_view){ again.data, again.used };
    must(row_codec_decode(&row, 1, &frame, say_where, NULL) == TUNDISH_OK);
    row_codec_encode(&frame, 0, &once_more);
    must(once_more.used == again.used);
    must(again.used == 0 || memcmp(once_more.data, again.data, again.used) == 0);
    free(again.data);
    free(once_more.data);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct schema schema = { 0 };
    const char *reason;

    if (bytes < COLUMNS)
        return 0;
    make_schema(&schema, data);
    data += COLUMNS;
    bytes -= COLUMNS;
    must(row_codec_obstacle(&schema, &reason) == NULL);
    if (row_codec_least_bytes(&schema) > 0)
        for (int rows = 0; rows < 16; rows++) {
            struct scratch *scratch = scratch_open();
            size_t taken = 0;
            enum row_fit fit = row_codec_measure(&schema, data, bytes, &taken);

            if (fit == ROW_PARTIAL)
                must(taken > bytes);
            if (fit == ROW_WHOLE)
                check_whole(&schema, data, taken, scratch);
            scratch_close(scratch);
            if (fit != ROW_WHOLE)
                break;
            data += taken;
            bytes -= taken;
        }
    schema_close(&schema);
    return 0;
}
