/* convert_loops.c - one small loop for each pair of dtypes, compiled to vectors. They give what
 * tf.cast gives on x86-64, also where C leaves the result undefined. */
#include <stdbool.h>
#include <string.h>

#ifdef __x86_64__
#include <immintrin.h>
#endif

#include "column/array_loops.h"
#include "column/flush.h"
#include "column/vector_half.h"
#include "core/cpu.h"

/* C leaves a value out of range undefined; x86-64's cvttsd2si gives the least integer. */
static inline int32_t
truncate_32(double value)
{
    bool fits = value > -2147483649.0 && value < 2147483648.0;

    return fits ? (int32_t)value : INT32_MIN;
}

/* As truncate_32 for a float: none lies between -2^31 - 1 and -2^31. */
static inline int32_t
truncate_f32(float value)
{
    bool fits = value >= -0x1p31F && value < 0x1p31F;

    return fits ? (int32_t)value : INT32_MIN;
}

static inline int64_t
truncate_64(double value)
{
    bool fits = value >= -0x1p63 && value < 0x1p63;

    return fits ? (int64_t)value : INT64_MIN;
}

/* Compilers convert to uint64 with the signed instruction, twice: every value out of range becomes
 * 2^63. */
static inline uint64_t
truncate_u64(double value)
{
    if (value >= 0x1p63)
        return (uint64_t)truncate_64(value - 0x1p63) | UINT64_C(0x8000000000000000);
    return (uint64_t)truncate_64(value);
}

#define LOOP(from, to, FROM, TO, expression)                                                       \
    static void from##_to_##to(void *out, const void *in, size_t count)                            \
    {                                                                                              \
        const FROM *x = in;                                                                        \
        TO *y = out;                                                                               \
                                                                                                   \
        for (size_t i = 0; i < count; i++)                                                         \
            y[i] = (TO)(expression);                                                               \
    }

#define FROM_INTEGER(name, T)                                                                      \
    LOOP(name, b8, T, uint8_t, x[i] != 0)                                                          \
    LOOP(name, u8, T, uint8_t, x[i])                                                               \
    LOOP(name, u16, T, uint16_t, x[i])                                                             \
    LOOP(name, u32, T, uint32_t, x[i])                                                             \
    LOOP(name, u64, T, uint64_t, x[i])                                                             \
    LOOP(name, f64, T, double, x[i])                                                               \
    LOOP(name, f16, T, uint16_t, half_of_float((float)x[i]))                                       \
    LOOP(name, bf16, T, uint16_t, bfloat_of_float((float)x[i]))

FROM_INTEGER(b8, uint8_t)
FROM_INTEGER(u8, uint8_t)
FROM_INTEGER(i8, int8_t)
FROM_INTEGER(u16, uint16_t)
FROM_INTEGER(i16, int16_t)
FROM_INTEGER(u32, uint32_t)
FROM_INTEGER(i32, int32_t)
FROM_INTEGER(u64, uint64_t)
FROM_INTEGER(i64, int64_t)

LOOP(b8, f32, uint8_t, float, x[i])
LOOP(u8, f32, uint8_t, float, x[i])
LOOP(i8, f32, int8_t, float, x[i])
LOOP(u16, f32, uint16_t, float, x[i])
LOOP(i16, f32, int16_t, float, x[i])
LOOP(u32, f32, uint32_t, float, x[i])
LOOP(i32, f32, int32_t, float, x[i])
LOOP(u64, f32, uint64_t, float, x[i])

#ifdef __x86_64__
/* AVX2 has no instruction for int64. If a number is below 2^51 in magnitude, adding it to the bits
 * of the double 1.5 * 2^52 gives the bits of the sum. The double is exact, so only the float is
 * rounded. Stops at a larger number or when fewer than eight are left; returns how many were done.
 */
__attribute__((target("avx2"))) static size_t
i64_to_f32_avx2(float *out, const int64_t *in, size_t count)
{
    const double large = 0x1.8p52;
    const __m256d sum = _mm256_set1_pd(large);
    const __m256i half = _mm256_set1_epi64x(INT64_C(1) << 51);
    const __m256i outside = _mm256_set1_epi64x((int64_t)(UINT64_MAX << 52));
    size_t i = 0;

    for (; i + 8 <= count; i += 8) {
        const __m256i a = _mm256_loadu_si256((const __m256i *)(const void *)(in + i));
        const __m256i b = _mm256_loadu_si256((const __m256i *)(const void *)(in + i + 4));
        const __m256i above = _mm256_or_si256(_mm256_add_epi64(a, half), _mm256_add_epi64(b, half));
        const __m256i bits_a = _mm256_add_epi64(a, _mm256_castpd_si256(sum));
        const __m256i bits_b = _mm256_add_epi64(b, _mm256_castpd_si256(sum));

        if (!_mm256_testz_si256(above, outside))
            break;
        _mm_storeu_ps(out + i, _mm256_cvtpd_ps(_mm256_sub_pd(_mm256_castsi256_pd(bits_a), sum)));
        _mm_storeu_ps(out + i + 4,
                      _mm256_cvtpd_ps(_mm256_sub_pd(_mm256_castsi256_pd(bits_b), sum)));
    }
    return i;
}
#endif

static size_t
i64_to_f32_eights(float *out, const int64_t *in, size_t count)
{
#ifdef __x86_64__
    if (count >= 8 && tnd_cpu_has(TND_CPU_AVX2))
        return i64_to_f32_avx2(out, in, count);
#endif
    (void)out, (void)in, (void)count;
    return 0;
}

static void
i64_to_f32(void *out, const void *in, size_t count)
{
    const int64_t *x = in;
    float *y = out;

    /* A large number costs one group of eight; then the fast loop goes on. */
    for (size_t i = 0; i < count;) {
        size_t end;

        i += i64_to_f32_eights(y + i, x + i, count - i);
        end = count - i < 8 ? count : i + 8;
        for (; i < end; i++)
            y[i] = (float)x[i];
    }
}

#define FROM_FLOAT(name, T, truncate_32, value)                                                    \
    LOOP(name, b8, T, uint8_t, (value) != 0)                                                       \
    LOOP(name, u8, T, uint8_t, (uint32_t)truncate_32(value))                                       \
    LOOP(name, u16, T, uint16_t, (uint32_t)truncate_32(value))                                     \
    LOOP(name, i32, T, int32_t, truncate_32(value))                                                \
    LOOP(name, u32, T, uint32_t, (uint64_t)truncate_64((double)(value)))                           \
    LOOP(name, i64, T, int64_t, truncate_64((double)(value)))                                      \
    LOOP(name, u64, T, uint64_t, truncate_u64((double)(value)))                                    \
    LOOP(name, f16, T, uint16_t, half_of_float((float)(value)))                                    \
    LOOP(name, f64, T, double, value)

FROM_FLOAT(f16, uint16_t, truncate_f32, half_to_float(x[i]))
FROM_FLOAT(bf16, uint16_t, truncate_f32, flush_float(bfloat_to_float(x[i])))
FROM_FLOAT(f32, float, truncate_f32, flush_float(x[i]))
FROM_FLOAT(f64, double, truncate_32, flush_double(x[i]))

LOOP(f16, f32, uint16_t, float, half_to_float(x[i]))
LOOP(f64, f32, double, float, flush_float((float)flush_double(x[i])))

/* Conversion between bfloat16 and float32 is a shift, which keeps subnormal numbers; arithmetic
 * would flush them to 0. */
LOOP(bf16, f32, uint16_t, float, bfloat_to_float(x[i]))
LOOP(f16, bf16, uint16_t, uint16_t, bfloat_of_float(half_to_float(x[i])))
LOOP(f32, bf16, float, uint16_t, bfloat_of_float(x[i]))
LOOP(f64, bf16, double, uint16_t, bfloat_of_float(flush_float((float)x[i])))

/* Narrowing and a change of sign keep the same low bits, so signed targets share the loops of
 * unsigned ones. */
#define ROW_INTEGER(name)                                                                          \
    {                                                                                              \
        [TUNDISH_BOOL] = name##_to_b8, [TUNDISH_UINT8] = name##_to_u8,                             \
        [TUNDISH_INT8] = name##_to_u8, [TUNDISH_UINT16] = name##_to_u16,                           \
        [TUNDISH_INT16] = name##_to_u16, [TUNDISH_UINT32] = name##_to_u32,                         \
        [TUNDISH_INT32] = name##_to_u32, [TUNDISH_UINT64] = name##_to_u64,                         \
        [TUNDISH_INT64] = name##_to_u64, [TUNDISH_FLOAT16] = name##_to_f16,                        \
        [TUNDISH_BFLOAT16] = name##_to_bf16, [TUNDISH_FLOAT32] = name##_to_f32,                    \
        [TUNDISH_FLOAT64] = name##_to_f64,                                                         \
    }
#define ROW_FLOAT(name, to_bf16, to_f32)                                                           \
    {                                                                                              \
        [TUNDISH_BOOL] = name##_to_b8, [TUNDISH_UINT8] = name##_to_u8,                             \
        [TUNDISH_INT8] = name##_to_u8, [TUNDISH_UINT16] = name##_to_u16,                           \
        [TUNDISH_INT16] = name##_to_u16, [TUNDISH_UINT32] = name##_to_u32,                         \
        [TUNDISH_INT32] = name##_to_i32, [TUNDISH_UINT64] = name##_to_u64,                         \
        [TUNDISH_INT64] = name##_to_i64, [TUNDISH_FLOAT16] = name##_to_f16,                        \
        [TUNDISH_BFLOAT16] = (to_bf16), [TUNDISH_FLOAT32] = (to_f32),                              \
        [TUNDISH_FLOAT64] = name##_to_f64,                                                         \
    }

static convert_loop *const table[ARRAY_DTYPES][ARRAY_DTYPES] = {
    [TUNDISH_BOOL] = ROW_INTEGER(b8),
    [TUNDISH_UINT8] = ROW_INTEGER(u8),
    [TUNDISH_INT8] = ROW_INTEGER(i8),
    [TUNDISH_UINT16] = ROW_INTEGER(u16),
    [TUNDISH_INT16] = ROW_INTEGER(i16),
    [TUNDISH_UINT32] = ROW_INTEGER(u32),
    [TUNDISH_INT32] = ROW_INTEGER(i32),
    [TUNDISH_UINT64] = ROW_INTEGER(u64),
    [TUNDISH_INT64] = ROW_INTEGER(i64),
    [TUNDISH_FLOAT16] = ROW_FLOAT(f16, f16_to_bf16, f16_to_f32),
    [TUNDISH_BFLOAT16] = ROW_FLOAT(bf16, NULL, bf16_to_f32),
    [TUNDISH_FLOAT32] = ROW_FLOAT(f32, f32_to_bf16, NULL),
    [TUNDISH_FLOAT64] = ROW_FLOAT(f64, f64_to_bf16, f64_to_f32),
};

convert_loop *
array_convert_loop(tundish_dtype from, tundish_dtype to)
{
    return table[from][to];
}
