/* column.h - a column of one row group, decoded: what rows are taken from. */
#ifndef SOURCE_PARQUET_COLUMN_H
#define SOURCE_PARQUET_COLUMN_H

#include "source/parquet/footer.h"

/* A text among those of its column. */
struct parquet_text {
    uint32_t offset, bytes;
};

struct parquet_column {
    uint64_t row_count;
    uint64_t value_count; /* nulls included */
    void *values;         /* of the leaf's dtype; strings: struct parquet_text */
    uint8_t *texts;       /* PARQUET_SLACK bytes after the last one are readable */
    uint64_t *splits;     /* lists: where each row's values begin, and one more; else NULL */
    uint8_t *nulls;       /* of each value, is it null? NULL: none is */
    uint64_t bytes;       /* of memory, of all that */
};

/* What to decode. */
struct parquet_decode {
    const struct parquet_leaf *leaf;
    const struct parquet_chunk *chunk;
    const void *fallback; /* stands for null: a value of the dtype; NULL: nulls stay */
    uint64_t row_count;   /* of the row group */
    uint64_t bytes_max;   /* of memory that may be taken */
};

/* Decode the bytes of a chunk, after which PARQUET_SLACK are readable. Fails without naming file,
 * row group and column: E_CORRUPT if the bytes are damaged, E_DATA if they cannot be read, E_MEMORY
 * for more than bytes_max. */
tundish_status parquet_column_decode(const struct parquet_decode *decode, struct byte_view bytes,
                                     struct parquet_column *ret_column);
void parquet_column_close(struct parquet_column *column); /* accepts zeros */

/* Bytes of a value as it is kept in a column. */
size_t parquet_value_bytes(tundish_dtype dtype);

#endif
