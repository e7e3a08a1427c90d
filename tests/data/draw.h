/* draw.h - random draws that are functions of a seed, a row and a purpose. */
#ifndef DRAW_H
#define DRAW_H

#include <stdint.h>

/* All 64 bits even. */
uint64_t draw_bits(uint64_t seed, uint64_t row, uint64_t purpose);

/* Evenly from (0, 1): never 0, so that its logarithm is finite. */
double draw_uniform(uint64_t seed, uint64_t row, uint64_t purpose);

/* From the standard normal distribution; takes `purpose` and the one after it. */
double draw_normal(uint64_t seed, uint64_t row, uint64_t purpose);

/* A rank below `cardinality`, about as frequent as 1 / (rank + 1)^1.05, from a uniform draw. */
uint32_t draw_zipf(double uniform, uint32_t cardinality);

#endif
