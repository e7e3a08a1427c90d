/* vector_half.h - the two 16-bit float formats, to and from float, rounding to nearest even.
 *
 * Integer arithmetic and normal floats only: the bits do not depend on FTZ and DAZ, nor on F16C.
 */
#ifndef COLUMN_VECTOR_HALF_H
#define COLUMN_VECTOR_HALF_H

#include <stdint.h>
#include <string.h>

static inline uint32_t
float_bits(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float
float_of_bits(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline float
half_to_float(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16;
    uint32_t bits = (uint32_t)(half & 0x7FFF) << 13;
    uint32_t exponent = bits & 0x0F800000;
    uint32_t normal = bits + (112U << 23);
    uint32_t special = bits + (224U << 23);
    /* A subnormal half is a normal float: put a 1 before its mantissa and take it off again. */
    uint32_t small = float_bits(float_of_bits(bits + (113U << 23)) - float_of_bits(113U << 23));

    bits = exponent == 0x0F800000 ? special : exponent == 0 ? small : normal;
    return float_of_bits(bits | sign);
}

static inline uint16_t
half_of_float(float value)
{
    const uint32_t magic = 126U << 23;
    uint32_t bits = float_bits(value);
    uint32_t sign = bits & 0x80000000U;
    uint32_t result;

    bits ^= sign;
    if (bits >= 143U << 23) /* 65536 and more, infinities and NaN */
        result = bits > 255U << 23 ? 0x7E00 : 0x7C00;
    else if (bits < 113U << 23) /* adding lets the float unit round at the right bit */
        result = float_bits(float_of_bits(bits) + float_of_bits(magic)) - magic;
    else
        result = (bits - (112U << 23) + 0xFFF + (bits >> 13 & 1)) >> 13;
    return (uint16_t)(result | sign >> 16);
}

static inline float
bfloat_to_float(uint16_t bfloat)
{
    return float_of_bits((uint32_t)bfloat << 16);
}

static inline uint16_t
bfloat_of_float(float value)
{
    uint32_t bits = float_bits(value);

    if ((bits & 0x7FFFFFFF) > 0x7F800000)
        return (uint16_t)((bits >> 16 & 0x8000) | 0x7FC0);
    return (uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

#endif
