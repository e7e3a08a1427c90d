/* codec_zstd.c - zstd in independent chunks.
 *
 *   stored size of each chunk, 4 bytes each | chunks, one after the other
 *
 * All chunks but the last hold 2^width bytes of the column. A chunk that zstd cannot make smaller
 * is stored as is, with the top bit of its size set; so a column never grows by more than the
 * sizes, and chunks can be decoded side by side.
 */
#include "core/codec_ops.h"

#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "core/bytes.h"
#include "core/status.h"

#define AS_IS UINT32_C(0x80000000)

struct tnd_codec_context {
    ZSTD_DCtx *decoder;
    ZSTD_CCtx *encoder; /* NULL if opened for decoding only */
};

tundish_status
tnd_codec_context_open(int for_encoding, struct tnd_codec_context **ret_context)
{
    struct tnd_codec_context *context = calloc(1, sizeof *context);

    if (context != NULL) {
        context->decoder = ZSTD_createDCtx();
        if (for_encoding)
            context->encoder = ZSTD_createCCtx();
    }
    if (context == NULL || context->decoder == NULL || (for_encoding && context->encoder == NULL)) {
        tnd_codec_context_close(context);
        return tnd_fail(TUNDISH_E_MEMORY, "no memory for a zstd context");
    }
    *ret_context = context;
    return TUNDISH_OK;
}

void
tnd_codec_context_close(struct tnd_codec_context *context)
{
    if (context == NULL)
        return;
    ZSTD_freeDCtx(context->decoder);
    ZSTD_freeCCtx(context->encoder);
    free(context);
}

static bool
zstd_is_sound(const struct tnd_codec *codec)
{
    return codec->width >= 16 && codec->width <= 20 && codec->value_bytes == 0 && codec->base == 0;
}

static uint64_t
chunk_count(const struct tnd_codec *codec, uint64_t bytes)
{
    return (bytes + (UINT64_C(1) << codec->width) - 1) >> codec->width;
}

static uint64_t
zstd_bound(const struct tnd_codec *codec, uint64_t bytes)
{
    return chunk_count(codec, bytes) * sizeof(uint32_t) + bytes;
}

static uint64_t
chunk_bytes(const struct tnd_codec *codec, uint64_t bytes, uint64_t chunk)
{
    uint64_t whole = UINT64_C(1) << codec->width;
    uint64_t left = bytes - chunk * whole;

    return left < whole ? left : whole;
}

static tundish_status
zstd_encode(const struct tnd_codec *codec, const uint8_t *in, uint64_t bytes, uint8_t *out,
            struct tnd_codec_context *context, uint64_t *ret_stored_bytes)
{
    const uint64_t chunks = chunk_count(codec, bytes);
    uint8_t *to = out + chunks * sizeof(uint32_t);

    if (context == NULL || context->encoder == NULL)
        return tnd_fail(TUNDISH_E_ARGUMENT, "codec zstd needs a context opened for encoding");
    (void)ZSTD_CCtx_setParameter(context->encoder, ZSTD_c_compressionLevel, codec->level);
    for (uint64_t i = 0; i < chunks; i++) {
        const size_t whole = chunk_bytes(codec, bytes, i);
        /* One byte less than the chunk, so that zstd gives up where it would gain nothing. */
        size_t stored = ZSTD_compress2(context->encoder, to, whole - 1, in, whole);
        uint32_t size = (uint32_t)stored;

        if (ZSTD_isError(stored)) {
            memcpy(to, in, whole);
            stored = whole;
            size = (uint32_t)whole | AS_IS;
        }
        memcpy(out + i * sizeof size, &size, sizeof size);
        in += whole;
        to += stored;
    }
    *ret_stored_bytes = (uint64_t)(to - out);
    return TUNDISH_OK;
}

/* Each size is read once: it may lie in memory that the server can still write, and a second read
 * could differ from the checked one. */
static tundish_status
zstd_decode(const struct tnd_codec *codec, const uint8_t *stored, uint64_t stored_bytes,
            uint8_t *out, uint64_t out_bytes, struct tnd_codec_context *context)
{
    const uint64_t chunks = chunk_count(codec, out_bytes);
    uint64_t at = chunks * sizeof(uint32_t);

    if (context == NULL)
        return tnd_fail(TUNDISH_E_ARGUMENT, "codec zstd needs a context");
    if (at > stored_bytes)
        return codec_refuse_stored(&codec_zstd, stored_bytes, out_bytes);
    for (uint64_t i = 0; i < chunks; i++) {
        const uint32_t size = load_u32(stored + i * sizeof size);
        const uint64_t bytes = size & ~AS_IS;
        const uint64_t whole = chunk_bytes(codec, out_bytes, i);

        if (bytes > stored_bytes - at)
            return codec_refuse_stored(&codec_zstd, stored_bytes, out_bytes);
        if (size & AS_IS) {
            if (bytes != whole)
                return codec_refuse_stored(&codec_zstd, stored_bytes, out_bytes);
            memcpy(out, stored + at, whole);
        } else if (ZSTD_decompressDCtx(context->decoder, out, whole, stored + at, bytes) != whole) {
            return codec_refuse_stored(&codec_zstd, stored_bytes, out_bytes);
        }
        at += bytes;
        out += whole;
    }
    return at == stored_bytes ? TUNDISH_OK
                              : codec_refuse_stored(&codec_zstd, stored_bytes, out_bytes);
}

const struct codec_ops codec_zstd = {
    .number = TND_CODEC_ZSTD,
    .name = "zstd",
    .is_sound = zstd_is_sound,
    .bound = zstd_bound,
    .encode = zstd_encode,
    .decode = zstd_decode,
};
