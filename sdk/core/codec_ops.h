/* codec_ops.h - the interface between codec.c and the codecs. */
#ifndef TND_CORE_CODEC_OPS_H
#define TND_CORE_CODEC_OPS_H

#include <stdbool.h>

#include "core/codec.h"

/* Codecs see only sound parameters, whole values, and room for `bound` bytes. */
struct codec_ops {
    uint8_t number;
    const char *name;

    /* Parameters that this codec's encoder may have stored? */
    bool (*is_sound)(const struct tnd_codec *codec);

    /* The most stored bytes of `bytes`, which are less than 2^56. */
    uint64_t (*bound)(const struct tnd_codec *codec, uint64_t bytes);

    tundish_status (*encode)(const struct tnd_codec *codec, const uint8_t *in, uint64_t bytes,
                             uint8_t *out, struct tnd_codec_context *context,
                             uint64_t *ret_stored_bytes);

    /* `stored_bytes` is at most `bound` of `out_bytes`, no more is known of it. */
    tundish_status (*decode)(const struct tnd_codec *codec, const uint8_t *stored,
                             uint64_t stored_bytes, uint8_t *out, uint64_t out_bytes,
                             struct tnd_codec_context *context);
};

extern const struct codec_ops codec_raw, codec_narrow, codec_bitpack, codec_zstd;

/* Lengths that do not agree, or damage: one sentence for all codecs. */
tundish_status codec_refuse_stored(const struct codec_ops *ops, uint64_t stored_bytes,
                                   uint64_t out_bytes);
/* A value outside of the codec's range. */
tundish_status codec_refuse_value(const struct codec_ops *ops, const struct tnd_codec *codec);

/* Values at any address. */
typedef uint64_t codec_u64 __attribute__((aligned(1), may_alias));
typedef uint32_t codec_u32 __attribute__((aligned(1), may_alias));
typedef uint16_t codec_u16 __attribute__((aligned(1), may_alias));
typedef uint8_t codec_u8 __attribute__((may_alias));

#define CODEC_INLINE static inline __attribute__((always_inline))

#endif
