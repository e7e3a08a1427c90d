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

convert_loop *array_convert_loop(tundish_dtype from, tundish_dtype to);

/* (x - mean) / deviation, and back. */
void array_normalize_loop(const float *x, size_t count, float mean, float deviation, float *ret_y);
void array_denormalize_loop(const float *x, size_t count, float mean, float deviation,
                            float *ret_y);

/* The same with a mean and a deviation for each value. */
void array_normalize_each_loop(const float *x, size_t count, const float *means,
                               const float *deviations, float *ret_y);
void array_denormalize_each_loop(const float *x, size_t count, const float *means,
                                 const float *deviations, float *ret_y);

/* x + delta, and (x - mean) * factor + mean with a mean for each value: from least to most. */
void array_brighten_loop(const float *x, size_t count, float delta, float least, float most,
                         float *ret_y);
void array_contrast_loop(const float *x, size_t count, float factor, const float *means,
                         float least, float most, float *ret_y);

/* Add to sums. */
void array_add_loop(const float *x, size_t count, float *sums);

/* From least .. most, which differ, to low .. high. */
void array_rescale_loop(const float *x, size_t count, float least, float most, float low,
                        float high, float *ret_y);

#endif
