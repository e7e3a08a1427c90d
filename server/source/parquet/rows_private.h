/* rows_private.h - what the files of rows.h share. */
#ifndef SOURCE_PARQUET_ROWS_PRIVATE_H
#define SOURCE_PARQUET_ROWS_PRIVATE_H

#include "source/files/files_private.h"
#include "source/parquet/row_groups.h"
#include "source/parquet/rows.h"

/* The wanted rows of a row group. */
struct stretch {
    struct source_file *file;
    uint32_t group;
    uint32_t count;
    struct parquet_row *rows;
    const struct parquet_row *named; /* the same by their numbers in the row group; rows of one that
                                        has lost others lie elsewhere */
    bool is_straight;                /* they are neighbours, and go to neighbours */
    bool is_scattered;               /* they are far from each other */
};

/* A list on its way. */
struct item {
    const uint8_t *values;
    uint64_t count;
};

struct taking {
    const struct source_read *read;
    const struct parquet_columns *columns;
    void **values;            /* of each column, for every row; lists: struct item */
    struct words_note *notes; /* of each column whose texts are words; NULL: there are too many row
                                 groups */
    uint32_t stretch;         /* that is being taken */
    uint32_t stretch_count;
    struct scratch *scratch;
};

/* Bytes of a value as it goes into a batch. */
static inline size_t
parquet_output_bytes(tundish_dtype dtype)
{
    return dtype == TUNDISH_STRING ? sizeof(struct byte_view) : tnd_dtype_bytes(dtype);
}

enum { LIST_SLACK = 8 }; /* values after the last list that may be read and written, too */

/* Short lists are copied as LIST_SLACK values. Returns where the next one goes. */
static inline uint8_t *
parquet_list_copy(const uint8_t *from, uint64_t count, size_t width, uint8_t *to)
{
    if (count == 0)
        return to; /* from nowhere */
    if (count <= LIST_SLACK && width == 8)
        memcpy(to, from, LIST_SLACK * 8);
    else if (count <= LIST_SLACK && width == 4)
        memcpy(to, from, LIST_SLACK * 4);
    else
        memcpy(to, from, count * width);
    return to + count * width;
}

/* Take the rows of a stretch out of a row group that is held. */
void parquet_rows_take(const struct taking *taking, const struct stretch *stretch,
                       const struct row_group *group);

#endif
