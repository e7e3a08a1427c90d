/* codec.c - the table of codecs, and the checks that are alike for all. */
#include "core/codec.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "core/codec_ops.h"
#include "core/status.h"

/* Products of a length and a width in bits stay below 2^64. */
#define MAX_COLUMN_BYTES (UINT64_C(1) << 56)

static const struct codec_ops *const all[] = { &codec_raw, &codec_narrow, &codec_bitpack,
                                               &codec_zstd };

static const struct codec_ops *
find(uint8_t number)
{
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i]->number == number)
            return all[i];
    return NULL;
}

const char *
tnd_codec_name(const struct tnd_codec *codec)
{
    const struct codec_ops *ops = find(codec->number);

    return ops != NULL ? ops->name : "?";
}

tundish_status
codec_refuse_stored(const struct codec_ops *ops, uint64_t stored_bytes, uint64_t out_bytes)
{
    return tnd_fail(TUNDISH_E_CORRUPT,
                    "%" PRIu64 " bytes stored with codec %s are not a column of %" PRIu64 " bytes",
                    stored_bytes, ops->name, out_bytes);
}

tundish_status
codec_refuse_value(const struct codec_ops *ops, const struct tnd_codec *codec)
{
    return tnd_fail(TUNDISH_E_DATA,
                    "a value lies outside of what codec %s with base %" PRId64
                    " and width %u holds",
                    ops->name, codec->base, codec->width);
}

static tundish_status
check(const struct tnd_codec *codec, uint64_t bytes, const struct codec_ops **ret_ops)
{
    const struct codec_ops *ops = find(codec->number);

    if (ops == NULL)
        return tnd_fail(TUNDISH_E_LAYOUT,
                        "a column is stored with codec %u, which this library does not know; "
                        "install the server's version",
                        codec->number);
    if (codec->reserved != 0 || !ops->is_sound(codec))
        return tnd_fail(TUNDISH_E_ARGUMENT, "codec %s cannot have width %u for values of %u bytes",
                        ops->name, codec->width, codec->value_bytes);
    /* Sizes come from shared memory when a trainer decodes, so nothing is computed from them before
     * this check. */
    if (bytes >= MAX_COLUMN_BYTES || (codec->value_bytes != 0 && bytes % codec->value_bytes != 0))
        return tnd_fail(TUNDISH_E_ARGUMENT,
                        "codec %s cannot hold %" PRIu64 " bytes in values of %u bytes", ops->name,
                        bytes, codec->value_bytes);
    *ret_ops = ops;
    return TUNDISH_OK;
}

tundish_status
tnd_codec_bound(const struct tnd_codec *codec, uint64_t bytes, uint64_t *ret_stored_bytes)
{
    const struct codec_ops *ops = NULL;
    tundish_status status = check(codec, bytes, &ops);

    if (status == TUNDISH_OK)
        *ret_stored_bytes = ops->bound(codec, bytes);
    return status;
}

tundish_status
tnd_codec_encode(const struct tnd_codec *codec, const void *in, uint64_t bytes, void *out,
                 uint64_t out_bytes, struct tnd_codec_context *context, uint64_t *ret_stored_bytes)
{
    const struct codec_ops *ops = NULL;
    tundish_status status = check(codec, bytes, &ops);

    if (status != TUNDISH_OK)
        return status;
    if (out_bytes < ops->bound(codec, bytes))
        return tnd_fail(TUNDISH_E_ARGUMENT,
                        "codec %s may need %" PRIu64 " bytes for %" PRIu64 ", not %" PRIu64,
                        ops->name, ops->bound(codec, bytes), bytes, out_bytes);
    return ops->encode(codec, in, bytes, out, context, ret_stored_bytes);
}

tundish_status
tnd_codec_decode(const struct tnd_codec *codec, const void *stored, uint64_t stored_bytes,
                 void *out, uint64_t out_bytes, struct tnd_codec_context *context)
{
    const struct tnd_codec copy = *codec; /* the original may lie in shared memory and change */
    const struct codec_ops *ops = NULL;
    tundish_status status = check(&copy, out_bytes, &ops);

    if (status == TUNDISH_E_ARGUMENT) /* not the program's doing */
        return TUNDISH_E_CORRUPT;
    if (status != TUNDISH_OK)
        return status;
    /* No encoder writes more, so these bytes are damaged. */
    if (stored_bytes > ops->bound(&copy, out_bytes))
        return codec_refuse_stored(ops, stored_bytes, out_bytes);
    return ops->decode(&copy, stored, stored_bytes, out, out_bytes, context);
}

struct tnd_codec
tnd_codec_for_range(uint8_t value_bytes, int64_t first, int64_t last)
{
    const struct tnd_codec as_is = { .number = TND_CODEC_RAW };
    /* Without sign: the difference of the least and the greatest int64 is 2^64 - 1. */
    const uint64_t range = (uint64_t)last - (uint64_t)first;
    const uint8_t bits = range == 0 ? 0 : (uint8_t)(64 - __builtin_clzll(range));
    const uint8_t bytes = bits <= 8 ? 1 : bits <= 16 ? 2 : 4;
    struct tnd_codec codec = { .value_bytes = value_bytes, .base = first };

    if (first > last || (value_bytes != 4 && value_bytes != 8) || bits > 32)
        return as_is;
    if (bits * 5 >= bytes * 8 * 4) { /* packing would save less than a fifth */
        codec.number = TND_CODEC_NARROW;
        codec.width = bytes;
        return bytes < value_bytes ? codec : as_is;
    }
    codec.number = TND_CODEC_BITPACK;
    codec.width = bits;
    return codec;
}

static bool
raw_is_sound(const struct tnd_codec *codec)
{
    return codec->value_bytes == 0 && codec->width == 0 && codec->level == 0 && codec->base == 0;
}

static uint64_t
raw_bound(const struct tnd_codec *codec, uint64_t bytes)
{
    (void)codec;
    return bytes;
}

static tundish_status
raw_encode(const struct tnd_codec *codec, const uint8_t *in, uint64_t bytes, uint8_t *out,
           struct tnd_codec_context *context, uint64_t *ret_stored_bytes)
{
    (void)codec;
    (void)context;
    if (bytes > 0)
        memcpy(out, in, bytes);
    *ret_stored_bytes = bytes;
    return TUNDISH_OK;
}

static tundish_status
raw_decode(const struct tnd_codec *codec, const uint8_t *stored, uint64_t stored_bytes,
           uint8_t *out, uint64_t out_bytes, struct tnd_codec_context *context)
{
    (void)codec;
    (void)context;
    if (stored_bytes != out_bytes)
        return codec_refuse_stored(&codec_raw, stored_bytes, out_bytes);
    if (out_bytes > 0)
        memcpy(out, stored, out_bytes);
    return TUNDISH_OK;
}

const struct codec_ops codec_raw = {
    .number = TND_CODEC_RAW,
    .name = "raw",
    .is_sound = raw_is_sound,
    .bound = raw_bound,
    .encode = raw_encode,
    .decode = raw_decode,
};
