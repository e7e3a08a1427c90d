/* codec_narrow.c - integers in fewer bytes each.
 *
 * The loops are plain; the compiler makes vectors of them, once for each kind of machine.
 */
#include "core/codec_ops.h"

#include "core/cpu.h"

static bool
narrow_is_sound(const struct tnd_codec *codec)
{
    return (codec->value_bytes == 4 || codec->value_bytes == 8) &&
           (codec->width == 1 || codec->width == 2 || codec->width == 4) &&
           codec->width < codec->value_bytes && codec->level == 0;
}

static uint64_t
narrow_bound(const struct tnd_codec *codec, uint64_t bytes)
{
    return bytes / codec->value_bytes * codec->width;
}

/* One loop for each pair of widths. Narrowing returns all bits that any difference has, so that
 * one comparison at the end tells whether all fitted. */
#define LOOPS(wide, narrow)                                                                        \
    CODEC_INLINE uint64_t narrow_##wide##_##narrow(const uint8_t *in, uint64_t count,              \
                                                   uint64_t base, uint8_t *out)                    \
    {                                                                                              \
        const codec_##wide *from = (const codec_##wide *)(const void *)in;                         \
        codec_##narrow *to = (codec_##narrow *)(void *)out;                                        \
        codec_##wide bits = 0;                                                                     \
                                                                                                   \
        for (uint64_t i = 0; i < count; i++) {                                                     \
            codec_##wide difference = from[i] - (codec_##wide)base;                                \
                                                                                                   \
            bits |= difference;                                                                    \
            to[i] = (codec_##narrow)difference;                                                    \
        }                                                                                          \
        return bits;                                                                               \
    }                                                                                              \
    CODEC_INLINE void widen_##wide##_##narrow(const uint8_t *in, uint64_t count, uint64_t base,    \
                                              uint8_t *out)                                        \
    {                                                                                              \
        const codec_##narrow *from = (const codec_##narrow *)(const void *)in;                     \
        codec_##wide *to = (codec_##wide *)(void *)out;                                            \
                                                                                                   \
        for (uint64_t i = 0; i < count; i++)                                                       \
            to[i] = (codec_##wide)from[i] + (codec_##wide)base;                                    \
    }

LOOPS(u64, u8)
LOOPS(u64, u16)
LOOPS(u64, u32)
LOOPS(u32, u8)
LOOPS(u32, u16)

#define PAIR(value_bytes, width) ((value_bytes) << 4 | (width))

/* Inlined into one function for each kind of machine, which the compiler turns into vectors. */
CODEC_INLINE uint64_t
narrow(const struct tnd_codec *codec, const uint8_t *in, uint64_t count, uint8_t *out)
{
    const uint64_t base = (uint64_t)codec->base;

    switch (PAIR(codec->value_bytes, codec->width)) {
    case PAIR(8, 1):
        return narrow_u64_u8(in, count, base, out);
    case PAIR(8, 2):
        return narrow_u64_u16(in, count, base, out);
    case PAIR(8, 4):
        return narrow_u64_u32(in, count, base, out);
    case PAIR(4, 1):
        return narrow_u32_u8(in, count, base, out);
    default:
        return narrow_u32_u16(in, count, base, out);
    }
}

CODEC_INLINE void
widen(const struct tnd_codec *codec, const uint8_t *in, uint64_t count, uint8_t *out)
{
    const uint64_t base = (uint64_t)codec->base;

    switch (PAIR(codec->value_bytes, codec->width)) {
    case PAIR(8, 1):
        widen_u64_u8(in, count, base, out);
        break;
    case PAIR(8, 2):
        widen_u64_u16(in, count, base, out);
        break;
    case PAIR(8, 4):
        widen_u64_u32(in, count, base, out);
        break;
    case PAIR(4, 1):
        widen_u32_u8(in, count, base, out);
        break;
    default:
        widen_u32_u16(in, count, base, out);
        break;
    }
}

#ifdef __x86_64__
#define AVX2 __attribute__((target("avx2")))
#define AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq")))

AVX2 static uint64_t
narrow_avx2(const struct tnd_codec *codec, const uint8_t *in, uint64_t count, uint8_t *out)
{
    return narrow(codec, in, count, out);
}

AVX512 static uint64_t
narrow_avx512(const struct tnd_codec *codec, const uint8_t *in, uint64_t count, uint8_t *out)
{
    return narrow(codec, in, count, out);
}

AVX2 static void
widen_avx2(const struct tnd_codec *codec, const uint8_t *in, uint64_t count, uint8_t *out)
{
    widen(codec, in, count, out);
}

AVX512 static void
widen_avx512(const struct tnd_codec *codec, const uint8_t *in, uint64_t count, uint8_t *out)
{
    widen(codec, in, count, out);
}
#endif

static uint64_t
narrow_best(const struct tnd_codec *codec, const uint8_t *in, uint64_t count, uint8_t *out)
{
#ifdef __x86_64__
    if (tnd_cpu_has(TND_CPU_AVX512))
        return narrow_avx512(codec, in, count, out);
    if (tnd_cpu_has(TND_CPU_AVX2))
        return narrow_avx2(codec, in, count, out);
#endif
    return narrow(codec, in, count, out);
}

static tundish_status
narrow_encode(const struct tnd_codec *codec, const uint8_t *in, uint64_t bytes, uint8_t *out,
              struct tnd_codec_context *context, uint64_t *ret_stored_bytes)
{
    (void)context;
    /* A value below the base has its highest bits set in the difference, so it is found as well. */
    if (narrow_best(codec, in, bytes / codec->value_bytes, out) >> (codec->width * 8) != 0)
        return codec_refuse_value(&codec_narrow, codec);
    *ret_stored_bytes = narrow_bound(codec, bytes);
    return TUNDISH_OK;
}

static tundish_status
narrow_decode(const struct tnd_codec *codec, const uint8_t *stored, uint64_t stored_bytes,
              uint8_t *out, uint64_t out_bytes, struct tnd_codec_context *context)
{
    const uint64_t count = out_bytes / codec->value_bytes;

    (void)context;
    if (stored_bytes != narrow_bound(codec, out_bytes))
        return codec_refuse_stored(&codec_narrow, stored_bytes, out_bytes);
#ifdef __x86_64__
    if (tnd_cpu_has(TND_CPU_AVX512))
        widen_avx512(codec, stored, count, out);
    else if (tnd_cpu_has(TND_CPU_AVX2))
        widen_avx2(codec, stored, count, out);
    else
#endif
        widen(codec, stored, count, out);
    return TUNDISH_OK;
}

const struct codec_ops codec_narrow = {
    .number = TND_CODEC_NARROW,
    .name = "narrow",
    .is_sound = narrow_is_sound,
    .bound = narrow_bound,
    .encode = narrow_encode,
    .decode = narrow_decode,
};
