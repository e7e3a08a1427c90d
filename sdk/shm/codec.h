/* codec.h - how the bytes of a buffer are stored in a slot.
 *
 * Every codec is lossless. Numbers are stored in slots, so none is ever reused.
 */
#ifndef TND_SHM_CODEC_H
#define TND_SHM_CODEC_H

#include <stdint.h>

#include "tundish/tundish.h"

enum tnd_codec {
    TND_CODEC_RAW     = 0, /* as is: the trainer reads it where it lies */
    TND_CODEC_NARROW  = 1, /* integers in fewer bytes */
    TND_CODEC_BITPACK = 2, /* integers in fewer bits */
    TND_CODEC_ZSTD    = 3, /* independent zstd frames */
    TND_CODEC_USER    = 32768 /* from here on: not ours */
};

enum { TND_CODEC_PARAMETERS = 3 };

/* Make exactly `out_bytes` bytes at `out` (aligned to 64) from `stored`. Everything it is given may
 * be hostile: it reads nothing outside of `stored` and fails with E_CORRUPT if the two sizes do not
 * agree. E_LAYOUT: a codec that this library does not know. */
tundish_status tnd_decode(uint16_t codec, const uint64_t parameters[TND_CODEC_PARAMETERS],
                          const void *stored, uint64_t stored_bytes, void *out,
                          uint64_t out_bytes);

#endif
