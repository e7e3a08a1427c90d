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

/* (x - mean) / deviation, and back. */
void normalize_loop(const float *x, size_t count, float mean, float deviation, float *ret_y);
void denormalize_loop(const float *x, size_t count, float mean, float deviation, float *ret_y);

/* From least .. most, which differ, to low .. high. */
void rescale_loop(const float *x, size_t count, float least, float most, float low, float high,
                  float *ret_y);

#endif
