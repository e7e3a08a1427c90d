/* convert.h - arrays of one dtype to another, as tf.cast does on x86-64.
 *
 * Integers wrap. A float becomes an integer by truncation; one out of range (or NaN) becomes
 * the least int32 or int64, and for narrower types the low bits of that int32 (uint32: of the
 * int64). 16-bit floats pass through float32. A subnormal float32 or float64 counts as 0 where
 * arithmetic makes another value of it (flush.h).
 */
#ifndef COLUMN_CONVERT_H
#define COLUMN_CONVERT_H

#include <stdbool.h>
#include <stddef.h>

#include "column/column.h"
#include "column/scratch.h"
#include "core/dtype.h"

/* False if one of the two is a string and the other is not. */
bool convert_is_possible(tundish_dtype from, tundish_dtype to);

/* `count` values. Equal dtypes copy; otherwise the arrays must not overlap. */
void convert_values(tundish_dtype to, void *out, tundish_dtype from, const void *in, size_t count);

/* A column's values in another dtype, in scratch; those it has if the dtype is the same. */
const void *convert_column(tundish_dtype to, tundish_dtype from, const struct column *column,
                           struct scratch *scratch);

#endif
