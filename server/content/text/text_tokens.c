/* text_tokens.c - tokenize 64 bytes at a time, by masks of white space and punctuation. */
#include "content/text/text_tokens.h"

#include <string.h>

#include "content/text/texts.h"
#include "core/cpu.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* A block of 64 bytes: where it has white space and punctuation. */
struct text_masks {
    uint64_t white, punctuation;
};

enum { BLOCK = 64, SLACK = 2 * BLOCK };

static inline bool
is_punctuation(uint8_t byte)
{
    return (byte >= '!' && byte <= '/') || (byte >= ':' && byte <= '@') ||
           (byte >= '[' && byte <= '`') || (byte >= '{' && byte <= '~');
}

void
text_tokens_clear(struct text_tokens *tokens, uint64_t bytes, int64_t texts)
{
    int64_t most = (int64_t)bytes + texts; /* at most a token a byte, or one for an empty text */

    tokens->count = 0;
    tokens->used = 0;
    if (tokens->bytes_capacity < bytes + SLACK) {
        tokens->bytes_capacity = 2 * bytes + SLACK;
        tokens->bytes = scratch_alloc(tokens->scratch, tokens->bytes_capacity);
    }
    if (tokens->capacity < most) {
        tokens->capacity = 2 * most;
        tokens->views = scratch_array(tokens->scratch, 2 * (size_t)most, sizeof *tokens->views);
    }
}

/* The state of writing one standardized text. */
struct writing {
    struct text_tokens *tokens;
    uint8_t *to;    /* where the next byte goes */
    uint8_t *begin; /* of the token that is being written */
    int64_t left;   /* tokens still wanted */
};

static inline void
end_token(struct writing *writing, uint8_t *end)
{
    struct text_tokens *tokens = writing->tokens;

    if (end > writing->begin && writing->left > 0) {
        tokens->views[tokens->count++] =
            (struct byte_view){ writing->begin, (uint64_t)(end - writing->begin) };
        writing->left--;
    }
    writing->begin = end + 1;
}

/* Write bytes [first, last) of a standardized block, with its white space as marked. The copy
 * always moves BLOCK bytes, so `block` has that many readable bytes after `first`, and the output
 * has slack. */
static inline __attribute__((always_inline)) void
write_run(struct writing *writing, const uint8_t *block, uint64_t white, unsigned first,
          unsigned last)
{
    memcpy(writing->to, block + first, BLOCK);
    if (last - first < 64)
        white = white >> first & ((UINT64_C(1) << (last - first)) - 1);
    for (; white != 0; white &= white - 1)
        end_token(writing, writing->to + __builtin_ctzll(white));
    writing->to += last - first;
}

/* One body for every instruction set. `look` standardizes a block into a buffer and marks its white
 * space and punctuation. Keras removes [!-/:-@\[-`{-~], and RE2's \s splits. */
#define DEFINE_TOKENIZE(name, attributes, look)                                                    \
    attributes static void white_##name(const struct text_rules *rules, struct byte_view text,     \
                                        struct writing *writing)                                   \
    {                                                                                              \
        uint8_t block[2 * BLOCK] = { 0 };                                                          \
                                                                                                   \
        for (uint64_t at = 0; at < text.size && writing->left > 0; at += BLOCK) {                  \
            unsigned end = text.size - at < BLOCK ? (unsigned)(text.size - at) : BLOCK;            \
            struct text_masks masks = look(rules, text.data + at, block);                          \
            unsigned first = 0;                                                                    \
                                                                                                   \
            if (end < BLOCK)                                                                       \
                masks.punctuation &= (UINT64_C(1) << end) - 1;                                     \
            if (!rules->strip)                                                                     \
                masks.punctuation = 0;                                                             \
            if (rules->split != SPLIT_WHITESPACE)                                                  \
                masks.white = 0;                                                                   \
            for (; masks.punctuation != 0; masks.punctuation &= masks.punctuation - 1) {           \
                unsigned next = (unsigned)__builtin_ctzll(masks.punctuation);                      \
                                                                                                   \
                write_run(writing, block, masks.white, first, next);                               \
                first = next + 1;                                                                  \
            }                                                                                      \
            if (first < end)                                                                       \
                write_run(writing, block, masks.white, first, end);                                \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    static void name(const struct text_rules *rules, struct byte_view text,                        \
                     struct text_tokens *tokens)                                                   \
    {                                                                                              \
        tokenize(rules, text, tokens, white_##name);                                               \
    }

/* The length of the well-formed UTF-8 character at `at`, or 0. Then *ret_bad is the length of the
 * ill-formed part, which one U+FFFD replaces (Unicode's maximal subpart). */
static uint64_t
character_bytes(const uint8_t *at, const uint8_t *end, uint64_t *ret_bad)
{
    uint8_t lead = *at;
    uint8_t low = 0x80, high = 0xbf;
    uint64_t bytes = lead < 0x80                    ? 1
                     : lead >= 0xc2 && lead <= 0xdf ? 2
                     : lead >= 0xe0 && lead <= 0xef ? 3
                     : lead >= 0xf0 && lead <= 0xf4 ? 4
                                                    : 0;

    *ret_bad = 1;
    if (bytes == 0)
        return 0;
    if (lead == 0xe0)
        low = 0xa0;
    if (lead == 0xed)
        high = 0x9f;
    if (lead == 0xf0)
        low = 0x90;
    if (lead == 0xf4)
        high = 0x8f;
    for (uint64_t i = 1; i < bytes; i++, low = 0x80, high = 0xbf) {
        if (at + i >= end || at[i] < low || at[i] > high) {
            *ret_bad = i;
            return 0;
        }
    }
    return bytes;
}

/* Make every character a token, and U+FFFD of each ill-formed part, as unicode_split does. */
static void
split_characters(struct writing *writing, const uint8_t *at, const uint8_t *end)
{
    static const uint8_t replacement[] = { 0xef, 0xbf, 0xbd };
    struct text_tokens *tokens = writing->tokens;

    while (at < end && writing->left > 0) {
        uint64_t bad;
        uint64_t bytes = character_bytes(at, end, &bad);

        tokens->views[tokens->count++] =
            bytes > 0 ? (struct byte_view){ at, bytes } : (struct byte_view){ replacement, 3 };
        at += bytes > 0 ? bytes : bad;
        writing->left--;
    }
}

static void
tokenize(const struct text_rules *rules, struct byte_view text, struct text_tokens *tokens,
         void (*standardize)(const struct text_rules *rules, struct byte_view text,
                             struct writing *writing))
{
    uint8_t *begin = tokens->bytes + tokens->used;
    struct writing writing = { tokens, begin, begin, rules->most < 0 ? INT64_MAX : rules->most };

    standardize(rules, text, &writing);
    tokens->used = (uint64_t)(writing.to - tokens->bytes);
    if (rules->split == SPLIT_WHITESPACE)
        end_token(&writing, writing.to);
    else if (rules->split == SPLIT_CHARACTER)
        split_characters(&writing, begin, writing.to);
    else if (writing.left > 0)
        tokens->views[tokens->count++] =
            (struct byte_view){ begin, (uint64_t)(writing.to - begin) };
}

static inline struct text_masks
look_portable(const struct text_rules *rules, const uint8_t *from, uint8_t *block)
{
    struct text_masks masks = { 0, 0 };

    for (unsigned i = 0; i < BLOCK; i++) {
        uint8_t byte = from[i];

        masks.white |= (uint64_t)text_is_blank(byte) << i;
        masks.punctuation |= (uint64_t)is_punctuation(byte) << i;
        block[i] = rules->lower && byte >= 'A' && byte <= 'Z' ? byte | 0x20 : byte;
    }
    return masks;
}

DEFINE_TOKENIZE(tokenize_portable, , look_portable)

#if defined(__x86_64__)
#define AVX2 __attribute__((target("avx2,bmi")))
#define AVX512 __attribute__((target("avx512bw,avx512f,bmi")))

/* Bytes in [low, high], compared without sign: AVX2 only has signed comparisons, but an unsigned
 * minimum. */
AVX2 static inline __m256i
between_avx2(__m256i bytes, uint8_t low, uint8_t high)
{
    __m256i shifted = _mm256_sub_epi8(bytes, _mm256_set1_epi8((char)low));
    __m256i span = _mm256_set1_epi8((char)(high - low));

    return _mm256_cmpeq_epi8(_mm256_min_epu8(shifted, span), shifted);
}

AVX2 static inline struct text_masks
look_half_avx2(const struct text_rules *rules, const uint8_t *from, uint8_t *block)
{
    __m256i bytes = _mm256_loadu_si256((const void *)from);
    __m256i white = _mm256_or_si256(_mm256_cmpeq_epi8(bytes, _mm256_set1_epi8(' ')),
                                    between_avx2(bytes, '\t', '\r'));
    __m256i punctuation = _mm256_or_si256(
        _mm256_or_si256(between_avx2(bytes, '!', '/'), between_avx2(bytes, ':', '@')),
        _mm256_or_si256(between_avx2(bytes, '[', '`'), between_avx2(bytes, '{', '~')));
    __m256i upper = between_avx2(bytes, 'A', 'Z');

    if (rules->lower)
        bytes = _mm256_or_si256(bytes, _mm256_and_si256(upper, _mm256_set1_epi8(0x20)));
    _mm256_storeu_si256((void *)block, bytes);
    return (struct text_masks){ (uint32_t)_mm256_movemask_epi8(white),
                                (uint32_t)_mm256_movemask_epi8(punctuation) };
}

AVX2 static inline struct text_masks
look_avx2(const struct text_rules *rules, const uint8_t *from, uint8_t *block)
{
    struct text_masks low = look_half_avx2(rules, from, block);
    struct text_masks high = look_half_avx2(rules, from + 32, block + 32);

    return (struct text_masks){ low.white | high.white << 32,
                                low.punctuation | high.punctuation << 32 };
}

AVX512 static inline uint64_t
between_avx512(__m512i bytes, uint8_t low, uint8_t high)
{
    __m512i shifted = _mm512_sub_epi8(bytes, _mm512_set1_epi8((char)low));

    return _mm512_cmple_epu8_mask(shifted, _mm512_set1_epi8((char)(high - low)));
}

AVX512 static inline struct text_masks
masks_avx512(__m512i bytes)
{
    return (struct text_masks){ _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8(' ')) |
                                    between_avx512(bytes, '\t', '\r'),
                                between_avx512(bytes, '!', '/') | between_avx512(bytes, ':', '@') |
                                    between_avx512(bytes, '[', '`') |
                                    between_avx512(bytes, '{', '~') };
}

AVX512 static inline __m512i
standard_avx512(const struct text_rules *rules, __m512i bytes)
{
    if (!rules->lower)
        return bytes;
    return _mm512_mask_add_epi8(bytes, between_avx512(bytes, 'A', 'Z'), bytes,
                                _mm512_set1_epi8(0x20));
}

AVX512 static inline struct text_masks
look_avx512(const struct text_rules *rules, const uint8_t *from, uint8_t *block)
{
    const __m512i bytes = _mm512_loadu_si512((const void *)from);

    _mm512_storeu_si512((void *)block, standard_avx512(rules, bytes));
    return masks_avx512(bytes);
}

DEFINE_TOKENIZE(tokenize_avx2, AVX2, look_avx2)
DEFINE_TOKENIZE(tokenize_avx512, AVX512, look_avx512)

#define VBMI2 __attribute__((target("avx512vbmi2,avx512bw,avx512f,bmi,bmi2,popcnt")))

/* The same where the processor itself closes the gaps that punctuation leaves in a block. */
VBMI2 static void
white_tokenize_vbmi2(const struct text_rules *rules, struct byte_view text, struct writing *writing)
{
    for (uint64_t at = 0; at < text.size && writing->left > 0; at += BLOCK) {
        const __m512i bytes = _mm512_loadu_si512((const void *)(text.data + at));
        const struct text_masks masks = masks_avx512(bytes);
        const uint64_t there =
            text.size - at < BLOCK ? (UINT64_C(1) << (text.size - at)) - 1 : UINT64_MAX;
        const uint64_t kept = rules->strip ? there & ~masks.punctuation : there;
        uint64_t white = rules->split == SPLIT_WHITESPACE ? _pext_u64(masks.white, kept) : 0;

        _mm512_storeu_si512((void *)writing->to,
                            _mm512_maskz_compress_epi8(kept, standard_avx512(rules, bytes)));
        for (; white != 0; white &= white - 1)
            end_token(writing, writing->to + __builtin_ctzll(white));
        writing->to += __builtin_popcountll(kept);
    }
}

VBMI2 static void
tokenize_vbmi2(const struct text_rules *rules, struct byte_view text, struct text_tokens *tokens)
{
    tokenize(rules, text, tokens, white_tokenize_vbmi2);
}

#endif

text_tokenize *
text_tokenize_best(void)
{
#ifdef __x86_64__
    if (tnd_cpu_has(TND_CPU_VBMI2))
        return tokenize_vbmi2;
    if (tnd_cpu_has(TND_CPU_AVX512))
        return tokenize_avx512;
    if (tnd_cpu_has(TND_CPU_AVX2))
        return tokenize_avx2;
#endif
    return tokenize_portable;
}
