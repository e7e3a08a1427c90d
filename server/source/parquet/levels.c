/* levels.c - see levels.h. Loops that compilers turn into vector code. */
#include "source/parquet/levels.h"

#include <string.h>

enum { BLOCK = 255 }; /* as many as a byte can count */

uint8_t
levels_highest(const uint8_t *levels, size_t count)
{
    uint8_t highest = 0;

    for (size_t i = 0; i < count; i++)
        highest = levels[i] > highest ? levels[i] : highest;
    return highest;
}

size_t
levels_count(const uint8_t *levels, size_t count, uint8_t least)
{
    size_t found = 0;

    for (size_t begin = 0; begin < count; begin += BLOCK) {
        size_t end = count - begin < BLOCK ? count : begin + BLOCK;
        uint8_t in_block = 0;

        for (size_t i = begin; i < end; i++)
            in_block = (uint8_t)(in_block + (levels[i] >= least));
        found += in_block;
    }
    return found;
}

size_t
levels_keep(uint8_t *levels, size_t count, uint8_t least)
{
    size_t kept = 0;

    for (size_t i = 0; i < count; i++) {
        levels[kept] = levels[i];
        kept += levels[i] >= least;
    }
    return kept;
}

/* From the last to the first: a value never goes to a slot before its own, so none is overwritten
 * that is still to be moved. Without branches, since nobody can foretell where nulls are. */
static inline __attribute__((always_inline)) void
spread_width(const uint8_t *levels, size_t count, uint8_t defined, size_t width, const void *other,
             uint8_t *slots)
{
    size_t value = levels_count(levels, count, defined);
    uint64_t otherwise = 0;

    memcpy(&otherwise, other, width);
    for (size_t i = count; i-- > 0;) {
        uint64_t moved = 0;

        value -= levels[i] >= defined;
        memcpy(&moved, slots + value * width, width);
        moved = levels[i] >= defined ? moved : otherwise;
        memcpy(slots + i * width, &moved, width);
    }
}

void
levels_spread(const uint8_t *levels, size_t count, uint8_t defined, size_t width, const void *other,
              uint8_t *slots)
{
    if (width == 1)
        spread_width(levels, count, defined, 1, other, slots);
    else if (width == 2)
        spread_width(levels, count, defined, 2, other, slots);
    else if (width == 4)
        spread_width(levels, count, defined, 4, other, slots);
    else
        spread_width(levels, count, defined, 8, other, slots);
}

void
levels_nulls(const uint8_t *levels, size_t count, uint8_t defined, uint8_t *nulls)
{
    for (size_t i = 0; i < count; i++)
        nulls[i] = levels[i] < defined;
}
