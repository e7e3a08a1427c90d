/* reduce.h - sums, means and extrema over dimensions of dense elements. */
#ifndef CONTENT_EXPRESSION_REDUCE_H
#define CONTENT_EXPRESSION_REDUCE_H

#include "column/column.h"
#include "column/scratch.h"

enum reduce_op {
    REDUCE_SUM,  /* numbers */
    REDUCE_MEAN, /* integers: sums in 64 bits, cuts off */
    REDUCE_MINIMUM,
    REDUCE_MAXIMUM,
    REDUCE_ANY, /* bool */
    REDUCE_ALL,
    REDUCE_ARGMAX /* int64; one axis; the first of equals */
};

/* Is it defined for the dtype? The 16-bit floats are reduced in float32 by the caller. */
bool reduce_is_defined(enum reduce_op op, tundish_dtype dtype);

/* Reduce the dimensions in `axes` (bit k) of every element. ret_column gets what is left of the
 * structure, and values from scratch.
 * The order of summing is fixed: that of Eigen on 8 lanes of float32, 4 of float64. An element for
 * which the result does not exist (the mean of no integers, argmax of nothing) is marked in
 * ret_bad, which has a byte for each element and starts as zeros. */
void reduce_column(enum reduce_op op, tundish_dtype dtype, const struct column *column,
                   uint32_t axes, struct scratch *scratch, struct column *ret_column,
                   uint8_t *ret_bad);

#endif
