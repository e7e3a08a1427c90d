/* hash_sip.c - SipHash-2-4 as its authors (Aumasson, Bernstein) describe it. */
#include "core/hash_sip.h"

#include "core/bytes.h"
#include "core/decimal.h"
#include "core/decimal_words.h"

struct sip {
    uint64_t v0, v1, v2, v3;
};

static inline uint64_t
rotate(uint64_t x, int bits)
{
    return (x << bits) | (x >> (64 - bits));
}

static inline void
sip_round(struct sip *s)
{
    s->v0 += s->v1;
    s->v2 += s->v3;
    s->v1 = rotate(s->v1, 13) ^ s->v0;
    s->v3 = rotate(s->v3, 16) ^ s->v2;
    s->v0 = rotate(s->v0, 32) + s->v3;
    s->v2 += s->v1;
    s->v3 = rotate(s->v3, 21) ^ s->v0;
    s->v1 = rotate(s->v1, 17) ^ s->v2;
    s->v2 = rotate(s->v2, 32);
}

static inline void
sip_word(struct sip *s, uint64_t word)
{
    s->v3 ^= word;
    sip_round(s);
    sip_round(s);
    s->v0 ^= word;
}

static inline struct sip
sip_begin(const uint64_t key[2])
{
    return (struct sip){
        .v0 = key[0] ^ UINT64_C(0x736F6D6570736575),
        .v1 = key[1] ^ UINT64_C(0x646F72616E646F6D),
        .v2 = key[0] ^ UINT64_C(0x6C7967656E657261),
        .v3 = key[1] ^ UINT64_C(0x7465646279746573),
    };
}

/* Four rounds at the end, after two for each word: the 2-4 of the name. */
static inline uint64_t
sip_end(struct sip *s)
{
    s->v2 ^= 0xFF;
    for (int i = 0; i < 4; i++)
        sip_round(s);
    return s->v0 ^ s->v1 ^ s->v2 ^ s->v3;
}

uint64_t
tnd_hash_sip(const uint64_t key[2], const void *data, size_t bytes)
{
    const uint8_t *at = data;
    const uint8_t *words_end = bytes >= 8 ? at + (bytes & ~(size_t)7) : at;
    /* The last word has the bytes that are left, and the length (modulo 256) on top. */
    uint64_t last = (uint64_t)bytes << 56;
    struct sip s = sip_begin(key);

    for (; at != words_end; at += 8)
        sip_word(&s, load_u64(at));
    for (size_t i = 0; i < bytes % 8; i++)
        last |= (uint64_t)at[i] << (8 * i);
    sip_word(&s, last);
    return sip_end(&s);
}

/* A text in registers. Zeros follow it, where the last word takes its length. */
static inline uint64_t
sip_words(const uint64_t key[2], tnd_text_words text, size_t bytes)
{
    struct sip s = sip_begin(key);

    for (size_t left = bytes; left >= 8; left -= 8, text >>= 64)
        sip_word(&s, (uint64_t)text);
    sip_word(&s, (uint64_t)text | (uint64_t)bytes << 56);
    return sip_end(&s);
}

uint64_t
tnd_hash_sip_decimal(const uint64_t key[2], int64_t number)
{
    char text[TND_DECIMAL_BYTES];
    tnd_text_words words;
    size_t bytes;

    if (tnd_decimal_words(number, &words, &bytes))
        return sip_words(key, words, bytes);
    bytes = tnd_decimal(number, text);
    return tnd_hash_sip(key, text, bytes);
}
