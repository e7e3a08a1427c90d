/* array_loops.c - loops over whole columns. The operations and their order are TensorFlow's, so
 * that results are equal to the last bit: a division is not a product with the reciprocal. */
#include "column/array_loops.h"

void
normalize_loop(const float *restrict x, size_t count, float mean, float deviation,
               float *restrict ret_y)
{
    for (size_t i = 0; i < count; i++)
        ret_y[i] = (x[i] - mean) / deviation;
}

void
denormalize_loop(const float *restrict x, size_t count, float mean, float deviation,
                 float *restrict ret_y)
{
    for (size_t i = 0; i < count; i++)
        ret_y[i] = mean + x[i] * deviation;
}

void
rescale_loop(const float *restrict x, size_t count, float least, float most, float low, float high,
             float *restrict ret_y)
{
    for (size_t i = 0; i < count; i++)
        ret_y[i] = (x[i] - least) / (most - least) * (high - low) + low;
}
