/* levels.h - arithmetic on definition levels: one byte for each value, null, or list without
 * elements. */
#ifndef SOURCE_PARQUET_LEVELS_H
#define SOURCE_PARQUET_LEVELS_H

#include <stddef.h>
#include <stdint.h>

/* The highest level. */
uint8_t levels_highest(const uint8_t *levels, size_t count);

/* How many are `least` or higher. */
size_t levels_count(const uint8_t *levels, size_t count, uint8_t least);

/* Keep only those that are `least` or higher, in their order. Returns how many. */
size_t levels_keep(uint8_t *levels, size_t count, uint8_t least);

/* Move values apart: those of `width` bytes (1, 2, 4 or 8) that stand side by side at the beginning
 * of `slots` go where the level is `defined`, the highest; `other` goes where it is lower. */
void levels_spread(const uint8_t *levels, size_t count, uint8_t defined, size_t width,
                   const void *other, uint8_t *slots);

/* 1 where the level is lower than `defined`, else 0. */
void levels_nulls(const uint8_t *levels, size_t count, uint8_t defined, uint8_t *nulls);

#endif
