/* array_loops.h - loops over whole columns that compilers make vectors of, apart from their stages
 * because only these files are compiled for that. Arrays do not overlap. */
#ifndef COLUMN_ARRAY_LOOPS_H
#define COLUMN_ARRAY_LOOPS_H

#include <stddef.h>
#include <stdint.h>

#include "core/dtype.h"

enum { ARRAY_DTYPES = TUNDISH_STRING + 1 };

/* From one dtype to another; NULL: they are the same, or there is no such conversion. */
typedef void convert_loop(void *out, const void *in, size_t count);

convert_loop *convert_loop_of(tundish_dtype from, tundish_dtype to);

/* How many of the rising boundaries are not above x; NaN counts all of them. */
void bins_loop(const float *boundaries, int64_t boundary_count, const float *x, size_t count,
               int32_t *ret_bins);

/* Which of so many cells of a width of 1 / scale x is in: the first one is below `low`, the last
 * one has all that is above; NaN gets the one behind it. It never falls as x rises. */
void cells_loop(const float *x, size_t count, float low, float scale, int32_t cell_count,
                int32_t *ret_cells);

/* (x - mean) / deviation, and back. */
void normalize_loop(const float *x, size_t count, float mean, float deviation, float *ret_y);
void denormalize_loop(const float *x, size_t count, float mean, float deviation, float *ret_y);

/* From least .. most, which differ, to low .. high. */
void rescale_loop(const float *x, size_t count, float least, float most, float low, float high,
                  float *ret_y);

#endif
