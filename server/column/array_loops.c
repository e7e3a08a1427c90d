/* array_loops.c - loops over whole columns. The operations and their order are TensorFlow's, so
 * that results are equal to the last bit: a division is not a product with the reciprocal. */
#include "column/array_loops.h"

void
array_normalize_loop(const float *restrict x, size_t count, float mean, float deviation,
                     float *restrict ret_y)
{
    for (size_t i = 0; i < count; i++)
        ret_y[i] = (x[i] - mean) / deviation;
}

void
array_denormalize_loop(const float *restrict x, size_t count, float mean, float deviation,
                       float *restrict ret_y)
{
    for (size_t i = 0; i < count; i++)
        ret_y[i] = mean + x[i] * deviation;
}

/* Division is kept: multiplication by the reciprocal would round differently from Keras. */
void
array_normalize_each_loop(const float *restrict x, size_t count, const float *restrict means,
                          const float *restrict deviations, float *restrict ret_y)
{
    for (size_t i = 0; i < count; i++)
        ret_y[i] = (x[i] - means[i]) / deviations[i];
}

void
array_denormalize_each_loop(const float *restrict x, size_t count, const float *restrict means,
                            const float *restrict deviations, float *restrict ret_y)
{
    for (size_t i = 0; i < count; i++)
        ret_y[i] = means[i] + x[i] * deviations[i];
}

static inline float
between(float value, float least, float most)
{
    value = value > most ? most : value;
    return value < least ? least : value;
}

void
array_brighten_loop(const float *restrict x, size_t count, float delta, float least, float most,
                    float *restrict ret_y)
{
    for (size_t i = 0; i < count; i++)
        ret_y[i] = between(x[i] + delta, least, most);
}

void
array_contrast_loop(const float *restrict x, size_t count, float factor,
                    const float *restrict means, float least, float most, float *restrict ret_y)
{
    for (size_t i = 0; i < count; i++)
        ret_y[i] = between((x[i] - means[i]) * factor + means[i], least, most);
}

void
array_add_loop(const float *restrict x, size_t count, float *restrict sums)
{
    for (size_t i = 0; i < count; i++)
        sums[i] += x[i];
}

void
array_rescale_loop(const float *restrict x, size_t count, float least, float most, float low,
                   float high, float *restrict ret_y)
{
    for (size_t i = 0; i < count; i++)
        ret_y[i] = (x[i] - least) / (most - least) * (high - low) + low;
}
