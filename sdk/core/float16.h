/* float16.h - the two 16-bit float formats, from and to float32, rounded to nearest even. */
#ifndef TND_CORE_FLOAT16_H
#define TND_CORE_FLOAT16_H

#include <stdint.h>
#include <string.h>

static inline uint32_t
tnd_float_bits(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float
tnd_float_of_bits(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

/* `bits` shifted right by `shift` (1 to 31), to nearest, ties to even. */
static inline uint32_t
tnd_shift_to_even(uint32_t bits, uint32_t shift)
{
    uint32_t half = UINT32_C(1) << (shift - 1);

    return (bits + half - 1 + ((bits >> shift) & 1)) >> shift;
}

static inline uint16_t
tnd_float16_of_float(float value)
{
    uint32_t bits = tnd_float_bits(value);
    uint32_t sign = (bits >> 16) & 0x8000U;
    uint32_t size = bits & 0x7FFFFFFFU;

    if (size > 0x7F800000U) /* not a number: quiet, the top of the payload kept */
        return (uint16_t)(sign | 0x7E00U | ((size >> 13) & 0x1FFU));
    if (size >= 0x477FF000U) /* 65520 and beyond round to infinity */
        return (uint16_t)(sign | 0x7C00U);
    if (size >= 0x38800000U) /* normal: from 2^-14 on */
        return (uint16_t)(sign | tnd_shift_to_even(size - 0x38000000U, 13));
    if (size < 0x33000000U) /* below half of the smallest subnormal */
        return (uint16_t)sign;
    return (uint16_t)(sign | tnd_shift_to_even((size & 0x7FFFFFU) | 0x800000U, 126 - (size >> 23)));
}

static inline float
tnd_float_of_float16(uint16_t value)
{
    uint32_t sign = (uint32_t)(value & 0x8000U) << 16;
    uint32_t size = value & 0x7FFFU;

    if (size >= 0x7C00U)
        return tnd_float_of_bits(sign | 0x7F800000U | ((size & 0x3FFU) << 13));
    if (size >= 0x400U)
        return tnd_float_of_bits(sign | ((size << 13) + 0x38000000U));
    /* subnormal: an integer times 2^-24, which float32 holds exactly */
    return tnd_float_of_bits(sign | tnd_float_bits((float)size * 0x1p-24F));
}

static inline uint16_t
tnd_bfloat16_of_float(float value)
{
    uint32_t bits = tnd_float_bits(value);

    if ((bits & 0x7FFFFFFFU) > 0x7F800000U)
        return (uint16_t)(((bits >> 16) & 0x8000U) | 0x7FC0U);
    return (uint16_t)((bits + 0x7FFFU + ((bits >> 16) & 1)) >> 16);
}

static inline float
tnd_float_of_bfloat16(uint16_t value)
{
    return tnd_float_of_bits((uint32_t)value << 16);
}

#endif
