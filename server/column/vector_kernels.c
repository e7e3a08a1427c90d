/* vector_kernels.c - the loops, compiled once for each set: VECTOR_SET names the table. */
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "column/vector.h"
#include "column/vector_math.h"
#include "core/bytes.h"

extern const struct vector_kernel VECTOR_SET[VECTOR_OP_COUNT][TUNDISH_STRING + 1];

#define KERNEL(name, RESULT, T, expression)                                                        \
    static size_t name(void *restrict out, const void *a, const void *b, const void *c,            \
                       size_t count)                                                               \
    {                                                                                              \
        RESULT *restrict result = out;                                                             \
                                                                                                   \
        for (size_t i = 0; i < count; i++) {                                                       \
            T x = ((const T *)a)[i];                                                               \
            T y = ((const T *)b)[i];                                                               \
                                                                                                   \
            result[i] = (RESULT)(expression);                                                      \
        }                                                                                          \
        (void)c;                                                                                   \
        return 0;                                                                                  \
    }

#define KERNEL_ONE(name, RESULT, T, expression)                                                    \
    static size_t name(void *restrict out, const void *a, const void *b, const void *c,            \
                       size_t count)                                                               \
    {                                                                                              \
        RESULT *restrict result = out;                                                             \
                                                                                                   \
        for (size_t i = 0; i < count; i++) {                                                       \
            T x = ((const T *)a)[i];                                                               \
                                                                                                   \
            result[i] = (RESULT)(expression);                                                      \
        }                                                                                          \
        (void)b;                                                                                   \
        (void)c;                                                                                   \
        return 0;                                                                                  \
    }

/* As KERNEL, for operations that are not defined everywhere: `value` returns false there. Returns
 * how many were undefined. */
#define KERNEL_CHECKED(name, T, value)                                                             \
    static size_t name(void *restrict out, const void *a, const void *b, const void *c,            \
                       size_t count)                                                               \
    {                                                                                              \
        T *restrict result = out;                                                                  \
        size_t bad = 0;                                                                            \
                                                                                                   \
        for (size_t i = 0; i < count; i++)                                                         \
            bad += !value(((const T *)a)[i], ((const T *)b)[i], &result[i]);                       \
        (void)c;                                                                                   \
        return bad;                                                                                \
    }

/* Integers wrap, as TensorFlow's do. Signed overflow is undefined in C, so T is computed as the
 * unsigned type U, which C does not promote to int. Division rounds down and the remainder has the
 * divisor's sign, as in Python; the least integer by -1 would trap. */

#define INTEGER_FUNCTIONS(name, T, U)                                                              \
    static inline bool name##_floor_divide_one(T x, T y, T *ret)                                   \
    {                                                                                              \
        T quotient;                                                                                \
                                                                                                   \
        *ret = 0;                                                                                  \
        if (y == 0)                                                                                \
            return false;                                                                          \
        if ((T)-1 < 0 && y == (T)-1) {                                                             \
            *ret = (T)((U)0 - (U)x);                                                               \
            return true;                                                                           \
        }                                                                                          \
        quotient = (T)(x / y);                                                                     \
        *ret = (T)(quotient - (x % y != 0 && (x < 0) != (y < 0)));                                 \
        return true;                                                                               \
    }                                                                                              \
    static inline bool name##_modulo_one(T x, T y, T *ret)                                         \
    {                                                                                              \
        T rest;                                                                                    \
                                                                                                   \
        *ret = 0;                                                                                  \
        if (y == 0)                                                                                \
            return false;                                                                          \
        if ((T)-1 < 0 && y == (T)-1)                                                               \
            return true;                                                                           \
        rest = (T)(x % y);                                                                         \
        *ret = rest != 0 && (rest < 0) != (y < 0) ? (T)(rest + y) : rest;                          \
        return true;                                                                               \
    }                                                                                              \
    static inline bool name##_power_one(T x, T y, T *ret)                                          \
    {                                                                                              \
        U power = 1, base = (U)x;                                                                  \
                                                                                                   \
        *ret = 0;                                                                                  \
        if (y < 0)                                                                                 \
            return false;                                                                          \
        for (U rest = (U)y; rest != 0; rest >>= 1, base *= base)                                   \
            if (rest & 1)                                                                          \
                power *= base;                                                                     \
        *ret = (T)power;                                                                           \
        return true;                                                                               \
    }

#define INTEGER_KERNELS(name, T, U)                                                                \
    KERNEL(name##_add, T, T, (U)x + (U)y)                                                          \
    KERNEL(name##_subtract, T, T, (U)x - (U)y)                                                     \
    KERNEL(name##_multiply, T, T, (U)x *(U)y)                                                      \
    KERNEL(name##_minimum, T, T, y < x ? y : x)                                                    \
    KERNEL(name##_maximum, T, T, x < y ? y : x)                                                    \
    KERNEL(name##_less, uint8_t, T, x < y)                                                         \
    KERNEL(name##_less_equal, uint8_t, T, x <= y)                                                  \
    KERNEL(name##_equal, uint8_t, T, x == y)                                                       \
    KERNEL(name##_not_equal, uint8_t, T, x != y)                                                   \
    KERNEL_ONE(name##_negate, T, T, (U)0 - (U)x)                                                   \
    KERNEL_ONE(name##_absolute, T, T, x < 0 ? (U)0 - (U)x : (U)x)                                  \
    KERNEL_ONE(name##_sign, T, T, (x > 0) - (x < 0))                                               \
    INTEGER_FUNCTIONS(name, T, U)                                                                  \
    KERNEL_CHECKED(name##_floor_divide, T, name##_floor_divide_one)                                \
    KERNEL_CHECKED(name##_modulo, T, name##_modulo_one)                                            \
    KERNEL_CHECKED(name##_power, T, name##_power_one)

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wtype-limits" /* the same text serves unsigned types */
INTEGER_KERNELS(u8, uint8_t, uint32_t)
INTEGER_KERNELS(i8, int8_t, uint32_t)
INTEGER_KERNELS(u16, uint16_t, uint32_t)
INTEGER_KERNELS(i16, int16_t, uint32_t)
INTEGER_KERNELS(u32, uint32_t, uint32_t)
INTEGER_KERNELS(i32, int32_t, uint32_t)
INTEGER_KERNELS(u64, uint64_t, uint64_t)
INTEGER_KERNELS(i64, int64_t, uint64_t)
#pragma GCC diagnostic pop

static inline float
float_with_sign(float value, float sign)
{
    return float_of_bits((float_bits(value) & 0x7FFFFFFF) | (float_bits(sign) & 0x80000000));
}

static inline double
double_with_sign(double value, double sign)
{
    const uint64_t bit = UINT64_C(0x8000000000000000);

    return double_of_bits((double_bits(value) & ~bit) | (double_bits(sign) & bit));
}

#define FLOAT_KERNELS(name, T, kind, LARGE, fmod_, sqrt_)                                          \
    static inline T name##_modulo_one(T x, T y)                                                    \
    {                                                                                              \
        T rest = fmod_(x, y);                                                                      \
                                                                                                   \
        return rest != 0 && (y < 0) != (rest < 0) ? rest + y : rest;                               \
    }                                                                                              \
    /* Round half to even, by adding and subtracting a number whose last bit is worth 1. A larger  \
     * value is an integer already. */                                                             \
    static inline T name##_round_one(T given)                                                      \
    {                                                                                              \
        T x = flush_##kind(given);                                                                 \
        T magnitude = x < 0 ? -x : x;                                                              \
        T rounded = magnitude + LARGE - LARGE;                                                     \
                                                                                                   \
        rounded = kind##_with_sign(rounded, x);                                                    \
        return magnitude < LARGE ? rounded : x;                                                    \
    }                                                                                              \
    static inline T name##_floor_one(T x)                                                          \
    {                                                                                              \
        T rounded = name##_round_one(x);                                                           \
                                                                                                   \
        return rounded > flush_##kind(x) ? rounded - 1 : rounded;                                  \
    }                                                                                              \
    static inline T name##_ceil_one(T x)                                                           \
    {                                                                                              \
        T rounded = name##_round_one(x);                                                           \
                                                                                                   \
        return kind##_with_sign(rounded < flush_##kind(x) ? rounded + 1 : rounded, x);             \
    }                                                                                              \
    KERNEL(name##_add, T, T, x + y)                                                                \
    KERNEL(name##_subtract, T, T, x - y)                                                           \
    KERNEL(name##_multiply, T, T, x *y)                                                            \
    KERNEL(name##_divide, T, T, x / y)                                                             \
    KERNEL(name##_floor_divide, T, T, name##_floor_one(x / y))                                     \
    KERNEL(name##_modulo, T, T, name##_modulo_one(x, y))                                           \
    KERNEL(name##_power, T, T, pow_##kind(x, y))                                                   \
    KERNEL(name##_minimum, T, T, flush_##kind(x != x ? x : y != y || y < x ? y : x))               \
    KERNEL(name##_maximum, T, T, flush_##kind(x != x ? x : y != y || x < y ? y : x))               \
    KERNEL(name##_less, uint8_t, T, x < y)                                                         \
    KERNEL(name##_less_equal, uint8_t, T, x <= y)                                                  \
    KERNEL(name##_equal, uint8_t, T, x == y)                                                       \
    KERNEL(name##_not_equal, uint8_t, T, x != y)                                                   \
    KERNEL_ONE(name##_negate, T, T, -x)                                                            \
    KERNEL_ONE(name##_absolute, T, T, kind##_with_sign(x, 0))                                      \
    KERNEL_ONE(name##_sign, T, T, x > 0 ? 1 : x < 0 ? -1 : x == 0 ? 0 : x)                         \
    KERNEL_ONE(name##_square_root, T, T, sqrt_(x))                                                 \
    KERNEL_ONE(name##_exp, T, T, exp_##kind(x))                                                    \
    KERNEL_ONE(name##_log, T, T, log_##kind(x))                                                    \
    KERNEL_ONE(name##_log1p, T, T, log1p_##kind(x))                                                \
    KERNEL_ONE(name##_expm1, T, T, expm1_##kind(x))                                                \
    KERNEL_ONE(name##_floor, T, T, name##_floor_one(x))                                            \
    KERNEL_ONE(name##_ceil, T, T, name##_ceil_one(x))                                              \
    KERNEL_ONE(name##_round, T, T, name##_round_one(x))                                            \
    KERNEL_ONE(name##_sin, T, T, sin_quarter((double)x, 0))                                        \
    KERNEL_ONE(name##_cos, T, T, sin_quarter((double)x, 1))                                        \
    KERNEL_ONE(name##_tanh, T, T, tanh_##kind(x))                                                  \
    KERNEL_ONE(name##_sigmoid, T, T, sigmoid_##kind(x))                                            \
    KERNEL_ONE(name##_is_nan, uint8_t, T, x != x)                                                  \
    KERNEL_ONE(name##_is_finite, uint8_t, T, x - x == 0)

FLOAT_KERNELS(f32, float, float, 0x1p23F, fmodf, sqrtf)
FLOAT_KERNELS(f64, double, double, 0x1p52, fmod, sqrt)

KERNEL(bool_equal, uint8_t, uint8_t, x == y)
KERNEL(bool_not_equal, uint8_t, uint8_t, x != y)
KERNEL(bool_and, uint8_t, uint8_t, x &y)
KERNEL(bool_or, uint8_t, uint8_t, x | y)
KERNEL_ONE(bool_not, uint8_t, uint8_t, x ^ 1)

static inline bool
is_same_text(struct byte_view x, struct byte_view y)
{
    return x.size == y.size && (x.size == 0 || memcmp(x.data, y.data, x.size) == 0);
}

KERNEL(string_equal, uint8_t, struct byte_view, is_same_text(x, y))
KERNEL(string_not_equal, uint8_t, struct byte_view, !is_same_text(x, y))
KERNEL_ONE(string_length, int32_t, struct byte_view, x.size)

#define SELECT(bytes, T)                                                                           \
    static size_t select_##bytes(void *restrict out, const void *a, const void *b, const void *c,  \
                                 size_t count)                                                     \
    {                                                                                              \
        T *restrict result = out;                                                                  \
                                                                                                   \
        for (size_t i = 0; i < count; i++)                                                         \
            result[i] = ((const uint8_t *)a)[i] ? ((const T *)b)[i] : ((const T *)c)[i];           \
        return 0;                                                                                  \
    }

SELECT(1, uint8_t)
SELECT(2, uint16_t)
SELECT(4, uint32_t)
SELECT(8, uint64_t)
SELECT(16, struct byte_view)

#define FOR_NUMBERS(suffix)                                                                        \
    {                                                                                              \
        [TUNDISH_UINT8] = { u8_##suffix }, [TUNDISH_INT8] = { i8_##suffix },                       \
        [TUNDISH_UINT16] = { u16_##suffix }, [TUNDISH_INT16] = { i16_##suffix },                   \
        [TUNDISH_UINT32] = { u32_##suffix }, [TUNDISH_INT32] = { i32_##suffix },                   \
        [TUNDISH_UINT64] = { u64_##suffix }, [TUNDISH_INT64] = { i64_##suffix },                   \
        [TUNDISH_FLOAT32] = { f32_##suffix }, [TUNDISH_FLOAT64] = { f64_##suffix },                \
    }
#define FOR_FLOATS(suffix)                                                                         \
    {                                                                                              \
        [TUNDISH_FLOAT32] = { f32_##suffix }, [TUNDISH_FLOAT64] = { f64_##suffix },                \
    }
#define FOR_ALL(suffix)                                                                            \
    {                                                                                              \
        [TUNDISH_BOOL] = { bool_##suffix }, [TUNDISH_STRING] = { string_##suffix },                \
        [TUNDISH_UINT8] = { u8_##suffix }, [TUNDISH_INT8] = { i8_##suffix },                       \
        [TUNDISH_UINT16] = { u16_##suffix }, [TUNDISH_INT16] = { i16_##suffix },                   \
        [TUNDISH_UINT32] = { u32_##suffix }, [TUNDISH_INT32] = { i32_##suffix },                   \
        [TUNDISH_UINT64] = { u64_##suffix }, [TUNDISH_INT64] = { i64_##suffix },                   \
        [TUNDISH_FLOAT32] = { f32_##suffix }, [TUNDISH_FLOAT64] = { f64_##suffix },                \
    }

const struct vector_kernel VECTOR_SET[VECTOR_OP_COUNT][TUNDISH_STRING + 1] = {
    [VECTOR_ADD] = FOR_NUMBERS(add),
    [VECTOR_SUBTRACT] = FOR_NUMBERS(subtract),
    [VECTOR_MULTIPLY] = FOR_NUMBERS(multiply),
    [VECTOR_DIVIDE] = FOR_FLOATS(divide),
    [VECTOR_FLOOR_DIVIDE] = FOR_NUMBERS(floor_divide),
    [VECTOR_MODULO] = FOR_NUMBERS(modulo),
    [VECTOR_POWER] = FOR_NUMBERS(power),
    [VECTOR_MINIMUM] = FOR_NUMBERS(minimum),
    [VECTOR_MAXIMUM] = FOR_NUMBERS(maximum),
    [VECTOR_LESS] = FOR_NUMBERS(less),
    [VECTOR_LESS_EQUAL] = FOR_NUMBERS(less_equal),
    [VECTOR_EQUAL] = FOR_ALL(equal),
    [VECTOR_NOT_EQUAL] = FOR_ALL(not_equal),
    [VECTOR_AND] = { [TUNDISH_BOOL] = { bool_and } },
    [VECTOR_OR] = { [TUNDISH_BOOL] = { bool_or } },
    [VECTOR_NOT] = { [TUNDISH_BOOL] = { bool_not } },
    [VECTOR_NEGATE] = FOR_NUMBERS(negate),
    [VECTOR_ABSOLUTE] = FOR_NUMBERS(absolute),
    [VECTOR_SIGN] = FOR_NUMBERS(sign),
    [VECTOR_SQUARE_ROOT] = FOR_FLOATS(square_root),
    [VECTOR_EXP] = FOR_FLOATS(exp),
    [VECTOR_LOG] = FOR_FLOATS(log),
    [VECTOR_LOG1P] = FOR_FLOATS(log1p),
    [VECTOR_EXPM1] = FOR_FLOATS(expm1),
    [VECTOR_FLOOR] = FOR_FLOATS(floor),
    [VECTOR_CEIL] = FOR_FLOATS(ceil),
    [VECTOR_ROUND] = FOR_FLOATS(round),
    [VECTOR_SIN] = FOR_FLOATS(sin),
    [VECTOR_COS] = FOR_FLOATS(cos),
    [VECTOR_TANH] = FOR_FLOATS(tanh),
    [VECTOR_SIGMOID] = FOR_FLOATS(sigmoid),
    [VECTOR_IS_NAN] = FOR_FLOATS(is_nan),
    [VECTOR_IS_FINITE] = FOR_FLOATS(is_finite),
    [VECTOR_LENGTH] = { [TUNDISH_STRING] = { string_length } },
    [VECTOR_SELECT] = {
        [TUNDISH_BOOL] = { select_1 },    [TUNDISH_UINT8] = { select_1 },
        [TUNDISH_INT8] = { select_1 },    [TUNDISH_UINT16] = { select_2 },
        [TUNDISH_INT16] = { select_2 },   [TUNDISH_UINT32] = { select_4 },
        [TUNDISH_INT32] = { select_4 },   [TUNDISH_UINT64] = { select_8 },
        [TUNDISH_INT64] = { select_8 },   [TUNDISH_FLOAT16] = { select_2 },
        [TUNDISH_BFLOAT16] = { select_2 }, [TUNDISH_FLOAT32] = { select_4 },
        [TUNDISH_FLOAT64] = { select_8 }, [TUNDISH_STRING] = { select_16 },
    },
};
