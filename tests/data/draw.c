/* draw.c - counters hashed into random numbers. */
#include "draw.h"

#include <math.h>

#define ZIPF_EXPONENT 1.05

static uint64_t
mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
    return x ^ (x >> 31);
}

uint64_t
draw_bits(uint64_t seed, uint64_t row, uint64_t purpose)
{
    return mix(mix(mix(seed) + row) + purpose * UINT64_C(0x9E3779B97F4A7C15));
}

double
draw_uniform(uint64_t seed, uint64_t row, uint64_t purpose)
{
    return ((double)(draw_bits(seed, row, purpose) >> 12) + 0.5) * 0x1p-52;
}

double
draw_normal(uint64_t seed, uint64_t row, uint64_t purpose)
{
    double radius = sqrt(-2.0 * log(draw_uniform(seed, row, purpose)));

    return radius * cos(6.283185307179586 * draw_uniform(seed, row, purpose + 1));
}

/* The integral of that density, inverted. */
uint32_t
draw_zipf(double uniform, uint32_t cardinality)
{
    double power = 1.0 - ZIPF_EXPONENT;
    double end = pow((double)cardinality + 1.0, power);
    double value = pow(1.0 + uniform * (end - 1.0), 1.0 / power);
    uint32_t rank = (uint32_t)value - 1;

    return rank < cardinality ? rank : cardinality - 1;
}
