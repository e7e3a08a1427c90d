/* bits.c - see bits.h.
 *
 * Eight numbers of `width` bits are `width` bytes. For each width there is a loop of its own, in
 * which all shifts are constants. */
#include "source/parquet/bits.h"

static inline __attribute__((always_inline)) void
unpack_u32(const uint8_t *from, unsigned width, size_t count, uint32_t *to)
{
    uint32_t mask = (uint32_t)((UINT64_C(1) << width) - 1);

    for (size_t i = 0; i < count; i += 8, from += width, to += 8)
        for (unsigned k = 0; k < 8; k++)
            to[k] = (uint32_t)(load_u64(from + k * width / 8) >> k * width % 8) & mask;
}

/* Up to 57 bits, which a word has wherever they begin. */
static inline __attribute__((always_inline)) void
unpack_u64(const uint8_t *from, unsigned width, size_t count, uint64_t *to)
{
    uint64_t mask = (UINT64_C(1) << width) - 1;

    for (size_t i = 0; i < count; i += 8, from += width, to += 8)
        for (unsigned k = 0; k < 8; k++)
            to[k] = load_u64(from + k * width / 8) >> k * width % 8 & mask;
}

static void
unpack_wide(const uint8_t *from, unsigned width, size_t count, uint64_t *to)
{
    uint64_t mask = width == 64 ? UINT64_MAX : (UINT64_C(1) << width) - 1;

    for (size_t i = 0; i < count; i++) {
        size_t bit = i * width;
        unsigned shift = bit % 8;
        uint64_t low = load_u64(from + bit / 8) >> shift;
        uint64_t high = shift == 0 ? 0 : (uint64_t)from[bit / 8 + 8] << (64 - shift);

        to[i] = (low | high) & mask;
    }
}

#define WIDTH(w)                                                                                   \
    case w:                                                                                        \
        UNPACK(from, w, count, to);                                                                \
        break;
#define WIDTHS_TO_8 WIDTH(1) WIDTH(2) WIDTH(3) WIDTH(4) WIDTH(5) WIDTH(6) WIDTH(7) WIDTH(8)
#define WIDTHS_TO_16 WIDTH(9) WIDTH(10) WIDTH(11) WIDTH(12) WIDTH(13) WIDTH(14) WIDTH(15) WIDTH(16)
#define WIDTHS_TO_24 WIDTH(17) WIDTH(18) WIDTH(19) WIDTH(20) WIDTH(21) WIDTH(22) WIDTH(23) WIDTH(24)
#define WIDTHS_TO_32 WIDTH(25) WIDTH(26) WIDTH(27) WIDTH(28) WIDTH(29) WIDTH(30) WIDTH(31) WIDTH(32)

#define UNPACK unpack_u32
void
bits_unpack_u32(const uint8_t *from, unsigned width, size_t count, uint32_t *to)
{
    switch (width) {
        WIDTHS_TO_8 WIDTHS_TO_16 WIDTHS_TO_24 WIDTHS_TO_32 default
            : memset(to, 0, count * sizeof *to);
    }
}
#undef UNPACK

#define UNPACK unpack_u64
void
bits_unpack_u64(const uint8_t *from, unsigned width, size_t count, uint64_t *to)
{
    if (width > 32) {
        unpack_wide(from, width, count, to);
        return;
    }
    switch (width) {
        WIDTHS_TO_8 WIDTHS_TO_16 WIDTHS_TO_24 WIDTHS_TO_32 default
            : memset(to, 0, count * sizeof *to);
    }
}
#undef UNPACK

/* Copy the byte into eight, keep bit k in byte k, and move it to the lowest place. */
static inline uint64_t
spread(uint8_t byte)
{
    uint64_t bits = byte * UINT64_C(0x0101010101010101) & UINT64_C(0x8040201008040201);

    return (bits + UINT64_C(0x7F7F7F7F7F7F7F7F)) >> 7 & UINT64_C(0x0101010101010101);
}

void
bits_unpack_bools(const uint8_t *from, size_t count, uint8_t *to)
{
    size_t i = 0;

    for (; i + 8 <= count; i += 8) {
        uint64_t eight = spread(from[i / 8]);

        memcpy(to + i, &eight, sizeof eight);
    }
    for (; i < count; i++)
        to[i] = from[i / 8] >> i % 8 & 1;
}
