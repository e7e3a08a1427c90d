/* tuples.h - a row group row by row: a row here and there is one or two lines of the cache then,
 * instead of one for each column.
 *
 * Integers and numbers of words take only the bytes that this row group's need. Lists stay columns.
 */
#ifndef SOURCE_PARQUET_TUPLES_H
#define SOURCE_PARQUET_TUPLES_H

#include "source/parquet/column.h"

struct parquet_field {
    uint32_t at;     /* in a tuple */
    uint32_t bytes;  /* 0: it is not there */
    uint64_t base;   /* is added to what is there, and wraps */
    const void *key; /* of the maker, of what was made */
};

struct parquet_tuples {
    uint64_t bytes; /* of memory */
    uint32_t stride;
    bool is_spilled; /* the tuples lie in a spill.h */
    uint8_t *tuples;
    uint32_t count;                /* of columns */
    struct parquet_field fields[]; /* of each column, and then what was made of each one's words */
};

/* A column whose values become fields. */
struct parquet_member {
    struct parquet_column *column;
    tundish_dtype dtype;
    const int32_t *made; /* of each word, as in a words_note: of many it goes beside their numbers;
                            NULL: nothing */
    const void *key;     /* of its maker */
};

/* Move the columns' values there: they have none then, and fewer bytes. All have `row_count` rows.
 */
struct parquet_tuples *parquet_tuples_open(const struct parquet_member *members, uint32_t count,
                                           uint64_t row_count);
void parquet_tuples_close(struct parquet_tuples *tuples); /* accepts NULL */

/* A row that is wanted: where it is in its row group, and where it goes. */
struct parquet_row {
    uint64_t row;
    int64_t to;
};

/* The integers that were made of a column's words. */
static inline const struct parquet_field *
parquet_tuples_made(const struct parquet_tuples *tuples, uint32_t column)
{
    return &tuples->fields[tuples->count + column];
}

/* They are wanted soon. */
void parquet_tuples_expect(const struct parquet_tuples *tuples, const struct parquet_row *rows,
                           uint32_t count);

/* Values of a field, `width` bytes each (1, 2, 4 or 8, no fewer than the field's). */
void parquet_tuples_take(const struct parquet_tuples *tuples, const struct parquet_field *field,
                         const struct parquet_row *rows, uint32_t count, size_t width, void *to);

/* One value. */
static inline uint64_t
parquet_tuple_value(const struct parquet_tuples *tuples, const struct parquet_field *field,
                    uint64_t row)
{
    uint64_t value = 0;

    memcpy(&value, tuples->tuples + row * tuples->stride + field->at, field->bytes);
    return value + field->base;
}

#endif
