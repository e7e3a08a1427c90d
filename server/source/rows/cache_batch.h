/* cache_batch.h - batches as elements of a cache in a file: each is one record, and its element a
 * run with that record at each row, so that stages can count rows and cut. A batch that is cut is
 * made whole first (plan.h, batch_wide).
 */
#ifndef SOURCE_ROWS_CACHE_BATCH_H
#define SOURCE_ROWS_CACHE_BATCH_H

#include "source/rows/cache_store.h"

/* The rows of a batch: dimension 0 of its columns, those that have one; 1 if none has. */
tundish_status cache_batch_count(const struct frame *frame, int64_t element, uint64_t *ret_rows);

/* A run of `rows` rows (at least 1), which the caller owns. */
uint64_t cache_batch_word(const uint64_t *record, uint64_t rows);

/* How many rows batch `index` of the cache has. */
uint64_t cache_batch_rows(const struct cache_rows *rows, uint64_t index);

/* May a record of that length hold `rows` rows? */
bool cache_batch_is_sound(const uint64_t *record, uint64_t rows);

#endif
