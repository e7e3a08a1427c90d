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
    uint8_t reserved[3];
    uint32_t
        channels; /* not 0: each index of the last dimension gets `plane` values side by side */
    uint32_t plane;
    uint32_t unused;
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

/* The bits of a double that is NaN, made of value i by a multiplication and an addition. The host's
 * processor keeps the sign and the payload of a value that was NaN before, and makes the NaN with a
 * sign of any other; a device makes a NaN of its own of all. */
HALF_INLINE uint64_t
expand_nan_bits(const struct expansion *job, uint64_t i)
{
    uint64_t infinity = UINT64_C(0x7ff) << 52, quiet = UINT64_C(1) << 51, bits = 0;
    uint32_t single = 0;

    if (job->from_dtype == TUNDISH_FLOAT16)
        single = half_bits_of(half_to_float(((const uint16_t *)job->from)[i]));
    else if (job->from_dtype == TUNDISH_BFLOAT16)
        single = (uint32_t)((const uint16_t *)job->from)[i] << 16;
    else if (job->from_dtype == TUNDISH_FLOAT32)
        single = ((const uint32_t *)job->from)[i];
    else if (job->from_dtype == TUNDISH_FLOAT64)
        bits = ((const uint64_t *)job->from)[i];
    if ((single & 0x7fffffff) > 0x7f800000)
        bits = (uint64_t)(single >> 31) << 63 | infinity | (uint64_t)(single & 0x7fffff) << 29;
    if ((bits & ~(UINT64_C(1) << 63)) > infinity)
        return bits | quiet;
    return UINT64_C(1) << 63 | infinity | quiet;
}

HALF_INLINE double
expand_nan_double(const struct expansion *job, uint64_t i)
{
    uint64_t bits = expand_nan_bits(job, i);
    double value;

    __builtin_memcpy(&value, &bits, sizeof value);
    return value;
}

HALF_INLINE float
expand_nan_float(const struct expansion *job, uint64_t i)
{
    uint64_t bits = expand_nan_bits(job, i);

    return half_float_of((uint32_t)(bits >> 63) << 31 | 0x7f800000 |
                         ((uint32_t)(bits >> 29) & 0x7fffff));
}

/* Value `to` of the result is made of value `from` of the column, with factor `at` of the period.
 */
struct expand_step {
    uint64_t from, to;
    uint32_t at;
};

HALF_INLINE void
expand_widened(const struct expansion *job, const struct expand_step *step)
{
    if (job->to_dtype == TUNDISH_FLOAT64) {
        const double *numbers = (const double *)job->numbers;
        double value =
            expand_double(job, step->from) * numbers[step->at] + numbers[job->period + step->at];

        ((double *)job->to)[step->to] = value == value ? value : expand_nan_double(job, step->from);
    } else {
        const float *numbers = (const float *)job->numbers;
        float value =
            expand_float(job, step->from) * numbers[step->at] + numbers[job->period + step->at];

        value = value == value ? value : expand_nan_float(job, step->from);
        if (job->to_dtype == TUNDISH_FLOAT32)
            ((float *)job->to)[step->to] = value;
        else if (job->to_dtype == TUNDISH_FLOAT16)
            ((uint16_t *)job->to)[step->to] = half_from_float(value);
        else
            ((uint16_t *)job->to)[step->to] = bfloat_from_float(value);
    }
}

HALF_INLINE void
expand_value(const struct expansion *job, const struct expand_step *step)
{
    if (job->to_dtype != 0)
        expand_widened(job, step);
    else if (job->value_bytes == 8)
        ((uint64_t *)job->to)[step->to] = expand_integer(job, step->from);
    else
        ((uint32_t *)job->to)[step->to] = (uint32_t)expand_integer(job, step->from);
}

/* Where the first value of a block stands. Found once for each thread, because it takes divisions
 * of 64 bits; the values of a block are near enough to it for divisions of 32. */
struct expand_start {
    uint64_t first, image;
    uint32_t channel, pixel, phase;
};

HALF_INLINE struct expand_start
expand_start(const struct expansion *job, uint64_t first)
{
    struct expand_start start;

    start.first = first;
    start.phase = job->period != 0 ? (uint32_t)(first % job->period) : 0;
    start.image = 0;
    start.channel = start.pixel = 0;
    if (job->channels != 0) {
        uint64_t plane = first / job->plane;

        start.pixel = (uint32_t)(first % job->plane);
        start.channel = (uint32_t)(plane % job->channels);
        start.image = plane / job->channels;
    }
    return start;
}

/* The result's value `offset` after the first. With channels first, neighbouring threads write
 * neighbouring values, and read pixels that lie near one another. */
HALF_INLINE struct expand_step
expand_step(const struct expansion *job, const struct expand_start *start, uint32_t offset)
{
    struct expand_step step;

    step.to = step.from = start->first + offset;
    step.at = job->period > 1 ? (start->phase + offset) % job->period : 0;
    if (job->channels != 0) {
        uint32_t pixel = start->pixel + offset, channel = start->channel + pixel / job->plane;
        uint64_t image = start->image + channel / job->channels;

        pixel %= job->plane;
        channel %= job->channels;
        step.from = (image * job->plane + pixel) * job->channels + channel;
        step.at = job->period > 1 ? channel : 0;
    }
    return step;
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

/* A thread of a block makes every EXPAND_THREADS-th of its values, so that what threads read and
 * write at a time lies side by side. */
HALF_INLINE void
expand_group(const struct expansion *jobs, uint32_t job_count, uint64_t block, unsigned thread)
{
    const struct expansion *job = expand_job(jobs, job_count, block);
    struct expand_start start = expand_start(job, (block - job->first_block) * EXPAND_BLOCK);

    for (uint32_t i = 0; i < EXPAND_GROUP; i++) {
        struct expand_step step = expand_step(job, &start, i * EXPAND_THREADS + thread);

        if (step.to < job->count)
            expand_value(job, &step);
    }
}

#endif
