/* vector_math.c - powers, and the reduction of large angles. */
#include "column/vector_math.h"

/* The bits of 2/pi after the binary point, with 64 zeros before them. */
static const uint64_t two_over_pi[] = {
    0,
    UINT64_C(0xA2F9836E4E441529),
    UINT64_C(0xFC2757D1F534DDC0),
    UINT64_C(0xDB6295993C439041),
    UINT64_C(0xFE5163ABDEBBC561),
    UINT64_C(0xB7246E3A424DD2E0),
    UINT64_C(0x06492EEA09D1921C),
    UINT64_C(0xFE1DEB1CB129A73E),
    UINT64_C(0xE88235F52EBB4484),
    UINT64_C(0xE99C7026B45F7E41),
    UINT64_C(0x3991D639835339F4),
    UINT64_C(0x9C845F8BBDF9283B),
    UINT64_C(0x1FF897FFDE05980F),
    UINT64_C(0xEF2F118B5A0A6D1F),
    UINT64_C(0x6D367ECF27CB09B7),
    UINT64_C(0x4F463F669E5FEA2D),
    UINT64_C(0x7527BAC7EBE5F17B),
    UINT64_C(0x3D0739F78A5292EA),
    UINT64_C(0x6BFB5FB11F8D5D08),
    UINT64_C(0x56033046FC7B6BAB),
    UINT64_C(0xF0CFBC209AF4361D),
};

/* 64 bits of 2/pi from bit `first` on; bit 1 has weight 1/2. */
static uint64_t
bits_of_two_over_pi(int first)
{
    unsigned at = (unsigned)(first + 63);
    uint64_t high = two_over_pi[at / 64];

    return at % 64 == 0 ? high : high << at % 64 | two_over_pi[at / 64 + 1] >> (64 - at % 64);
}

__extension__ typedef unsigned __int128 wide;

/* Payne-Hanek reduction: of x * 2/pi only the bits around the binary point are needed. Bits of 2/pi
 * that contribute only whole turns are left out. */
unsigned
reduce_large_angle(double x, double *ret_r, double *ret_tail)
{
    uint64_t bits = double_bits(x);
    uint64_t mantissa = (bits & UINT64_C(0x000FFFFFFFFFFFFF)) | UINT64_C(1) << 52;
    int exponent = (int)(bits >> 52 & 0x7FF) - 1075;
    int first = exponent - 1;
    wide low = (wide)mantissa * bits_of_two_over_pi(first + 128);
    wide middle = (wide)mantissa * bits_of_two_over_pi(first + 64) + (uint64_t)(low >> 64);
    uint64_t high = mantissa * bits_of_two_over_pi(first) + (uint64_t)(middle >> 64);
    wide product = (wide)high << 64 | (uint64_t)middle; /* two bits before the point */
    unsigned quadrant = (unsigned)(product >> 126);
    wide fraction = product << 2;
    bool negative = fraction >> 127 != 0;
    double head, rest, r;

    if (negative) {
        fraction = -fraction;
        quadrant++;
    }
    head = (double)(uint64_t)(fraction >> 75) * 0x1p-53;
    rest = (double)(uint64_t)(fraction >> 11 & UINT64_MAX) * 0x1p-117;
    /* head * pi/2 in pieces: head1 has 24 bits and the first constant 26, so their product is
     * exact. */
    double head1 = (double)(float)head, head2 = head - head1;
    double main = head * 0x1.921fb54442d18p0;
    double error = head1 * 0x1.921fb5p0 - main + head2 * 0x1.921fb5p0 +
                   head1 * 0x1.110b4611a6263p-26 + head2 * 0x1.110b4611a6263p-26;

    r = main + (error + rest * 0x1.921fb54442d18p0);
    *ret_tail = (main - r) + (error + rest * 0x1.921fb54442d18p0);
    *ret_r = r;
    if (negative != (bits >> 63 != 0)) {
        *ret_r = -*ret_r;
        *ret_tail = -*ret_tail;
    }
    return bits >> 63 != 0 ? -quadrant & 3 : quadrant & 3;
}

/* a * b = product + error, exactly (Dekker); no operand near overflow. */
static double
product_error(double a, double b, double product)
{
    double split_a = a * 134217729.0, split_b = b * 134217729.0;
    double a1 = split_a - (split_a - a), a2 = a - a1;
    double b1 = split_b - (split_b - b), b2 = b - b1;

    return ((a1 * b1 - product) + a1 * b2 + a2 * b1) + a2 * b2;
}

/* log(x) for a normal x > 0 as a sum; the relative error is below 2^-60. */
static double
log_two_parts(double x, double *ret_low)
{
    int32_t k;
    double m = split_double(x, &k);
    double f = m - 1.0;
    double d = 2.0 + f, d_low = f - (d - 2.0);
    double s = f / d;
    double product = s * d;
    double s_low = (((f - product) - product_error(s, d, product)) - s * d_low) / d;
    double z = s * s;
    double series = 2.0 / 23;
    double high, low, sum;

    for (int i = 21; i >= 3; i -= 2)
        series = series * z + 2.0 / i;
    low = 2.0 * s_low + series * z * s;
    high = 2.0 * s;
    sum = (double)k * 6.93147180369123816490e-01; /* exact: the constant ends in zeros */
    low += (double)k * 1.90821492927058770002e-10;
    if (k != 0) {
        double total = sum + high;

        low += (sum - total) + high;
        high = total;
    }
    sum = high + low;
    *ret_low = (high - sum) + low;
    return sum;
}

/* exp(high + low), rounded once more than half an ulp at worst. */
static double
exp_two_parts(double high, double low)
{
    double n, r, r_low, y, sum, rest;

    if (!(high < 710.0))
        return INFINITY;
    if (!(high > -746.0))
        return 0.0;
    n = high * 0x1.71547652b82fep0 + ROUND_DOUBLE - ROUND_DOUBLE;
    r = high - n * 6.93147180369123816490e-01;
    low -= n * 1.90821492927058770002e-10;
    r_low = r + low;
    low = (r - r_low) + low;
    r = r_low;
    y = 1.0 / 6227020800.0;
    for (int i = 12; i >= 2; i--) {
        static const double inverse[] = { 0,
                                          0,
                                          1.0 / 2,
                                          1.0 / 6,
                                          1.0 / 24,
                                          1.0 / 120,
                                          1.0 / 720,
                                          1.0 / 5040,
                                          1.0 / 40320,
                                          1.0 / 362880,
                                          1.0 / 3628800,
                                          1.0 / 39916800,
                                          1.0 / 479001600 };

        y = y * r + inverse[i];
    }
    sum = 1.0 + r;
    rest = (1.0 - sum) + r;
    sum += rest + (y * (r * r) + (low + low * r));
    return flush_double(sum * scale_double((int32_t)n >> 1) *
                        scale_double((int32_t)n - ((int32_t)n >> 1)));
}

static bool
is_integer(double y)
{
    return y == floor(y);
}

static bool
is_odd(double y)
{
    return double_of_bits(double_bits(y) & INT64_MAX) < 0x1p53 && is_integer(y) &&
           ((int64_t)y & 1) != 0;
}

/* The special cases of C's pow (Annex F): 0, infinite, NaN, and a negative base. */
static bool
is_special_power(double x, double y, double *ret_power)
{
    double magnitude = double_of_bits(double_bits(x) & INT64_MAX);
    double y_magnitude = double_of_bits(double_bits(y) & INT64_MAX);

    if (y == 0 || x == 1)
        *ret_power = 1;
    else if (x != x || y != y)
        *ret_power = NAN;
    else if (y_magnitude == INFINITY)
        *ret_power = magnitude == 1 ? 1 : (magnitude > 1) == (y > 0) ? INFINITY : 0;
    else if (magnitude == 0 || magnitude == INFINITY) {
        *ret_power = (magnitude == 0) == (y > 0) ? 0 : INFINITY;
        if (double_bits(x) >> 63 && is_odd(y))
            *ret_power = -*ret_power;
    } else if (x < 0 && !is_integer(y))
        *ret_power = NAN;
    else
        return false;
    return true;
}

/* A power whose exponent is subnormal. The C library, which TensorFlow calls, looks at bits: it is
 * above or below 0. */
static double
tiny_power(double x, bool is_positive)
{
    uint64_t magnitude = double_bits(x) & INT64_MAX;

    if (magnitude > double_bits(INFINITY))
        return NAN;
    if (magnitude == 0)
        return is_positive ? 0 : INFINITY;
    if (magnitude == double_bits(INFINITY))
        return is_positive ? INFINITY : 0;
    return double_bits(x) >> 63 ? NAN : 1;
}

/* Subnormal, by its bits: the thread may take it for 0. */
static bool
is_tiny(double y)
{
    uint64_t magnitude = double_bits(y) & INT64_MAX;

    return magnitude != 0 && magnitude < double_bits(0x1p-1022);
}

double
pow_double(double given_x, double given_y)
{
    double x = flush_double(given_x), y = flush_double(given_y);
    double high, low, product, power;

    if (is_tiny(given_y))
        return tiny_power(given_x, double_bits(given_y) >> 63 == 0);
    if (is_special_power(x, y, &power))
        return power;
    /* x^y = exp(y log x). The logarithm has two parts, because y multiplies its error. */
    high = log_two_parts(double_of_bits(double_bits(x) & INT64_MAX), &low);
    /* Beyond these the result is 0, 1 or infinite, and the product's error must stay finite. */
    if (y > 0x1p64)
        y = 0x1p64;
    if (y < -0x1p64)
        y = -0x1p64;
    product = y * high;
    power = exp_two_parts(product, product_error(y, high, product) + y * low);
    return x < 0 && is_odd(y) ? -power : power;
}

static bool
is_tiny_float(float x)
{
    uint32_t magnitude = float_bits(x) & INT32_MAX;

    return magnitude != 0 && magnitude < 0x00800000;
}

/* For tiny_power, which asks only whether a number is 0: a conversion would take it for that. */
static double
as_normal(float x)
{
    if (is_tiny_float(x))
        return float_bits(x) >> 31 ? -0.5 : 0.5;
    return (double)x;
}

float
pow_float(float x, float y)
{
    double power;

    if (is_tiny_float(y))
        return (float)tiny_power(as_normal(x), float_bits(y) >> 31 == 0);
    power = pow_double((double)flush_float(x), (double)flush_float(y));
    return flush_float((float)power);
}
