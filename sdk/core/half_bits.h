/* half_bits.h - the two 16-bit floats, for the host and for a device's kernels: the same source, so
 * the same bits. */
#ifndef TND_CORE_HALF_BITS_H
#define TND_CORE_HALF_BITS_H

#include <stdint.h>

#if defined(__CUDACC__) || defined(__CUDA__) /* nvcc or clang: for the device */
#define HALF_INLINE static inline __attribute__((device))
#else
#define HALF_INLINE static inline
#endif

HALF_INLINE uint32_t
half_bits_of(float value)
{
    uint32_t bits;

    __builtin_memcpy(&bits, &value, sizeof bits);
    return bits;
}

HALF_INLINE float
half_float_of(uint32_t bits)
{
    float value;

    __builtin_memcpy(&value, &bits, sizeof value);
    return value;
}

/* Keep `kept` of `bits`, whose lowest `dropped` bits go: to nearest, ties to even. */
HALF_INLINE uint64_t
half_round_off(uint64_t bits, unsigned dropped)
{
    uint64_t half = UINT64_C(1) << (dropped - 1);
    uint64_t rest = bits & ((half << 1) - 1);
    uint64_t kept = bits >> dropped;

    return kept + (rest > half || (rest == half && (kept & 1)));
}

/* A double to a float of `mantissa` bits and `exponent` bits (5 or 8), in 16. Rounding into the
 * next exponent, and into infinity, carries by itself. */
HALF_INLINE uint16_t
half_narrow(double value, unsigned mantissa, unsigned exponent)
{
    uint64_t bits;
    uint64_t sign, fraction;
    int power, bias = (1 << (exponent - 1)) - 1;
    uint64_t infinity = ((UINT64_C(1) << exponent) - 1) << mantissa;
    uint64_t result;

    __builtin_memcpy(&bits, &value, sizeof bits);
    sign = bits >> 63 << 15;
    power = (int)(bits >> 52 & 0x7ff) - 1023;
    fraction = bits & ((UINT64_C(1) << 52) - 1);
    if (power == 1024) {
        uint64_t quiet = fraction != 0 ? UINT64_C(1) << (mantissa - 1) : 0;

        return (uint16_t)(sign | infinity | quiet);
    }
    if (power == -1023)
        return (uint16_t)sign; /* smaller than any 16-bit float */
    fraction |= UINT64_C(1) << 52;
    if (power >= 1 - bias) {
        if (power > bias)
            return (uint16_t)(sign | infinity);
        result =
            half_round_off(fraction, 52 - mantissa) + ((uint64_t)(power + bias - 1) << mantissa);
        return (uint16_t)(sign | (result < infinity ? result : infinity));
    }
    if (1 - bias - power > (int)mantissa + 1)
        return (uint16_t)sign;
    return (uint16_t)(sign |
                      half_round_off(fraction, 52 - mantissa + (unsigned)(1 - bias - power)));
}

HALF_INLINE float
half_to_float(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16;
    uint32_t exponent = half >> 10 & 0x1f;
    uint32_t fraction = half & 0x3ff;

    if (exponent == 0x1f)
        return half_float_of(sign | 0x7f800000 | fraction << 13);
    if (exponent != 0)
        return half_float_of(sign | (exponent + 112) << 23 | fraction << 13);
    /* Subnormal, or zero: fraction times 2^-24 is exact. */
    return half_float_of(sign | half_bits_of((float)fraction * 0x1p-24f));
}

/* NaN is taken by its bits: a device's conversion makes a NaN of its own of any. Below 2^-14 an
 * addition rounds: floats from 0.5 to 1 lie 2^-24 apart, as halfs do there. */
HALF_INLINE uint16_t
half_from_float(float value)
{
    uint32_t bits = half_bits_of(value), sign = bits >> 31 << 15;

    bits &= 0x7fffffff;
    if (bits > 0x7f800000)
        return (uint16_t)(sign | 0x7e00);
    if (bits >= 0x47800000) /* 2^16 */
        return (uint16_t)(sign | 0x7c00);
    if (bits < 0x38800000) /* 2^-14 */
        return (uint16_t)(sign | (half_bits_of(half_float_of(bits) + 0.5f) - 0x3f000000));
    bits -= 112U << 23;
    return (uint16_t)(sign | (bits + 0xfff + (bits >> 13 & 1)) >> 13);
}

HALF_INLINE uint16_t
half_from_double(double value)
{
    return half_narrow(value, 10, 5);
}

HALF_INLINE float
bfloat_to_float(uint16_t bfloat)
{
    return half_float_of((uint32_t)bfloat << 16);
}

HALF_INLINE uint16_t
bfloat_from_float(float value)
{
    uint32_t bits = half_bits_of(value);

    if ((bits & 0x7fffffff) > 0x7f800000)
        return (uint16_t)(bits >> 31 << 15 | 0x7fc0);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

HALF_INLINE uint16_t
bfloat_from_double(double value)
{
    return half_narrow(value, 7, 8);
}

#endif
