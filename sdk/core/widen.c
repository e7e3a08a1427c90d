/* widen.c - one pass over the values, a block at a time, which the compiler turns into vectors. */
#include "core/widen.h"

#include <stdlib.h>

#include "core/codec_ops.h"
#include "core/cpu.h"
#include "core/dtype.h"
#include "core/half.h"
#include "core/status.h"

/* BLOCK values are made by one turn of the inner loop; CHUNK, a multiple of it, at a time where
 * they are rounded to 16 bits afterwards. */
enum { BLOCK = 16, CHUNK = 256, SHORT_PERIOD = 112 };

bool
tnd_widen_allowed(tundish_dtype from, tundish_dtype to)
{
    return tnd_dtype_bytes(from) != 0 && (to == TUNDISH_FLOAT16 || to == TUNDISH_BFLOAT16 ||
                                          to == TUNDISH_FLOAT32 || to == TUNDISH_FLOAT64);
}

/* Factors and addends as they repeat, and BLOCK more, so that a block may begin at any of them. */
struct repeated {
    uint64_t period;
    uint64_t phase; /* of the next value */
    union {
        float *floats; /* period + BLOCK factors, then as many addends */
        double *doubles;
    };
};

#define AS_IT_IS(value) (value)

#define DEFINE_WIDEN(in, in_type, load, out, real, numbers)                                        \
    CODEC_INLINE void widen_##in##_##out(const void *values, uint64_t count,                       \
                                         struct repeated *repeated, real *made)                    \
    {                                                                                              \
        const in_type *from = values;                                                              \
        const real *scale = repeated->numbers;                                                     \
        const real *offset = scale + repeated->period + BLOCK;                                     \
        uint64_t phase = repeated->phase, step = BLOCK % repeated->period, i = 0;                  \
                                                                                                   \
        for (; i + BLOCK <= count; i += BLOCK) {                                                   \
            for (uint64_t k = 0; k < BLOCK; k++)                                                   \
                made[i + k] = (real)load(from[i + k]) * scale[phase + k] + offset[phase + k];      \
            phase += step;                                                                         \
            phase -= phase >= repeated->period ? repeated->period : 0;                             \
        }                                                                                          \
        for (uint64_t k = 0; i < count; i++, k++)                                                  \
            made[i] = (real)load(from[i]) * scale[phase + k] + offset[phase + k];                  \
        repeated->phase = phase;                                                                   \
    }

#define DEFINE_FOR_EACH(out, real, numbers)                                                        \
    DEFINE_WIDEN(u8, uint8_t, AS_IT_IS, out, real, numbers)                                        \
    DEFINE_WIDEN(i8, int8_t, AS_IT_IS, out, real, numbers)                                         \
    DEFINE_WIDEN(u16, uint16_t, AS_IT_IS, out, real, numbers)                                      \
    DEFINE_WIDEN(i16, int16_t, AS_IT_IS, out, real, numbers)                                       \
    DEFINE_WIDEN(u32, uint32_t, AS_IT_IS, out, real, numbers)                                      \
    DEFINE_WIDEN(i32, int32_t, AS_IT_IS, out, real, numbers)                                       \
    DEFINE_WIDEN(u64, uint64_t, AS_IT_IS, out, real, numbers)                                      \
    DEFINE_WIDEN(i64, int64_t, AS_IT_IS, out, real, numbers)                                       \
    DEFINE_WIDEN(f16, uint16_t, tnd_half_to_float, out, real, numbers)                             \
    DEFINE_WIDEN(bf16, uint16_t, tnd_bfloat_to_float, out, real, numbers)                          \
    DEFINE_WIDEN(f32, float, AS_IT_IS, out, real, numbers)                                         \
    DEFINE_WIDEN(f64, double, AS_IT_IS, out, real, numbers)                                        \
                                                                                                   \
    CODEC_INLINE void widen_to_##out(tundish_dtype dtype, const void *values, uint64_t count,      \
                                     struct repeated *repeated, real *made)                        \
    {                                                                                              \
        switch (dtype) {                                                                           \
        case TUNDISH_BOOL:                                                                         \
        case TUNDISH_UINT8:                                                                        \
            widen_u8_##out(values, count, repeated, made);                                         \
            break;                                                                                 \
        case TUNDISH_INT8:                                                                         \
            widen_i8_##out(values, count, repeated, made);                                         \
            break;                                                                                 \
        case TUNDISH_UINT16:                                                                       \
            widen_u16_##out(values, count, repeated, made);                                        \
            break;                                                                                 \
        case TUNDISH_INT16:                                                                        \
            widen_i16_##out(values, count, repeated, made);                                        \
            break;                                                                                 \
        case TUNDISH_UINT32:                                                                       \
            widen_u32_##out(values, count, repeated, made);                                        \
            break;                                                                                 \
        case TUNDISH_INT32:                                                                        \
            widen_i32_##out(values, count, repeated, made);                                        \
            break;                                                                                 \
        case TUNDISH_UINT64:                                                                       \
            widen_u64_##out(values, count, repeated, made);                                        \
            break;                                                                                 \
        case TUNDISH_INT64:                                                                        \
            widen_i64_##out(values, count, repeated, made);                                        \
            break;                                                                                 \
        case TUNDISH_FLOAT16:                                                                      \
            widen_f16_##out(values, count, repeated, made);                                        \
            break;                                                                                 \
        case TUNDISH_BFLOAT16:                                                                     \
            widen_bf16_##out(values, count, repeated, made);                                       \
            break;                                                                                 \
        case TUNDISH_FLOAT32:                                                                      \
            widen_f32_##out(values, count, repeated, made);                                        \
            break;                                                                                 \
        case TUNDISH_FLOAT64:                                                                      \
            widen_f64_##out(values, count, repeated, made);                                        \
            break;                                                                                 \
        case TUNDISH_STRING:                                                                       \
            break;                                                                                 \
        }                                                                                          \
    }

DEFINE_FOR_EACH(float, float, floats)
DEFINE_FOR_EACH(double, double, doubles)

static void
to_floats_portable(tundish_dtype dtype, const void *values, uint64_t count,
                   struct repeated *repeated, float *made)
{
    widen_to_float(dtype, values, count, repeated, made);
}

static void
to_doubles(tundish_dtype dtype, const void *values, uint64_t count, struct repeated *repeated,
           double *made)
{
    widen_to_double(dtype, values, count, repeated, made);
}

#ifdef __x86_64__
__attribute__((target("avx2"))) static void
to_floats_avx2(tundish_dtype dtype, const void *values, uint64_t count, struct repeated *repeated,
               float *made)
{
    widen_to_float(dtype, values, count, repeated, made);
}
#endif

static void
to_floats(tundish_dtype dtype, const void *values, uint64_t count, struct repeated *repeated,
          float *made)
{
#ifdef __x86_64__
    if (tnd_cpu_has(TND_CPU_AVX2)) {
        to_floats_avx2(dtype, values, count, repeated, made);
        return;
    }
#endif
    to_floats_portable(dtype, values, count, repeated, made);
}

/* Through float32, a chunk at a time that stays in the first-level cache. */
static void
to_halves(tundish_dtype dtype, const void *values, uint64_t count, struct repeated *repeated,
          bool is_bfloat, uint16_t *made)
{
    const uint8_t *from = values;
    float floats[CHUNK];

    for (uint64_t i = 0; i < count; i += CHUNK) {
        uint64_t some = count - i < CHUNK ? count - i : CHUNK;

        to_floats(dtype, from + i * tnd_dtype_bytes(dtype), some, repeated, floats);
        for (uint64_t k = 0; k < some; k++)
            made[i + k] =
                is_bfloat ? tnd_bfloat_from_float(floats[k]) : tnd_half_from_float(floats[k]);
    }
}

/* Element i of a list that one entry stands for as well. */
static double
number_at(const double *numbers, uint32_t count, uint64_t i)
{
    return numbers[i % count];
}

/* A factor for every value of a period, so that the inner loop needs no division or branch. */
static void
repeat(const struct tnd_widening *widening, struct repeated *repeated)
{
    uint64_t length = repeated->period + BLOCK;

    for (uint64_t i = 0; i < length; i++) {
        double scale = number_at(widening->scale, widening->scale_count, i % repeated->period);
        double offset = number_at(widening->offset, widening->offset_count, i % repeated->period);

        if (widening->dtype == TUNDISH_FLOAT64) {
            repeated->doubles[i] = scale;
            repeated->doubles[length + i] = offset;
        } else {
            repeated->floats[i] = (float)scale;
            repeated->floats[length + i] = (float)offset;
        }
    }
}

static void
to_any(tundish_dtype to, tundish_dtype dtype, const void *values, uint64_t count,
       struct repeated *repeated, void *made)
{
    if (to == TUNDISH_FLOAT32)
        to_floats(dtype, values, count, repeated, made);
    else if (to == TUNDISH_FLOAT64)
        to_doubles(dtype, values, count, repeated, made);
    else
        to_halves(dtype, values, count, repeated, to == TUNDISH_BFLOAT16, made);
}

/* Where the next value of a pixel, of an image, of the next image goes. */
struct scatter {
    uint64_t channels, plane;
    uint64_t to, channel, pixel;
};

#define DEFINE_SCATTER(bits)                                                                       \
    CODEC_INLINE void scatter_##bits(struct scatter *scatter, const void *values, uint64_t count,  \
                                     void *made)                                                   \
    {                                                                                              \
        const uint##bits##_t *from = values;                                                       \
        uint##bits##_t *to = made;                                                                 \
                                                                                                   \
        for (uint64_t i = 0; i < count; i++) {                                                     \
            to[scatter->to] = from[i];                                                             \
            scatter->to += scatter->plane;                                                         \
            if (++scatter->channel < scatter->channels)                                            \
                continue;                                                                          \
            scatter->channel = 0;                                                                  \
            scatter->to -= scatter->channels * scatter->plane - 1;                                 \
            if (++scatter->pixel < scatter->plane)                                                 \
                continue;                                                                          \
            scatter->pixel = 0;                                                                    \
            scatter->to += (scatter->channels - 1) * scatter->plane;                               \
        }                                                                                          \
    }

DEFINE_SCATTER(16)
DEFINE_SCATTER(32)
DEFINE_SCATTER(64)

/* Made as ever, a chunk at a time, so that the bits are those of any other layout. */
static void
to_planes(const struct tnd_widening *widening, tundish_dtype dtype, const uint8_t *values,
          uint64_t count, struct repeated *repeated, void *made)
{
    struct scatter scatter = { .channels = widening->channels, .plane = widening->plane };
    double chunk[CHUNK];

    for (uint64_t i = 0; i < count; i += CHUNK) {
        uint64_t some = count - i < CHUNK ? count - i : CHUNK;

        to_any(widening->dtype, dtype, values + i * tnd_dtype_bytes(dtype), some, repeated, chunk);
        if (tnd_dtype_bytes(widening->dtype) == 2)
            scatter_16(&scatter, chunk, some, made);
        else if (tnd_dtype_bytes(widening->dtype) == 4)
            scatter_32(&scatter, chunk, some, made);
        else
            scatter_64(&scatter, chunk, some, made);
    }
}

tundish_status
tnd_widen(const struct tnd_widening *widening, tundish_dtype dtype, const void *values,
          uint64_t count, void *ret_values)
{
    /* Most columns have one factor or a few: those need no allocation for each batch. */
    double room[2 * (SHORT_PERIOD + BLOCK)];
    struct repeated repeated = {
        .period = widening->scale_count > widening->offset_count ? widening->scale_count
                                                                 : widening->offset_count,
        .doubles = room,
    };

    if (repeated.period > SHORT_PERIOD)
        repeated.doubles = malloc(2 * (repeated.period + BLOCK) * sizeof *repeated.doubles);
    if (repeated.doubles == NULL)
        return tnd_fail(TUNDISH_E_MEMORY, "no memory for %llu factors",
                        (unsigned long long)repeated.period);
    repeat(widening, &repeated);
    if (widening->channels != 0)
        to_planes(widening, dtype, values, count, &repeated, ret_values);
    else
        to_any(widening->dtype, dtype, values, count, &repeated, ret_values);
    if (repeated.doubles != room)
        free(repeated.doubles);
    return TUNDISH_OK;
}
