/* codec_bitpack.c - integers in as few bits as their range needs.
 *
 * Value i is bits i * width .. (i + 1) * width - 1 of the stored bytes, least significant first,
 * without a gap; what the last byte has left is 0. So eight values take exactly `width` bytes, and
 * everything goes by groups of eight: a group begins on a byte, wherever it lies.
 */
#include "core/codec_ops.h"

#include <string.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

#include "core/bytes.h"
#include "core/cpu.h"

#define MAX_WIDTH 32
#define GROUP 8
#define GROUP_BYTES (GROUP * 8) /* of the widest values */
#define PACK_WRITES 16          /* bytes beyond a group that packing it may write */

static bool
bitpack_is_sound(const struct tnd_codec *codec)
{
    return (codec->value_bytes == 4 || codec->value_bytes == 8) && codec->width <= MAX_WIDTH &&
           codec->level == 0;
}

static uint64_t
bitpack_bound(const struct tnd_codec *codec, uint64_t bytes)
{
    return (bytes / codec->value_bytes * codec->width + 7) / 8;
}

CODEC_INLINE uint64_t
load_value(const uint8_t *from, unsigned value_bytes)
{
    return value_bytes == 8 ? load_u64(from) : load_u32(from);
}

CODEC_INLINE void
store_value(uint8_t *to, unsigned value_bytes, uint64_t value)
{
    if (value_bytes == 8)
        *(codec_u64 *)(void *)to = value;
    else
        *(codec_u32 *)(void *)to = (uint32_t)value;
}

__extension__ typedef unsigned __int128 half_group;

CODEC_INLINE uint64_t
difference(const uint8_t *in, unsigned value_bytes, unsigned i, uint64_t base)
{
    uint64_t value = load_value(in + i * value_bytes, value_bytes) - base;

    return value_bytes == 8 ? value : (uint32_t)value;
}

/* Four values, 4 * width bits. */
CODEC_INLINE half_group
pack_half(const uint64_t *differences, unsigned width)
{
    const uint64_t mask = (UINT64_C(1) << width) - 1;
    const uint64_t lower = (differences[0] & mask) | (differences[1] & mask) << width;
    const uint64_t upper = (differences[2] & mask) | (differences[3] & mask) << width;

    return lower | (half_group)upper << (2 * width);
}

CODEC_INLINE void
store_half(uint8_t *to, half_group half)
{
    *(codec_u64 *)(void *)to = (uint64_t)half;
    *(codec_u64 *)(void *)(to + 8) = (uint64_t)(half >> 64);
}

/* One group, as two halves: the upper one begins at byte width / 2, or in the middle of it, where
 * the lower one's last bits are. Up to 16 bytes beyond the group's own are written. Returns all
 * bits that any difference has. */
CODEC_INLINE uint64_t
pack_group(const uint8_t *in, unsigned value_bytes, uint64_t base, unsigned width, uint8_t *out)
{
    uint64_t differences[GROUP];
    uint64_t bits = 0;
    half_group lower, upper;

    for (unsigned i = 0; i < GROUP; i++) {
        differences[i] = difference(in, value_bytes, i, base);
        bits |= differences[i];
    }
    lower = pack_half(differences, width);
    upper = pack_half(differences + 4, width);
    if (width % 2 != 0)
        upper = upper << 4 | lower >> (width / 2 * 8);
    store_half(out, lower);
    store_half(out + width / 2, upper);
    return bits;
}

CODEC_INLINE uint64_t
pack_groups(const uint8_t *in, uint64_t groups, unsigned value_bytes, uint64_t base, unsigned width,
            uint8_t *out)
{
    uint64_t bits = 0;

    for (uint64_t i = 0; i < groups; i++)
        bits |= pack_group(in + i * GROUP * value_bytes, value_bytes, base, width, out + i * width);
    return bits;
}

static uint64_t
pack(const struct tnd_codec *codec, const uint8_t *in, uint64_t groups, uint8_t *out)
{
    const uint64_t base = (uint64_t)codec->base;

    return codec->value_bytes == 8 ? pack_groups(in, groups, 8, base, codec->width, out)
                                   : pack_groups(in, groups, 4, base, codec->width, out);
}

/* Groups from the first one that may not write beyond itself go through a buffer; the last may
 * have fewer than eight values, which are filled up with `base`. */
static uint64_t
pack_carefully(const struct tnd_codec *codec, const uint8_t *in, uint64_t count, uint8_t *out)
{
    const unsigned value_bytes = codec->value_bytes;
    uint64_t bits = 0;

    while (count > 0) {
        const uint64_t values = count < GROUP ? count : GROUP;
        uint8_t group[GROUP_BYTES];
        uint8_t packed[MAX_WIDTH + PACK_WRITES];

        for (unsigned i = 0; i < GROUP; i++)
            store_value(group + i * value_bytes, value_bytes, (uint64_t)codec->base);
        memcpy(group, in, values * value_bytes);
        bits |= pack(codec, group, 1, packed);
        memcpy(out, packed, (values * codec->width + 7) / 8);
        in += values * value_bytes;
        out += codec->width;
        count -= values;
    }
    return bits;
}

static tundish_status
bitpack_encode(const struct tnd_codec *codec, const uint8_t *in, uint64_t bytes, uint8_t *out,
               struct tnd_codec_context *context, uint64_t *ret_stored_bytes)
{
    const uint64_t count = bytes / codec->value_bytes;
    const uint64_t stored_bytes = bitpack_bound(codec, bytes);
    const uint64_t fast_bytes = stored_bytes < PACK_WRITES ? 0 : stored_bytes - PACK_WRITES;
    const uint64_t groups = codec->width == 0 ? 0 : fast_bytes / codec->width;
    uint64_t bits = 0;

    (void)context;
    bits = pack(codec, in, groups, out);
    bits |= pack_carefully(codec, in + groups * GROUP * codec->value_bytes, count - groups * GROUP,
                           out + groups * codec->width);
    if (bits >> codec->width != 0)
        return codec_refuse_value(&codec_bitpack, codec);
    *ret_stored_bytes = stored_bytes;
    return TUNDISH_OK;
}

/* `from` has at least 8 bytes from each value's first byte on. */
CODEC_INLINE void
unpack_values(const uint8_t *from, uint64_t count, unsigned value_bytes, uint64_t base,
              unsigned width, uint8_t *out)
{
    const uint64_t mask = (UINT64_C(1) << width) - 1;
    uint64_t bit = 0;

    for (uint64_t i = 0; i < count; i++, bit += width)
        store_value(out + i * value_bytes, value_bytes,
                    ((load_u64(from + bit / 8) >> bit % 8) & mask) + base);
}

/* Groups of which the last's values have 8 readable bytes from their first byte on. */
static void
unpack_groups(const struct tnd_codec *codec, const uint8_t *from, uint64_t groups, uint8_t *out)
{
    const uint64_t base = (uint64_t)codec->base;

    for (uint64_t i = 0; i < groups; i++)
        if (codec->value_bytes == 8)
            unpack_values(from + i * codec->width, GROUP, 8, base, codec->width,
                          out + i * GROUP * 8);
        else
            unpack_values(from + i * codec->width, GROUP, 4, base, codec->width,
                          out + i * GROUP * 4);
}

#ifdef __x86_64__
#define AVX2 __attribute__((target("avx2")))

#define AVX2_MAX_WIDTH 25 /* a value and the 7 bits before it lie in 4 bytes */
#define AVX2_READS 28     /* the upper half's load ends so far from the group's start at most */

/* How to make eight 32-bit lanes, one for each value of a group: the lower four from 16 bytes at
 * the group's start, the upper four from 16 bytes at byte width / 2. */
struct spread {
    __m256i bytes, shifts, mask;
};

AVX2 static struct spread
spread_of(unsigned width)
{
    uint8_t bytes[32];
    uint32_t shifts[8];

    for (unsigned i = 0; i < GROUP; i++) {
        unsigned bit = i < 4 ? i * width : i * width - width / 2 * 8;

        for (unsigned j = 0; j < 4; j++)
            bytes[i * 4 + j] = (uint8_t)(bit / 8 + j);
        shifts[i] = bit % 8;
    }
    return (struct spread){
        _mm256_loadu_si256((const __m256i *)(const void *)bytes),
        _mm256_loadu_si256((const __m256i *)(const void *)shifts),
        _mm256_set1_epi32((int)((UINT32_C(1) << width) - 1)),
    };
}

AVX2 CODEC_INLINE __m256i
spread_group(const struct spread *spread, const uint8_t *from, unsigned width)
{
    const __m128i lower = _mm_loadu_si128((const __m128i *)(const void *)from);
    const __m128i upper = _mm_loadu_si128((const __m128i *)(const void *)(from + width / 2));
    const __m256i both = _mm256_inserti128_si256(_mm256_castsi128_si256(lower), upper, 1);
    const __m256i windows = _mm256_shuffle_epi8(both, spread->bytes);

    return _mm256_and_si256(_mm256_srlv_epi32(windows, spread->shifts), spread->mask);
}

AVX2 CODEC_INLINE void
store_256(uint8_t *to, __m256i values)
{
    _mm256_storeu_si256((__m256i *)(void *)to, values);
}

AVX2 static void
unpack_avx2(const struct tnd_codec *codec, const uint8_t *from, uint64_t groups, uint8_t *out)
{
    const unsigned width = codec->width;
    const struct spread spread = spread_of(width);

    if (codec->value_bytes == 4) {
        const __m256i base = _mm256_set1_epi32((int)(uint32_t)(uint64_t)codec->base);

        for (uint64_t i = 0; i < groups; i++)
            store_256(out + i * 32,
                      _mm256_add_epi32(spread_group(&spread, from + i * width, width), base));
    } else {
        const __m256i base = _mm256_set1_epi64x(codec->base);

        for (uint64_t i = 0; i < groups; i++) {
            const __m256i values = spread_group(&spread, from + i * width, width);
            const __m256i lower = _mm256_cvtepu32_epi64(_mm256_castsi256_si128(values));
            const __m256i upper = _mm256_cvtepu32_epi64(_mm256_extracti128_si256(values, 1));

            store_256(out + i * 64, _mm256_add_epi64(lower, base));
            store_256(out + i * 64 + 32, _mm256_add_epi64(upper, base));
        }
    }
}
#endif

/* Groups, from the first on, that may be read `reads` bytes far from their starts. */
static uint64_t
groups_within(uint64_t count, uint64_t stored_bytes, unsigned width, unsigned reads)
{
    const uint64_t whole = count / GROUP;
    uint64_t readable;

    if (stored_bytes < reads)
        return 0;
    readable = (stored_bytes - reads) / width + 1;
    return readable < whole ? readable : whole;
}

static void
unpack_carefully(const struct tnd_codec *codec, const uint8_t *from, uint64_t count, uint8_t *out)
{
    while (count > 0) {
        const uint64_t values = count < GROUP ? count : GROUP;
        uint8_t packed[MAX_WIDTH + 8] = { 0 };
        uint8_t group[GROUP_BYTES];

        memcpy(packed, from, (values * codec->width + 7) / 8);
        unpack_groups(codec, packed, 1, group);
        memcpy(out, group, values * codec->value_bytes);
        from += codec->width;
        out += values * codec->value_bytes;
        count -= values;
    }
}

/* Width 0: nothing is stored, every value is the base. */
static tundish_status
fill(const struct tnd_codec *codec, uint8_t *out, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        store_value(out + i * codec->value_bytes, codec->value_bytes, (uint64_t)codec->base);
    return TUNDISH_OK;
}

static tundish_status
bitpack_decode(const struct tnd_codec *codec, const uint8_t *stored, uint64_t stored_bytes,
               uint8_t *out, uint64_t out_bytes, struct tnd_codec_context *context)
{
    const uint64_t count = out_bytes / codec->value_bytes;
    uint64_t groups;

    (void)context;
    if (codec->width == 0 && stored_bytes == 0)
        return fill(codec, out, count);
    if (stored_bytes != bitpack_bound(codec, out_bytes))
        return codec_refuse_stored(&codec_bitpack, stored_bytes, out_bytes);
#ifdef __x86_64__
    if (codec->width <= AVX2_MAX_WIDTH && tnd_cpu_has(TND_CPU_AVX2)) {
        groups = groups_within(count, stored_bytes, codec->width, AVX2_READS);
        unpack_avx2(codec, stored, groups, out);
    } else
#endif
    {
        groups = groups_within(count, stored_bytes, codec->width, MAX_WIDTH + 8);
        unpack_groups(codec, stored, groups, out);
    }
    unpack_carefully(codec, stored + groups * codec->width, count - groups * GROUP,
                     out + groups * GROUP * codec->value_bytes);
    return TUNDISH_OK;
}

const struct codec_ops codec_bitpack = {
    .number = TND_CODEC_BITPACK,
    .name = "bitpack",
    .is_sound = bitpack_is_sound,
    .bound = bitpack_bound,
    .encode = bitpack_encode,
    .decode = bitpack_decode,
};
