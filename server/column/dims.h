/* dims.h - the dimensions of dense elements, element by element, and columns made from them. */
#ifndef COLUMN_DIMS_H
#define COLUMN_DIMS_H

#include <stddef.h>

#include "column/column.h"
#include "column/scratch.h"

/* How large each of an element's level_count dimensions is: the lengths of its first lists. */
void column_dims(const struct column *column, int64_t element, int64_t ret_dims[RANK_MAX]);

/* Do all elements have the same dimensions? Stores them (those of no element: what is uniform,
 * else 0). */
bool column_same_dims(const struct column *column, int64_t ret_dims[RANK_MAX]);

/* Are the two columns' lists equally long, level by level? */
bool column_same_structure(const struct column *a, const struct column *b);

/* Give `column` the structure of `count` elements of dims[0..rank) each, without values. */
void column_set_dims(struct column *column, int64_t count, uint32_t rank,
                     const int64_t dims[RANK_MAX]);

/* The same where element i has dims[i * rank ...]; splits come from scratch. */
void column_set_dims_each(struct column *column, int64_t count, uint32_t rank, const int64_t *dims,
                          struct scratch *scratch);

/* Product of dims[0..rank). */
int64_t dims_product(const int64_t *dims, uint32_t rank);

/* NumPy's broadcasting of two shapes, aligned at the end. -1 is unknown: it goes with anything.
 * False if they do not fit. ret_dims may be a or b. */
bool dims_broadcast(const int64_t *a, uint32_t a_rank, const int64_t *b, uint32_t b_rank,
                    int64_t ret_dims[RANK_MAX], uint32_t *ret_rank);

/* Write `from`'s values, of `bytes` each, over the structure of `to`, of as many elements and at
 * least its rank, every element broadcast to its new dimensions (which must fit). `from` may also
 * have one element for all of `to`'s; and of rank 0 it may go with a ragged or sparse `to`. */
void column_broadcast(const struct column *from, const struct column *to, size_t bytes,
                      void *ret_values);

/* "[2,3]" for messages; "?" stands for a dimension that is not known. */
const char *dims_text(const int64_t *dims, uint32_t rank, char ret_text[128]);

#endif
