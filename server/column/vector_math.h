/* vector_math.h - exp, log and related functions, written so that compilers vectorise them and that
 * every CPU gives the same bits: no call into libm, no branch where a selection will do.
 *
 * float32 and float64 results are within 2 units in the last place (sin, cos and pow of float32 are
 * computed in float64). Subnormal arguments count as 0. The reductions and the coefficients of the
 * logarithms, sine, cosine and float64 exponential are those of fdlibm (Sun Microsystems), of the
 * float32 exponential those of Cephes (S. L. Moshier).
 */
#ifndef COLUMN_VECTOR_MATH_H
#define COLUMN_VECTOR_MATH_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "column/flush.h"

/* Adding this and taking it off again rounds to an integer, half to even. */
#define ROUND_FLOAT 0x1.8p23F
#define ROUND_DOUBLE 0x1.8p52

/* 2^n for -126 <= n <= 127. */
static inline float
scale_float(int32_t n)
{
    return float_of_bits((uint32_t)(n + 127) << 23);
}

/* x = n ln2 + r; the result is (exp(r) - 1 - r) / r^2 and |r| is at most ln2 / 2. */
static inline float
exp_reduced_float(float x, int32_t *ret_n, float *ret_r)
{
    float n = x * 0x1.715476p0F + ROUND_FLOAT - ROUND_FLOAT;
    float r = x - n * 0.693359375F - n * -2.12194440e-4F;
    float y = 1.9875691500e-4F;

    y = y * r + 1.3981999507e-3F;
    y = y * r + 8.3334519073e-3F;
    y = y * r + 4.1665795894e-2F;
    y = y * r + 1.6666665459e-1F;
    y = y * r + 5.0000001201e-1F;
    *ret_n = (int32_t)n;
    *ret_r = r;
    return y;
}

static inline float
exp_float(float x)
{
    float inside = x < -88.0F ? -88.0F : x > 89.0F ? 89.0F : x;
    int32_t n;
    float r;
    float y = exp_reduced_float(inside == inside ? inside : 0.0F, &n, &r);
    float result = (y * (r * r) + r + 1.0F) * scale_float(n >> 1) * scale_float(n - (n >> 1));

    result = x < -0x1.5d589ep6F ? 0.0F : x > 0x1.62e42ep6F ? INFINITY : result;
    return x == x ? result : NAN;
}

static inline float
expm1_float(float x)
{
    float inside = x < -30.0F ? -30.0F : x > 89.0F ? 89.0F : x;
    int32_t n;
    float r;
    float y = exp_reduced_float(inside == inside ? inside : 0.0F, &n, &r);
    float e = y * (r * r) + r;
    /* Half of it: 2^128 is not a float. */
    float half = scale_float(n - 1);
    float result = (e * half + (half - 0.5F)) * 2.0F;
    float magnitude = float_of_bits(float_bits(x) & 0x7FFFFFFF);

    result = x > 0x1.62e42ep6F ? INFINITY : result;
    return magnitude < 0x1p-24F ? x : x == x ? result : NAN;
}

/* log(1 + f) for f in [sqrt(1/2) - 1, sqrt(2) - 1], plus k ln2, plus `low`. */
static inline float
log_reduced_float(float f, float k, float low)
{
    float s = f / (2.0F + f);
    float z = s * s;
    float w = z * z;
    float t1 = w * (0xccce13.0p-25F + w * 0xf89e26.0p-26F);
    float t2 = z * (0xaaaaaa.0p-24F + w * 0x91e9ee.0p-25F);
    float half_square = 0.5F * f * f;

    return s * (half_square + (t1 + t2)) + (k * 9.0580006145e-06F + low) - half_square + f +
           k * 6.9313812256e-01F;
}

/* Split x > 0 in 2^k and m in [sqrt(1/2), sqrt(2)). */
static inline float
split_float(float x, int32_t *ret_k)
{
    uint32_t bits = float_bits(x) + (0x3F800000 - 0x3F3504F3);

    *ret_k = (int32_t)(bits >> 23) - 127;
    return float_of_bits((bits & 0x007FFFFF) + 0x3F3504F3);
}

static inline float
log_float(float given)
{
    float x = flush_float(given);
    int32_t k;
    float m = split_float(x, &k);
    float result = log_reduced_float(m - 1.0F, (float)k, 0.0F);

    result = x < INFINITY ? result : x;
    return x > 0.0F ? result : x == 0.0F ? -INFINITY : NAN;
}

static inline float
log1p_float(float x)
{
    float u = 1.0F + x;
    int32_t k;
    float m = split_float(u, &k);
    bool near = x > -0x1.2bec32p-2F && x < 0x1.a82798p-2F;
    /* The rounding error of 1 + x; insignificant once x is large. */
    float lost = (k >= 2 ? 1.0F - (u - x) : x - (u - 1.0F)) / u;
    float low = near || k >= 25 ? 0.0F : lost;
    float result = log_reduced_float(near ? x : m - 1.0F, near ? 0.0F : (float)k, low);
    float magnitude = float_of_bits(float_bits(x) & 0x7FFFFFFF);

    result = magnitude < 0x1p-24F ? x : result;
    result = x < INFINITY ? result : x;
    return x > -1.0F ? result : x == -1.0F ? -INFINITY : NAN;
}

static inline float
tanh_float(float x)
{
    uint32_t sign = float_bits(x) & 0x80000000;
    float magnitude = float_of_bits(float_bits(x) & 0x7FFFFFFF);
    float e = expm1_float(magnitude > 10.0F ? 20.0F : 2.0F * magnitude);
    float result = magnitude < 0x1p-12F ? magnitude : e / (e + 2.0F);

    result = magnitude > 10.0F ? 1.0F : result;
    return x == x ? float_of_bits(float_bits(result) | sign) : NAN;
}

static inline float
sigmoid_float(float x)
{
    return 1.0F / (1.0F + exp_float(-x));
}

static inline double
scale_double(int32_t n)
{
    return double_of_bits((uint64_t)(uint32_t)(n + 1023) << 52);
}

static inline double
exp_double(double x)
{
    double inside = x < -746.0 ? -746.0 : x > 710.0 ? 710.0 : x;
    double n, high, low, r, square, c, sum, result;

    inside = inside == inside ? inside : 0.0;
    n = inside * 0x1.71547652b82fep0 + ROUND_DOUBLE - ROUND_DOUBLE;
    high = inside - n * 6.93147180369123816490e-01;
    low = n * 1.90821492927058770002e-10;
    r = high - low;
    square = r * r;
    c = 4.13813679705723846039e-08;
    c = c * square - 1.65339022054652515390e-06;
    c = c * square + 6.61375632143793436117e-05;
    c = c * square - 2.77777777770155933842e-03;
    c = c * square + 1.66666666666666019037e-01;
    c = r - square * c;
    sum = 1.0 + ((r * c / (2.0 - c) - low) + high);
    result = sum * scale_double((int32_t)n >> 1) * scale_double((int32_t)n - ((int32_t)n >> 1));
    result = x < -0x1.6232bdd7abcd2p9 ? 0.0 : x > 0x1.62e42fefa39efp9 ? INFINITY : result;
    return x == x ? result : NAN;
}

static inline double
expm1_double(double x)
{
    double inside = x < -50.0 ? -50.0 : x > 710.0 ? 710.0 : x;
    double n, high, low, r, lost, y, e, half, result;
    double magnitude = double_of_bits(double_bits(x) & INT64_MAX);

    inside = inside == inside ? inside : 0.0;
    n = inside * 0x1.71547652b82fep0 + ROUND_DOUBLE - ROUND_DOUBLE;
    high = inside - n * 6.93147180369123816490e-01;
    low = n * 1.90821492927058770002e-10;
    r = high - low;
    lost = (high - r) - low;
    y = 1.0 / 87178291200.0;
    y = y * r + 1.0 / 6227020800.0;
    y = y * r + 1.0 / 479001600.0;
    y = y * r + 1.0 / 39916800.0;
    y = y * r + 1.0 / 3628800.0;
    y = y * r + 1.0 / 362880.0;
    y = y * r + 1.0 / 40320.0;
    y = y * r + 1.0 / 5040.0;
    y = y * r + 1.0 / 720.0;
    y = y * r + 1.0 / 120.0;
    y = y * r + 1.0 / 24.0;
    y = y * r + 1.0 / 6.0;
    y = y * r + 1.0 / 2.0;
    e = r + (y * (r * r) + (lost + lost * r));
    half = scale_double((int32_t)n - 1);
    result = (e * half + (half - 0.5)) * 2.0;
    result = x > 0x1.62e42fefa39efp9 ? INFINITY : result;
    return magnitude < 0x1p-54 ? x : x == x ? result : NAN;
}

static inline double
log_reduced_double(double f, double k, double low)
{
    double s = f / (2.0 + f);
    double z = s * s;
    double w = z * z;
    double t1 = w * (3.999999999940941908e-01 +
                     w * (2.222219843214978396e-01 + w * 1.531383769920937332e-01));
    double t2 = z * (6.666666666666735130e-01 +
                     w * (2.857142874366239149e-01 +
                          w * (1.818357216161805012e-01 + w * 1.479819860511658591e-01)));
    double half_square = 0.5 * f * f;

    return s * (half_square + (t1 + t2)) + (k * 1.90821492927058770002e-10 + low) - half_square +
           f + k * 6.93147180369123816490e-01;
}

static inline double
split_double(double x, int32_t *ret_k)
{
    const uint64_t low = UINT64_C(0x3FE6A09E667F3BCD); /* sqrt(1/2) */
    uint64_t bits = double_bits(x) + (UINT64_C(0x3FF0000000000000) - low);

    *ret_k = (int32_t)(bits >> 52) - 1023;
    return double_of_bits((bits & UINT64_C(0x000FFFFFFFFFFFFF)) + low);
}

static inline double
log_double(double given)
{
    double x = flush_double(given);
    int32_t k;
    double m = split_double(x, &k);
    double result = log_reduced_double(m - 1.0, (double)k, 0.0);

    result = x < INFINITY ? result : x;
    return x > 0.0 ? result : x == 0.0 ? -INFINITY : NAN;
}

static inline double
log1p_double(double x)
{
    double u = 1.0 + x;
    int32_t k;
    double m = split_double(u, &k);
    bool near = x > -0x1.2bec333018866p-2 && x < 0x1.a827999fcef32p-2;
    double lost = (k >= 2 ? 1.0 - (u - x) : x - (u - 1.0)) / u;
    double low = near || k >= 54 ? 0.0 : lost;
    double result = log_reduced_double(near ? x : m - 1.0, near ? 0.0 : (double)k, low);
    double magnitude = double_of_bits(double_bits(x) & INT64_MAX);

    result = magnitude < 0x1p-53 ? x : result;
    result = x < INFINITY ? result : x;
    return x > -1.0 ? result : x == -1.0 ? -INFINITY : NAN;
}

static inline double
tanh_double(double x)
{
    uint64_t sign = double_bits(x) & UINT64_C(0x8000000000000000);
    double magnitude = double_of_bits(double_bits(x) & INT64_MAX);
    double e = expm1_double(magnitude > 22.0 ? 44.0 : 2.0 * magnitude);
    double result = magnitude < 0x1p-28 ? magnitude : e / (e + 2.0);

    result = magnitude > 22.0 ? 1.0 : result;
    return x == x ? double_of_bits(double_bits(result) | sign) : NAN;
}

static inline double
sigmoid_double(double x)
{
    return 1.0 / (1.0 + exp_double(-x));
}

/* The remainder of a large x after multiples of pi/2; returns the quadrant (vector_math.c). */
unsigned reduce_large_angle(double x, double *ret_r, double *ret_tail);

/* x = q pi/2 + r + tail with |r| <= pi/4; returns q modulo 4. */
static inline unsigned
reduce_angle(double x, double *ret_r, double *ret_tail)
{
    double magnitude = double_of_bits(double_bits(x) & INT64_MAX);
    double n, r1, r2, w, lost;

    if (!(magnitude < 0x1p20))
        return reduce_large_angle(x, ret_r, ret_tail);
    n = x * 0x1.45f306dc9c883p-1 + ROUND_DOUBLE - ROUND_DOUBLE;
    r1 = x - n * 1.57079632673412561417e+00;
    w = n * 6.07710050630396597660e-11;
    r2 = r1 - w;
    lost = (r1 - r2) - w;
    w = n * 2.02226624879595063154e-21 - lost;
    *ret_r = r2 - w;
    *ret_tail = (r2 - *ret_r) - w;
    return (unsigned)(int64_t)n & 3;
}

static inline double
sin_reduced(double r, double tail)
{
    double z = r * r;
    double v = z * r;
    double p = 8.33333333332248946124e-03 +
               z * (-1.98412698298579493134e-04 +
                    z * (2.75573137070700676789e-06 +
                         z * (-2.50507602534068634195e-08 + z * 1.58969099521155010221e-10)));

    return r - ((z * (0.5 * tail - v * p) - tail) - v * -1.66666666666666324348e-01);
}

static inline double
cos_reduced(double r, double tail)
{
    double z = r * r;
    double p =
        z * (4.16666666666666019037e-02 +
             z * (-1.38888888888741095749e-03 +
                  z * (2.48015872894767294178e-05 +
                       z * (-2.75573143513906633035e-07 +
                            z * (2.08757232129817482790e-09 + z * -1.13596475577881948265e-11)))));
    double half = 0.5 * z;
    double w = 1.0 - half;

    return w + (((1.0 - w) - half) + (z * p - r * tail));
}

/* sin(x + quarter * pi/2) */
static inline double
sin_quarter(double x, unsigned quarter)
{
    double r = 0, tail = 0, value;
    unsigned q;

    if (!(double_of_bits(double_bits(x) & INT64_MAX) < INFINITY))
        return NAN;
    q = reduce_angle(x, &r, &tail) + quarter;
    value = q & 1 ? cos_reduced(r, tail) : sin_reduced(r, tail);
    return q & 2 ? -value : value;
}

double pow_double(double x, double y);
float pow_float(float x, float y);

#endif
