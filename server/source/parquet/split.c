/* split.c - see split.h. */
#include "source/parquet/split.h"

/* Loops that compilers turn into vector code: a value is put together in a register. */
static void
join_4(const uint8_t *from, size_t count, uint8_t *to)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t value = 0;

        for (unsigned k = 0; k < 4; k++)
            value |= (uint32_t)from[k * count + i] << 8 * k;
        memcpy(to + 4 * i, &value, sizeof value);
    }
}

static void
join_8(const uint8_t *from, size_t count, uint8_t *to)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t value = 0;

        for (unsigned k = 0; k < 8; k++)
            value |= (uint64_t)from[k * count + i] << 8 * k;
        memcpy(to + 8 * i, &value, sizeof value);
    }
}

void
split_join(const uint8_t *from, size_t count, size_t width, uint8_t *to)
{
    if (width == 4)
        join_4(from, count, to);
    else if (width == 8)
        join_8(from, count, to);
    else
        for (size_t i = 0; i < count; i++)
            for (size_t k = 0; k < width; k++)
                to[i * width + k] = from[k * count + i];
}
