/* arrow_rows.h - the rows of an ArrowArrayStream as bytes, one after the other: what a `program`
 * stage writes (see `tundish help program`). Columns are taken one at a time, without a step for
 * each value that depends on its type. */
#ifndef TND_ARROW_ARROW_ROWS_H
#define TND_ARROW_ARROW_ROWS_H

#include "arrow/arrow_values.h"

/* A column that is taken, in the order of the rows' columns. */
struct arrow_column {
    const struct arrow_field *field;
    uint32_t child;       /* of the stream's struct */
    const void *fallback; /* stands for null; NULL: nulls are told. The caller's */
    struct arrow_values values;
};

struct arrow_rows {
    struct ArrowArrayStream stream;
    struct ArrowSchema schema;
    struct ArrowArray batch; /* whose rows from `at` on come next; release NULL: none */
    int64_t at;
    struct arrow_field *fields;
    uint32_t field_count;
    struct arrow_column *columns;
    uint32_t column_count;
    uint32_t head_bytes; /* 4: before each row its null column is written; 0: nothing is */

    /* The rows that next gave, until the next call. */
    struct arrow_room bytes;
    uint64_t byte_count;
    int64_t row_count;
    struct arrow_room ends;  /* uint64_t: where each row ends */
    struct arrow_room nulls; /* uint32_t: of each row, 1 + the first column that is null and has no
                                fallback; 0: none */
    uint64_t given;          /* rows before these */
    struct arrow_room cursors;
};

/* Take a stream over, whose struct is then the rows', and read its schema. Close is called either
 * way. E_DATA with a sentence. */
tundish_status arrow_rows_open(struct arrow_rows *rows, struct ArrowArrayStream *stream);

/* The field of that name; NULL: there is none. */
const struct arrow_field *arrow_rows_find(const struct arrow_rows *rows, const char *name);

/* Take the field as the next column. It has no obstacle. */
tundish_status arrow_rows_take(struct arrow_rows *rows, const struct arrow_field *field,
                               const void *fallback);

/* The next rows: at least one, at most about a megabyte unless one is longer. Waits in the stream.
 * TUNDISH_END after the last. E_DATA, E_MEMORY with a sentence. */
tundish_status arrow_rows_next(struct arrow_rows *rows, int64_t rows_max);

void arrow_rows_close(struct arrow_rows *rows); /* accepts zeros */

#endif
