/* values.h - the values of a page, as what they become in a column. */
#ifndef SOURCE_PARQUET_VALUES_H
#define SOURCE_PARQUET_VALUES_H

#include "source/parquet/column.h"
#include "source/parquet/page.h"

/* Memory that grows to what was asked for and is used again. */
struct parquet_buffer {
    uint8_t *data;
    size_t used, room;
};

/* The texts of a column, and what is needed to decode it. */
struct parquet_values {
    const struct parquet_leaf *leaf;
    size_t value_bytes;
    struct parquet_buffer texts;  /* offsets of texts count from its beginning */
    struct parquet_buffer spare;  /* values before they are changed */
    struct parquet_buffer spares; /* ... and what those need */
    uint8_t *dictionary;          /* values, with room for 8 more; or NULL */
    uint32_t dictionary_count;
    bool as_numbers; /* of values in the dictionary read their numbers, as uint32_t */
};

/* Room for `bytes` more, and for PARQUET_SLACK after them. Takes nothing. */
uint8_t *parquet_buffer_room(struct parquet_buffer *buffer, size_t bytes);

/* Do the values of such a page go into `texts`, where the page then stays? */
bool values_stay(const struct parquet_leaf *leaf, int64_t encoding);

/* Decode exactly `count` values to `to`, which has room for 8 more. `page`: the page's values;
 * where they stay, they lie in `texts`, before `used`. NULL, or why not. */
const char *values_read(struct parquet_values *values, int64_t encoding, struct byte_view page,
                        size_t count, void *to);

/* NULL, or why pages of this encoding cannot be read for the leaf. */
const char *values_obstacle(const struct parquet_leaf *leaf, int64_t encoding);

void values_close(struct parquet_values *values);

#endif
