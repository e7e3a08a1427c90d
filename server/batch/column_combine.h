/* column_combine.h - slices, joins, batches and unbatches columns. New splits and values live in
 * scratch.
 */
#ifndef BATCH_COLUMN_COMBINE_H
#define BATCH_COLUMN_COMBINE_H

#include "column/column.h"
#include "column/scratch.h"

/* Bytes of one value in a column's array. */
size_t column_value_bytes(tundish_dtype dtype);

/* Elements index[0 .. count) of `from`, in that order. */
void column_gather(const struct column *from, tundish_dtype dtype, const int64_t *index,
                   int64_t count, struct scratch *scratch, struct column *ret_column);

/* The elements of all `parts`, one after the other. They have the same levels. */
void column_join(const struct column *parts, uint32_t part_count, tundish_dtype dtype,
                 struct scratch *scratch, struct column *ret_column);

/* Rows to batches: batch i takes the next splits[i + 1] - splits[i] elements. */
void column_batch(const struct column *rows, const int64_t *splits, int64_t batch_count,
                  struct scratch *scratch, struct column *ret_column);

/* Batches to rows: takes the first level off. Not of sparse vectors: their rows would be none. */
void column_unbatch(const struct column *batches, struct scratch *scratch,
                    struct column *ret_column);

/* Dimension 0 of the only batch in `batch`, which is not a scalar. */
int64_t column_rows(const struct column *batch);

/* Rows [begin, end) of the only batch in `batch`, as a batch. No rows still have the dimensions
 * that all rows of the batch have. */
void column_slice(const struct column *batch, tundish_dtype dtype, int64_t begin, int64_t end,
                  struct scratch *scratch, struct column *ret_column);

/* Turn levels whose lists are all equally long into uniform ones. */
void column_settle(struct column *column);

#endif
