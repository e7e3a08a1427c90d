/* reduce.c - reduce one run of dimensions at a time, the last run first. */
#include "content/expression/reduce.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "column/dims.h"
#include "column/flush.h"

/* A reduction of `outer` blocks, each of `count` rows of `inner` values. */
struct shape3 {
    int64_t outer, count, inner;
};

/* Sum floats in Eigen's order, which decides the rounding: halves down to 1024 packets, then two
 * packets at a time, then the lanes folded. */
#define FLOAT_SUM(name, T, LANES)                                                                  \
    static T name##_fold(const T *lanes)                                                           \
    {                                                                                              \
        T four[LANES];                                                                             \
                                                                                                   \
        memcpy(four, lanes, sizeof four);                                                          \
        for (int width = LANES / 2; width > 0; width /= 2)                                         \
            for (int i = 0; i < width; i++)                                                        \
                four[i] = four[i] + four[i + width];                                               \
        return four[0];                                                                            \
    }                                                                                              \
    static T name##_sum_row(const T *x, int64_t first, int64_t count)                              \
    {                                                                                              \
        T lanes[LANES] = { 0 }, others[LANES] = { 0 }, rest = 0;                                   \
        int64_t i = 0;                                                                             \
                                                                                                   \
        if (count > LANES * 1024) {                                                                \
            int64_t split = (first + (count + 1) / 2 + LANES - 1) / LANES * LANES;                 \
            int64_t left = split - first < count ? split - first : count;                          \
                                                                                                   \
            rest = name##_sum_row(x, first, left);                                                 \
            return left < count ? rest + name##_sum_row(x, split, count - left) : rest;            \
        }                                                                                          \
        x += first;                                                                                \
        for (; i + 2 * LANES <= count; i += 2 * LANES)                                             \
            for (int j = 0; j < LANES; j++) {                                                      \
                lanes[j] += x[i + j];                                                              \
                others[j] += x[i + LANES + j];                                                     \
            }                                                                                      \
        for (; i + LANES <= count; i += LANES)                                                     \
            for (int j = 0; j < LANES; j++)                                                        \
                lanes[j] += x[i + j];                                                              \
        for (int j = 0; j < LANES; j++)                                                            \
            lanes[j] += others[j];                                                                 \
        for (; i < count; i++)                                                                     \
            rest += x[i];                                                                          \
        return rest + name##_fold(lanes);                                                          \
    }

FLOAT_SUM(f32, float, 8)
FLOAT_SUM(f64, double, 4)

#define INTEGER_SUM(name, T, WIDE)                                                                 \
    static T name##_sum_row(const T *x, int64_t first, int64_t count)                              \
    {                                                                                              \
        WIDE sum = 0;                                                                              \
                                                                                                   \
        for (int64_t i = 0; i < count; i++)                                                        \
            sum += (WIDE)x[first + i];                                                             \
        return (T)sum;                                                                             \
    }

INTEGER_SUM(u8, uint8_t, uint64_t)
INTEGER_SUM(i8, int8_t, uint64_t)
INTEGER_SUM(u16, uint16_t, uint64_t)
INTEGER_SUM(i16, int16_t, uint64_t)
INTEGER_SUM(u32, uint32_t, uint64_t)
INTEGER_SUM(i32, int32_t, uint64_t)
INTEGER_SUM(u64, uint64_t, uint64_t)
INTEGER_SUM(i64, int64_t, uint64_t)

#define SUM(name, T, WIDE)                                                                         \
    static void name##_sum(const void *in, void *out, struct shape3 shape)                         \
    {                                                                                              \
        const T *x = in;                                                                           \
        T *y = out;                                                                                \
                                                                                                   \
        for (int64_t o = 0; o < shape.outer;                                                       \
             o++, x += shape.count * shape.inner, y += shape.inner) {                              \
            if (shape.inner == 1) {                                                                \
                *y = name##_sum_row(x, 0, shape.count);                                            \
                continue;                                                                          \
            }                                                                                      \
            memset(y, 0, (size_t)shape.inner * sizeof *y);                                         \
            for (int64_t i = 0; i < shape.count; i++)                                              \
                for (int64_t j = 0; j < shape.inner; j++)                                          \
                    y[j] = (T)((WIDE)y[j] + (WIDE)x[i * shape.inner + j]);                         \
        }                                                                                          \
    }

/* The last of equal values counts, as in TensorFlow: zeros differ in their sign. */
#define EXTREMUM(name, T, which, START, better)                                                    \
    static void name##_##which(const void *in, void *out, struct shape3 shape)                     \
    {                                                                                              \
        const T *x = in;                                                                           \
        T *y = out;                                                                                \
                                                                                                   \
        for (int64_t o = 0; o < shape.outer; o++, y += shape.inner) {                              \
            for (int64_t j = 0; j < shape.inner; j++)                                              \
                y[j] = (START);                                                                    \
            for (int64_t i = 0; i < shape.count; i++, x += shape.inner)                            \
                for (int64_t j = 0; j < shape.inner; j++) {                                        \
                    T a = y[j], b = x[j];                                                          \
                                                                                                   \
                    y[j] = a != a ? a : b != b || (better) ? b : a;                                \
                }                                                                                  \
        }                                                                                          \
    }

/* As in Eigen: a NaN is never the greatest, nor is a number that is not above the least finite
 * one. */
#define ARGMAX(name, T, LEAST)                                                                     \
    static void name##_argmax(const void *in, void *out, struct shape3 shape)                      \
    {                                                                                              \
        const T *x = in;                                                                           \
        int64_t *y = out;                                                                          \
                                                                                                   \
        for (int64_t o = 0; o < shape.outer;                                                       \
             o++, x += shape.count * shape.inner, y += shape.inner)                                \
            for (int64_t j = 0; j < shape.inner; j++) {                                            \
                T greatest = LEAST;                                                                \
                                                                                                   \
                y[j] = 0;                                                                          \
                for (int64_t i = 0; i < shape.count; i++)                                          \
                    if (x[i * shape.inner + j] > greatest) {                                       \
                        greatest = x[i * shape.inner + j];                                         \
                        y[j] = i;                                                                  \
                    }                                                                              \
            }                                                                                      \
    }

#define NUMBER(name, T, WIDE, LEAST, GREATEST)                                                     \
    SUM(name, T, WIDE)                                                                             \
    EXTREMUM(name, T, minimum, GREATEST, b <= a)                                                   \
    EXTREMUM(name, T, maximum, LEAST, a <= b)

NUMBER(u8, uint8_t, uint64_t, 0, UINT8_MAX)
NUMBER(i8, int8_t, uint64_t, INT8_MIN, INT8_MAX)
NUMBER(u16, uint16_t, uint64_t, 0, UINT16_MAX)
NUMBER(i16, int16_t, uint64_t, INT16_MIN, INT16_MAX)
NUMBER(u32, uint32_t, uint64_t, 0, UINT32_MAX)
NUMBER(i32, int32_t, uint64_t, INT32_MIN, INT32_MAX)
NUMBER(u64, uint64_t, uint64_t, 0, UINT64_MAX)
NUMBER(i64, int64_t, uint64_t, INT64_MIN, INT64_MAX)
NUMBER(f32, float, float, -INFINITY, INFINITY)
NUMBER(f64, double, double, -INFINITY, INFINITY)

EXTREMUM(b8, uint8_t, all, 1, b < a)
EXTREMUM(b8, uint8_t, any, 0, a < b)

ARGMAX(u8, uint8_t, 0)
ARGMAX(i8, int8_t, INT8_MIN)
ARGMAX(u16, uint16_t, 0)
ARGMAX(i16, int16_t, INT16_MIN)
ARGMAX(u32, uint32_t, 0)
ARGMAX(i32, int32_t, INT32_MIN)
ARGMAX(u64, uint64_t, 0)
ARGMAX(i64, int64_t, INT64_MIN)
ARGMAX(f32, float, -FLT_MAX)
ARGMAX(f64, double, -DBL_MAX)
ARGMAX(b8, uint8_t, 0)

#define FLOAT_MEAN(name, T)                                                                        \
    static void name##_mean(const void *in, void *out, struct shape3 shape)                        \
    {                                                                                              \
        T *y = out;                                                                                \
                                                                                                   \
        name##_sum(in, out, shape);                                                                \
        for (int64_t i = 0; i < shape.outer * shape.inner; i++)                                    \
            y[i] = y[i] / (T)shape.count;                                                          \
    }

FLOAT_MEAN(f32, float)
FLOAT_MEAN(f64, double)

/* TensorFlow sums narrow integers in 64 bits and truncates the quotient. */
#define INTEGER_MEAN(name, T, WIDE)                                                                \
    static void name##_mean(const void *in, void *out, struct shape3 shape)                        \
    {                                                                                              \
        const T *x = in;                                                                           \
        T *y = out;                                                                                \
                                                                                                   \
        for (int64_t o = 0; o < shape.outer; o++, x += shape.count * shape.inner)                  \
            for (int64_t j = 0; j < shape.inner; j++, y++) {                                       \
                uint64_t sum = 0;                                                                  \
                                                                                                   \
                for (int64_t i = 0; i < shape.count; i++)                                          \
                    sum += (uint64_t)x[i * shape.inner + j];                                       \
                *y = shape.count == 0 ? 0 : (T)((WIDE)sum / (WIDE)shape.count);                    \
            }                                                                                      \
    }

INTEGER_MEAN(u8, uint8_t, uint64_t)
INTEGER_MEAN(i8, int8_t, int64_t)
INTEGER_MEAN(u16, uint16_t, uint64_t)
INTEGER_MEAN(i16, int16_t, int64_t)
INTEGER_MEAN(u32, uint32_t, uint64_t)
INTEGER_MEAN(i32, int32_t, int64_t)
INTEGER_MEAN(u64, uint64_t, uint64_t)
INTEGER_MEAN(i64, int64_t, int64_t)

#define ROW(which)                                                                                 \
    {                                                                                              \
        [TUNDISH_UINT8] = u8_##which, [TUNDISH_INT8] = i8_##which, [TUNDISH_UINT16] = u16_##which, \
        [TUNDISH_INT16] = i16_##which, [TUNDISH_UINT32] = u32_##which,                             \
        [TUNDISH_INT32] = i32_##which, [TUNDISH_UINT64] = u64_##which,                             \
        [TUNDISH_INT64] = i64_##which, [TUNDISH_FLOAT32] = f32_##which,                            \
        [TUNDISH_FLOAT64] = f64_##which,                                                           \
    }
#define ROW_AND_BOOL(which)                                                                        \
    {                                                                                              \
        [TUNDISH_BOOL] = b8_##which, [TUNDISH_UINT8] = u8_##which, [TUNDISH_INT8] = i8_##which,    \
        [TUNDISH_UINT16] = u16_##which, [TUNDISH_INT16] = i16_##which,                             \
        [TUNDISH_UINT32] = u32_##which, [TUNDISH_INT32] = i32_##which,                             \
        [TUNDISH_UINT64] = u64_##which, [TUNDISH_INT64] = i64_##which,                             \
        [TUNDISH_FLOAT32] = f32_##which, [TUNDISH_FLOAT64] = f64_##which,                          \
    }

static void (*const table[][TUNDISH_STRING + 1])(const void *in, void *out, struct shape3 shape) = {
    [REDUCE_SUM] = ROW(sum),
    [REDUCE_MEAN] = ROW(mean),
    [REDUCE_MINIMUM] = ROW(minimum),
    [REDUCE_MAXIMUM] = ROW(maximum),
    [REDUCE_ANY] = { [TUNDISH_BOOL] = b8_any },
    [REDUCE_ALL] = { [TUNDISH_BOOL] = b8_all },
    [REDUCE_ARGMAX] = ROW_AND_BOOL(argmax),
};

bool
reduce_is_defined(enum reduce_op op, tundish_dtype dtype)
{
    return table[op][dtype] != NULL;
}

/* Find the last run of axes, which the next pass removes. */
static bool
last_run(uint32_t axes, const int64_t *dims, uint32_t rank, struct shape3 *ret_shape,
         uint32_t *ret_begin, uint32_t *ret_end)
{
    uint32_t end = rank, begin;

    while (end > 0 && (axes >> (end - 1) & 1) == 0)
        end--;
    if (end == 0)
        return false;
    for (begin = end; begin > 0 && (axes >> (begin - 1) & 1) != 0;)
        begin--;
    *ret_shape = (struct shape3){
        .outer = dims_product(dims, begin),
        .count = dims_product(dims + begin, end - begin),
        .inner = dims_product(dims + end, rank - end),
    };
    *ret_begin = begin;
    *ret_end = end;
    return true;
}

/* Reduce `elements` elements of equal dimensions, run by run. For means, each run divides by its
 * own length, which gives the same mean. */
static const void *
reduce_alike(enum reduce_op op, tundish_dtype dtype, const void *values, int64_t elements,
             int64_t *dims, uint32_t *rank, uint32_t axes, struct scratch *scratch)
{
    size_t bytes = op == REDUCE_ARGMAX ? sizeof(int64_t) : tnd_dtype_bytes(dtype);
    struct shape3 shape;
    uint32_t begin, end;

    /* From the last run to the first, so that the dimensions before a run keep their positions. */
    while (last_run(axes, dims, *rank, &shape, &begin, &end)) {
        void *out;

        shape.outer *= elements;
        out = scratch_array(scratch, (size_t)(shape.outer * shape.inner), bytes);
        table[op][dtype](values, out, shape);
        values = out;
        memmove(dims + begin, dims + end, (*rank - end) * sizeof *dims);
        *rank -= end - begin;
        axes &= (1U << begin) - 1;
    }
    return values;
}

/* argmax and the integer mean of no values are undefined. Other reductions have an identity, and
 * the float mean is NaN. */
static bool
has_no_result(enum reduce_op op, tundish_dtype dtype, const int64_t *dims, uint32_t rank,
              uint32_t axes)
{
    bool is_empty = false;

    for (uint32_t k = 0; k < rank; k++)
        is_empty |= (axes >> k & 1) != 0 && dims[k] == 0;
    return is_empty && (op == REDUCE_ARGMAX || (op == REDUCE_MEAN && tnd_dtype_is_integer(dtype)));
}

void
reduce_column(enum reduce_op op, tundish_dtype dtype, const struct column *column, uint32_t axes,
              struct scratch *scratch, struct column *ret_column, uint8_t *ret_bad)
{
    uint32_t rank = column->level_count, kept = rank - (uint32_t)__builtin_popcount(axes);
    size_t bytes = tnd_dtype_bytes(dtype);
    size_t out_bytes = op == REDUCE_ARGMAX ? sizeof(int64_t) : bytes;
    int64_t dims[RANK_MAX], *kept_sizes;
    uint8_t *values;

    if (column_same_dims(column, dims)) {
        const void *result;

        if (has_no_result(op, dtype, dims, rank, axes))
            memset(ret_bad, 1, (size_t)column->count);
        result = reduce_alike(op, dtype, column->values, column->count, dims, &rank, axes, scratch);
        column_set_dims(ret_column, column->count, rank, dims);
        ret_column->values = result;
        return;
    }
    /* Elements of different shapes are reduced one at a time. */
    /* Elements of different shapes are reduced one at a time. The sizes come first, because they
     * decide where each result lies. */
    kept_sizes =
        scratch_array(scratch, (size_t)(column->count * (int64_t)kept), sizeof *kept_sizes);
    for (int64_t i = 0; i < column->count; i++) {
        uint32_t at = 0;

        column_dims(column, i, dims);
        ret_bad[i] = has_no_result(op, dtype, dims, rank, axes);
        for (uint32_t k = 0; k < rank; k++)
            if ((axes >> k & 1) == 0)
                kept_sizes[i * kept + at++] = dims[k];
    }
    column_set_dims_each(ret_column, column->count, kept, kept_sizes, scratch);
    values = scratch_array(scratch, (size_t)ret_column->value_count, out_bytes);
    ret_column->values = values;
    for (int64_t i = 0; i < column->count; i++) {
        uint32_t left = rank;
        int64_t begin, end;
        const void *result;
        size_t size;

        column_dims(column, i, dims);
        column_value_range(column, i, i + 1, &begin, &end);
        result = reduce_alike(op, dtype, (const uint8_t *)column->values + (size_t)begin * bytes, 1,
                              dims, &left, axes, scratch);
        size = (size_t)dims_product(dims, left) * out_bytes;
        memcpy(values, result, size);
        values += size;
    }
}
