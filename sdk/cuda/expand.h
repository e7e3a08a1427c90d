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

enum { EXPAND_THREADS = 256, EXPAND_GROUP = 8 };

/* Loops over a vector's values: an array in registers needs indices that the compiler knows. */
#if defined(__CUDACC__) || defined(__CUDA__)
#define EXPAND_UNROLL _Pragma("unroll")
#else
#define EXPAND_UNROLL
#endif

/* A thread reads or writes one at once. Buffers begin at multiples of PACK_ALIGN. */
struct expand_words {
    uint32_t word[4];
} __attribute__((aligned(16), may_alias));

struct expand_pair {
    uint32_t word[2];
} __attribute__((aligned(8), may_alias));

typedef uint64_t __attribute__((may_alias)) expand_long;

/* One column's values, as the kernel is told. Addresses are the device's. */
struct expansion {
    uint64_t from, to;
    uint64_t count;
    uint64_t first_block; /* of the kernel's blocks: expand_block_values each */
    uint64_t numbers;     /* widening: `period` factors, then as many addends: float or double */
    int64_t base;
    uint32_t period;
    uint8_t is_packed, bits, value_bytes;
    uint8_t from_dtype; /* enum tundish_dtype, as to_dtype */
    uint8_t to_dtype;   /* 0: as it is, unpacked */
    uint8_t is_finite;  /* all of `numbers` are: bytes do not become NaN */
    uint8_t reserved[2];
    uint32_t
        channels; /* not 0: each index of the last dimension gets `plane` values side by side */
    uint32_t plane;
    uint32_t unused;
};

/* Bytes that become floats, never NaN: what most pictures are. */
HALF_INLINE int
expand_takes_bytes(const struct expansion *job)
{
    return job->from_dtype == TUNDISH_UINT8 && !job->is_packed && job->to_dtype != 0 &&
           job->to_dtype != TUNDISH_FLOAT64 && job->is_finite;
}

HALF_INLINE int
expand_is_photograph(const struct expansion *job)
{
    return job->channels == 3 && job->plane % EXPAND_GROUP == 0 && expand_takes_bytes(job);
}

/* A block's values: EXPAND_GROUP a thread, or of a photograph as many pixels. */
HALF_INLINE uint32_t
expand_block_values(const struct expansion *job)
{
    return (expand_is_photograph(job) ? 3 : 1) * EXPAND_THREADS * EXPAND_GROUP;
}

/* Packed value i. Nothing is read behind the last value: bytes there were never written. */
HALF_INLINE uint64_t
expand_bits(const struct expansion *job, uint64_t i)
{
    const uint8_t *bytes = (const uint8_t *)job->from;
    uint64_t first = i * job->bits, byte_count = (job->count * job->bits + 7) / 8, value;
    unsigned skipped = first % 64;
    uint64_t at = first / 64 * 8, size = skipped + job->bits > 64 ? 16 : 8;

    if (at + size <= byte_count) {
        const expand_long *word = (const expand_long *)(bytes + at);

        value = word[0] >> skipped;
        if (size == 16)
            value |= word[1] << (64 - skipped);
    } else {
        skipped = first % 8;
        value = 0;
        for (unsigned k = 0; k * 8 < skipped + job->bits; k++)
            value |= (uint64_t)bytes[first / 8 + k] << (8 * k);
        value >>= skipped;
    }
    return value & ((UINT64_C(1) << job->bits) - 1);
}

HALF_INLINE uint64_t
expand_packed(const struct expansion *job, uint64_t i)
{
    uint64_t value = expand_bits(job, i) + (uint64_t)job->base;

    if (job->value_bytes == 8)
        return value;
    return job->from_dtype == TUNDISH_INT32 ? (uint64_t)(int64_t)(int32_t)(uint32_t)value
                                            : (uint32_t)value;
}

/* A packed integer, or one that is stored as it is, sign or zeros before it. */
HALF_INLINE uint64_t
expand_integer(const struct expansion *job, uint64_t i)
{
    if (job->is_packed)
        return expand_packed(job, i);
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

HALF_INLINE uint16_t
expand_narrow(const struct expansion *job, float value)
{
    return job->to_dtype == TUNDISH_FLOAT16 ? half_from_float(value) : bfloat_from_float(value);
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
        else
            ((uint16_t *)job->to)[step->to] = expand_narrow(job, value);
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

/* Compilers for devices make four stores of an assignment. */
HALF_INLINE void
expand_put(uint64_t to, struct expand_words words)
{
#if defined(__CUDACC__) || defined(__CUDA__)
    __asm__ volatile("st.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(words.word[0]),
                     "r"(words.word[1]), "r"(words.word[2]), "r"(words.word[3])
                     : "memory");
#else
    *(struct expand_words *)to = words;
#endif
}

/* Two floats, neither of them NaN, as the halves of a word. The device's own conversion rounds as
 * the host does, but makes another NaN. */
HALF_INLINE uint32_t
expand_halves(const struct expansion *job, float low, float high)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    uint32_t word;

    if (job->to_dtype == TUNDISH_FLOAT16)
        __asm__("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
    else
        __asm__("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
    return word;
#else
    return (uint32_t)expand_narrow(job, high) << 16 | expand_narrow(job, low);
#endif
}

/* Convert eight floats, none of them NaN, to the result's values from `to` on. */
HALF_INLINE void
expand_store(const struct expansion *job, uint64_t to, const float *value)
{
    struct expand_words words;

    if (job->to_dtype == TUNDISH_FLOAT32) {
        EXPAND_UNROLL
        for (unsigned k = 0; k < 8; k++) {
            words.word[k % 4] = half_bits_of(value[k]);
            if (k % 4 == 3)
                expand_put(job->to + 4 * (to + k - 3), words);
        }
        return;
    }
    EXPAND_UNROLL
    for (unsigned k = 0; k < 4; k++)
        words.word[k] = expand_halves(job, value[2 * k], value[2 * k + 1]);
    expand_put(job->to + 2 * to, words);
}

HALF_INLINE float
expand_byte(const struct expand_pair *pairs, unsigned byte, float factor, float addend)
{
    return (float)(pairs[byte / 8].word[byte / 4 % 2] >> 8 * (byte % 4) & 255) * factor + addend;
}

/* A thread takes eight pixels, and writes eight values to each plane. */
HALF_INLINE void
expand_photograph(const struct expansion *job, uint64_t group)
{
    uint64_t pixel = group * EXPAND_GROUP, image = pixel / job->plane;
    const struct expand_pair *from = (const struct expand_pair *)job->from + 3 * group;
    const float *numbers = (const float *)job->numbers;
    struct expand_pair pairs[3];
    float value[EXPAND_GROUP];

    if (3 * pixel >= job->count)
        return;
    EXPAND_UNROLL
    for (unsigned k = 0; k < 3; k++)
        pairs[k] = from[k];
    EXPAND_UNROLL
    for (unsigned channel = 0; channel < 3; channel++) {
        uint32_t at = job->period > 1 ? channel : 0;
        float factor = numbers[at], addend = numbers[job->period + at];

        EXPAND_UNROLL
        for (unsigned k = 0; k < EXPAND_GROUP; k++)
            value[k] = expand_byte(pairs, 3 * k + channel, factor, addend);
        expand_store(job, (3 * image + channel) * job->plane + pixel % job->plane, value);
    }
}

/* Eight bytes that lie side by side. */
HALF_INLINE void
expand_bytes(const struct expansion *job, uint64_t first, uint32_t at)
{
    const struct expand_pair pair = *(const struct expand_pair *)(job->from + first);
    const float *numbers = (const float *)job->numbers;
    float value[EXPAND_GROUP], factor = numbers[at], addend = numbers[job->period + at];

    EXPAND_UNROLL
    for (unsigned k = 0; k < EXPAND_GROUP; k++) {
        value[k] = expand_byte(&pair, k, factor, addend);
        if (job->period > 1) {
            at = at + 1 == job->period ? 0 : at + 1;
            factor = numbers[at];
            addend = numbers[job->period + at];
        }
    }
    expand_store(job, first, value);
}

/* Packed integers that lie side by side, as many as expand_words has room for. */
HALF_INLINE void
expand_integers(const struct expansion *job, uint64_t first)
{
    struct expand_words words;

    if (job->value_bytes == 8) {
        uint64_t one = expand_packed(job, first), other = expand_packed(job, first + 1);

        words.word[0] = (uint32_t)one;
        words.word[1] = (uint32_t)(one >> 32);
        words.word[2] = (uint32_t)other;
        words.word[3] = (uint32_t)(other >> 32);
    } else {
        EXPAND_UNROLL
        for (unsigned k = 0; k < 4; k++)
            words.word[k] = (uint32_t)expand_packed(job, first + k);
    }
    expand_put(job->to + job->value_bytes * first, words);
}

/* Values that a thread makes at once; 1: as expand_step says. */
HALF_INLINE uint32_t
expand_vector(const struct expansion *job)
{
    if (job->channels != 0)
        return 1;
    if (job->to_dtype == 0)
        return 16 / job->value_bytes;
    return expand_takes_bytes(job) ? EXPAND_GROUP : 1;
}

/* A thread of a block makes every EXPAND_THREADS-th of its vectors, so that what threads read and
 * write at a time lies side by side. */
HALF_INLINE void
expand_group(const struct expansion *jobs, uint32_t job_count, uint64_t block, unsigned thread)
{
    /* A copy, which stays what it is when values are written. */
    const struct expansion job = *expand_job(jobs, job_count, block);
    uint64_t number = block - job.first_block;
    uint32_t width = expand_vector(&job);
    struct expand_start start;

    if (expand_is_photograph(&job)) {
        expand_photograph(&job, number * EXPAND_THREADS + thread);
        return;
    }
    start = expand_start(&job, number * EXPAND_THREADS * EXPAND_GROUP);
    for (uint32_t i = 0; i < EXPAND_GROUP; i += width) {
        uint32_t offset = i * EXPAND_THREADS + thread * width;

        if (width > 1 && start.first + offset + width <= job.count) {
            if (job.to_dtype == 0)
                expand_integers(&job, start.first + offset);
            else
                expand_bytes(&job, start.first + offset, expand_step(&job, &start, offset).at);
            continue;
        }
        for (uint32_t k = 0; k < width; k++) {
            struct expand_step step = expand_step(&job, &start, offset + k);

            if (step.to < job.count)
                expand_value(&job, &step);
        }
    }
}

#endif
