/* codec.h - lossless compression of columns in their slots.
 *
 * A column is stored under one struct tnd_codec, which the slot keeps beside it; the trainer's
 * side gets back exactly the bytes that went in. Everything a decoder is given is hostile: the
 * codec, the stored bytes, the lengths. Decoders read and write nothing outside of the memory they
 * were given, allocate nothing, and never end the process. Encoding and decoding are pure and may
 * run in any number of threads, one context each.
 */
#ifndef TND_CORE_CODEC_H
#define TND_CORE_CODEC_H

#include <stdint.h>

#include "tundish/tundish.h"

/* Stored in slots, so no number is ever used again for something else. Gaps are for kin. */
enum tnd_codec_number {
    TND_CODEC_RAW = 0,      /* as is */
    TND_CODEC_NARROW = 16,  /* integers minus `base`, in `width` = 1, 2 or 4 bytes each */
    TND_CODEC_BITPACK = 17, /* integers minus `base`, in `width` = 0 to 32 bits each */
    TND_CODEC_ZSTD = 32,    /* zstd in chunks of 2^`width` bytes, 16 to 20 */
    TND_CODEC_USER = 128,   /* 128 to 255 are set aside for codecs of users */
    TND_CODEC_USER_LAST = 255
};

/* The parameters of decoding; 16 bytes of a slot's column table. Members that a codec does not use
 * are 0. */
struct tnd_codec {
    uint8_t number;      /* enum tnd_codec_number */
    uint8_t value_bytes; /* NARROW, BITPACK: of a decoded integer, 4 or 8 */
    uint8_t width;       /* see the numbers */
    int8_t level;        /* ZSTD: how hard the encoder tried; decoders do not look */
    uint32_t reserved;   /* 0 */
    int64_t base;        /* NARROW, BITPACK: added to each stored value, modulo 2^64 or 2^32 */
};

/* Working memory of one thread that encodes or decodes; NULL will do where the codec is not ZSTD.
 * `for_encoding` adds what the encoder needs. Close accepts NULL. */
struct tnd_codec_context;
tundish_status tnd_codec_context_open(int for_encoding, struct tnd_codec_context **ret_context);
void tnd_codec_context_close(struct tnd_codec_context *context);

/* The most bytes that a column of `bytes` bytes takes when stored; for NARROW and BITPACK exactly
 * what it takes. TUNDISH_E_ARGUMENT if the codec is malformed or `bytes` is not whole values. */
tundish_status tnd_codec_bound(const struct tnd_codec *codec, uint64_t bytes,
                               uint64_t *ret_stored_bytes);

/* Store the column `in` to `out`, which has room for tnd_codec_bound bytes. TUNDISH_E_DATA if a
 * value lies outside of what NARROW or BITPACK can hold: the caller then stores it as is. `out`
 * may have been written to after a failure. */
tundish_status tnd_codec_encode(const struct tnd_codec *codec, const void *in, uint64_t bytes,
                                void *out, uint64_t out_bytes, struct tnd_codec_context *context,
                                uint64_t *ret_stored_bytes);

/* Restore a column that is known to have `out_bytes` bytes. TUNDISH_E_CORRUPT if the stored bytes
 * are not what an encoder makes of that number; TUNDISH_E_LAYOUT if this library is too old to know
 * the codec. */
tundish_status tnd_codec_decode(const struct tnd_codec *codec, const void *stored,
                                uint64_t stored_bytes, void *out, uint64_t out_bytes,
                                struct tnd_codec_context *context);

/* The smallest codec without entropy coding for integers of `value_bytes` bytes that all lie in
 * first..last: NARROW if that is as small, since it is faster, else BITPACK, else RAW. */
struct tnd_codec tnd_codec_for_range(uint8_t value_bytes, int64_t first, int64_t last);

/* "narrow" and so on; "?" for a number this library does not know. */
const char *tnd_codec_name(const struct tnd_codec *codec);

#endif
