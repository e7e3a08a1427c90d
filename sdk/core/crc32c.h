/* crc32c.h - CRC-32C (Castagnoli), of records, columns and cache files. */
#ifndef TND_CORE_CRC32C_H
#define TND_CORE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* The checksum of what `crc` is the checksum of, followed by `bytes` bytes at `data`; begin with
 * 0. The same bits on every processor (cpu.h); any thread, any alignment. */
uint32_t tnd_crc32c(uint32_t crc, const void *data, size_t bytes);

/* TFRecord stores checksums masked, so that the checksum of a record that holds checksums stays
 * a good one. */
static inline uint32_t
tnd_crc32c_mask(uint32_t crc)
{
    return ((crc >> 15) | (crc << 17)) + 0xA282EAD8U;
}

static inline uint32_t
tnd_crc32c_unmask(uint32_t masked)
{
    uint32_t rotated = masked - 0xA282EAD8U;

    return (rotated >> 17) | (rotated << 15);
}

#endif
