/* column.h - a column of one row group, decoded: what rows are taken from. */
#ifndef SOURCE_PARQUET_COLUMN_H
#define SOURCE_PARQUET_COLUMN_H

#include "column/words.h"
#include "source/parquet/footer.h"

/* A text among those of its column. */
struct parquet_text {
    uint32_t offset, bytes;
};

/* The dictionary of a column of texts, which may outlive the column. */
struct parquet_words {
    struct words words; /* the last one stands for null */
    _Atomic uint32_t holds;
    struct parquet_text *list;
    uint8_t *texts; /* PARQUET_SLACK bytes after the last one are readable */
    uint64_t text_bytes;
    uint64_t bytes;              /* of memory, of one stage's memo too */
    struct parquet_spill *spill; /* that list and texts lie in; NULL: they are its own */
};

/* Release takes a void *, for scratch_keep. */
void parquet_words_hold(struct parquet_words *words);
void parquet_words_release(void *words);

struct parquet_column {
    uint64_t row_count;
    uint64_t value_count; /* nulls included */
    void *values;         /* of the leaf's dtype; strings: struct parquet_text */
    uint32_t *numbers;    /* strings that are all in the dictionary: of each its word; values is
                             NULL then */
    struct parquet_words *words; /* ... and the dictionary; else NULL */
    uint8_t *texts;              /* PARQUET_SLACK bytes after the last one are readable */
    uint64_t text_bytes;         /* of those */
    uint64_t *splits;            /* lists: where each row's values begin, and one more; else NULL */
    uint8_t *nulls;              /* of each value, is it null? NULL: none is */
    uint64_t bytes;              /* of memory, of all that */
    bool is_spilled;             /* what is above but the words lies in a spill.h */
};

/* The column to decode. */
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

/* A text of a column of texts, in *ret_base. */
static inline struct parquet_text
parquet_text_of(const struct parquet_column *column, uint64_t value, const uint8_t **ret_base)
{
    if (column->words != NULL) {
        *ret_base = column->words->texts;
        return column->words->list[column->numbers[value]];
    }
    *ret_base = column->texts;
    return ((const struct parquet_text *)column->values)[value];
}

/* Bytes of a value as it is kept in a column. */
size_t parquet_value_bytes(tundish_dtype dtype);

#endif
