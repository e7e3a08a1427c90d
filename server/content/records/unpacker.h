/* unpacker.h - the contents of packed files, as streams. */
#ifndef CONTENT_RECORDS_UNPACKER_H
#define CONTENT_RECORDS_UNPACKER_H

#include <stddef.h>
#include <stdint.h>

#include "core/status.h"

enum packing {
    PACKING_NONE,
    PACKING_GZIP,
    PACKING_ZLIB,
    PACKING_ANY /* any format that libarchive knows: gzip, bzip2, xz, zstd, lz4 */
};

struct unpacker;

/* Unpack the open file `descriptor`, which stays the caller's. */
struct unpacker *unpacker_open(int descriptor, enum packing packing);
void unpacker_close(struct unpacker *unpacker); /* accepts NULL */

/* Fill `to`; fewer bytes mean the end, or damage: then the call fails, and *ret_bytes still says
 * how many were good. Several members in a row count as one stream. */
tundish_status unpacker_next(struct unpacker *unpacker, uint8_t *to, size_t bytes,
                             size_t *ret_bytes);

#endif
