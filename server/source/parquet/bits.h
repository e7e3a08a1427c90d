/* bits.h - unsigned numbers of a few bits each, lowest bit first, as Parquet packs them.
 *
 * All read whole words: 8 bytes after the last packed one must be readable. */
#ifndef SOURCE_PARQUET_BITS_H
#define SOURCE_PARQUET_BITS_H

#include <stddef.h>

#include "core/bytes.h"

enum { PARQUET_SLACK = 64 }; /* readable bytes after every page */

/* Bytes that `count` numbers of `width` bits take. */
static inline uint64_t
bits_bytes(uint64_t count, unsigned width)
{
    return count / 8 * width + (count % 8 * width + 7) / 8;
}

/* Unpack `count` numbers of at most 32 bits each. Whole groups of eight are written: `to` has room
 * for the next multiple of 8. */
void bits_unpack_u32(const uint8_t *from, unsigned width, size_t count, uint32_t *to);

/* The same for at most 64 bits. */
void bits_unpack_u64(const uint8_t *from, unsigned width, size_t count, uint64_t *to);

/* One bit each, as bytes 0 and 1. */
void bits_unpack_bools(const uint8_t *from, size_t count, uint8_t *to);

#endif
