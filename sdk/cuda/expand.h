/* expand.h - packed columns to values, and values to floats: the element functions of the kernel.
 *
 * kernels.cu compiles this for the device, and the tests' stand-in for a driver compiles it for the
 * host. The bits are those of core/codec.h and core/widen.h: every operation is rounded by itself,
 * so a compiler must not fuse a multiplication with an addition.
 */
#ifndef TND_CUDA_EXPAND_H
#define TND_CUDA_EXPAND_H

#include <stdint.h>

#include "core/half_bits.h"
#include "tundish/tundish.h"

enum { EXPAND_THREADS = 256, EXPAND_GROUP = 8, EXPAND_BLOCK = EXPAND_THREADS * EXPAND_GROUP };

/* One column's values, as the kernel is told. Addresses are the device's. */
struct expansion {
    uint64_t from, to;
    uint64_t count;
    uint64_t first_block; /* of the kernel's blocks: EXPAND_BLOCK values each */
    uint64_t numbers;     /* widening: `period` factors, then as many addends: float or double */
    int64_t base;
    uint32_t period;
    uint8_t is_packed, bits, value_bytes;
    uint8_t from_dtype; /* enum tundish_dtype, as to_dtype */
    uint8_t to_dtype;   /* 0: as it is, unpacked */
    uint8_t reserved[7];
};

/* Bits first .. first + bits - 1. Bytes are read one by one: they begin anywhere. */
HALF_INLINE uint64_t
expand_bits(const uint8_t *from, uint64_t first, unsigned bits)
{
    const uint8_t *byte = from + first / 8;
    unsigned skipped = first % 8;
    uint64_t value = 0;

    for (unsigned i = 0; i * 8 < skipped + bits; i++)
        value |= (uint64_t)byte[i] << (8 * i);
    return value >> skipped & ((UINT64_C(1) << bits) - 1);
}

/* A packed integer, or one that is stored as it is, sign or zeros before it. */
HALF_INLINE uint64_t
expand_integer(const struct expansion *job, uint64_t i)
{
    uint64_t value;

    if (job->is_packed) {
        value =
            expand_bits((const uint8_t *)job->from, i * job->bits, job->bits) + (uint64_t)job->base;
        if (job->value_bytes == 8)
            return value;
        return job->from_dtype == TUNDISH_INT32 ? (uint64_t)(int64_t)(int32_t)(uint32_t)value
                                                : (uint32_t)value;
    }
    switch (job->from_dtype) {
    case TUNDISH_INT8:
        return (uint64_t)(int64_t)((const int8_t *)job->from)[i];
    case TUNDISH_UINT16:
        return ((const uint16_t *)job->from)[i];
    case TUNDISH_INT16:
        return (uint64_t)(int64_t)((const int16_t *)job->from)[i];
    case TUNDISH_UINT32:
        return ((const uint32_t *)job->from)[i];
    case TUNDISH_INT32:
        return (uint64_t)(int64_t)((const int32_t *)job->from)[i];
    case TUNDISH_UINT64:
    case TUNDISH_INT64:
        return ((const uint64_t *)job->from)[i];
    default: /* bool, uint8 */
        return ((const uint8_t *)job->from)[i];
    }
}

#define DEFINE_EXPAND_REAL(name, real)                                                             \
    HALF_INLINE real name(const struct expansion *job, uint64_t i)                                 \
    {                                                                                              \
        switch (job->from_dtype) {                                                                 \
        case TUNDISH_FLOAT16:                                                                      \
            return (real)half_to_float(((const uint16_t *)job->from)[i]);                          \
        case TUNDISH_BFLOAT16:                                                                     \
            return (real)bfloat_to_float(((const uint16_t *)job->from)[i]);                        \
        case TUNDISH_FLOAT32:                                                                      \
            return (real)((const float *)job->from)[i];                                            \
        case TUNDISH_FLOAT64:                                                                      \
            return (real)((const double *)job->from)[i];                                           \
        case TUNDISH_UINT64:                                                                       \
            return (real)expand_integer(job, i);                                                   \
        default:                                                                                   \
            return (real)(int64_t)expand_integer(job, i);                                          \
        }                                                                                          \
    }

DEFINE_EXPAND_REAL(expand_float, float)
DEFINE_EXPAND_REAL(expand_double, double)

HALF_INLINE void
expand_widened(const struct expansion *job, uint64_t i)
{
    uint64_t at = i % job->period;

    if (job->to_dtype == TUNDISH_FLOAT64) {
        const double *numbers = (const double *)job->numbers;

        ((double *)job->to)[i] = expand_double(job, i) * numbers[at] + numbers[job->period + at];
    } else {
        const float *numbers = (const float *)job->numbers;
        float value = expand_float(job, i) * numbers[at] + numbers[job->period + at];

        if (job->to_dtype == TUNDISH_FLOAT32)
            ((float *)job->to)[i] = value;
        else if (job->to_dtype == TUNDISH_FLOAT16)
            ((uint16_t *)job->to)[i] = half_from_float(value);
        else
            ((uint16_t *)job->to)[i] = bfloat_from_float(value);
    }
}

/* The values first .. end - 1 of a column. */
HALF_INLINE void
expand_values(const struct expansion *job, uint64_t first, uint64_t end)
{
    for (uint64_t i = first; i < end && i < job->count; i++)
        if (job->to_dtype != 0)
            expand_widened(job, i);
        else if (job->value_bytes == 8)
            ((uint64_t *)job->to)[i] = expand_integer(job, i);
        else
            ((uint32_t *)job->to)[i] = (uint32_t)expand_integer(job, i);
}

/* The column that a block works on: the last that begins at it or before. */
HALF_INLINE const struct expansion *
expand_job(const struct expansion *jobs, uint32_t job_count, uint64_t block)
{
    uint32_t low = 0, high = job_count;

    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;

        if (jobs[middle].first_block <= block)
            low = middle;
        else
            high = middle;
    }
    return &jobs[low];
}

HALF_INLINE void
expand_group(const struct expansion *jobs, uint32_t job_count, uint64_t block, unsigned thread)
{
    const struct expansion *job = expand_job(jobs, job_count, block);
    uint64_t first = (block - job->first_block) * EXPAND_BLOCK + thread * (uint64_t)EXPAND_GROUP;

    expand_values(job, first, first + EXPAND_GROUP);
}

#endif
