/* half.c - the two 16-bit floats. */
#include "core/half.h"

#include "core/half_bits.h"

float
tnd_half_to_float(uint16_t half)
{
    return half_to_float(half);
}

uint16_t
tnd_half_from_float(float value)
{
    return half_from_float(value);
}

uint16_t
tnd_half_from_double(double value)
{
    return half_from_double(value);
}

float
tnd_bfloat_to_float(uint16_t bfloat)
{
    return bfloat_to_float(bfloat);
}

uint16_t
tnd_bfloat_from_float(float value)
{
    return bfloat_from_float(value);
}

uint16_t
tnd_bfloat_from_double(double value)
{
    return bfloat_from_double(value);
}
