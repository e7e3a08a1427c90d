/* taken.h - which rows of a row group were taken, and which still have a tuple. No lock, no thread.
 */
#ifndef SOURCE_PARQUET_TAKEN_H
#define SOURCE_PARQUET_TAKEN_H

#include "source/parquet/shrink.h"

struct parquet_taken {
    uint64_t row_count;
    uint32_t tuple_count, unused; /* tuples, and those that were not taken yet */
    uint64_t *used;               /* of each row, a bit: it was taken; NULL: nobody counts */
    uint64_t *kept;               /* of each row, a bit: it has a tuple; NULL: all have */
    uint32_t *kept_before;        /* tuples of rows before those of each word of `kept` */
};

/* All rows have a tuple, and none was taken. No more than UINT32_MAX rows. */
void parquet_taken_open(struct parquet_taken *taken, uint64_t row_count);
void parquet_taken_close(struct parquet_taken *taken); /* accepts one of zeros */

/* Where the row's tuple lies. One of zeros: all rows have theirs. */
static inline uint64_t
parquet_taken_place(const struct parquet_taken *taken, uint64_t row)
{
    if (taken->kept == NULL)
        return row;
    return taken->kept_before[row / 64] +
           (uint64_t)__builtin_popcountll(taken->kept[row / 64] & ((UINT64_C(1) << row % 64) - 1));
}

bool parquet_taken_has_tuple(const struct parquet_taken *taken, uint64_t row);

/* A row that was taken and is wanted again is one of the next epoch, so all others are to come,
 * too. Ignored by one of zeros. */
void parquet_taken_note(struct parquet_taken *taken, uint64_t row);

/* Shrink the tuples to those that were not taken yet. */
void parquet_taken_shrink(struct parquet_taken *taken, struct parquet_tuples *tuples,
                          const struct parquet_member *members, uint32_t member_count);

#endif
