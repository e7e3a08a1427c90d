/* hash_farm.c - Fingerprint64 of FarmHash (Geoff Pike, Google): its "na" Hash64, frozen. */
#include "core/hash_farm.h"

#include "core/bytes.h"
#include "core/decimal.h"
#include "core/decimal_words.h"

#define K0 UINT64_C(0xC3A5C85C97CB3127)
#define K1 UINT64_C(0xB492B66FBE98F273)
#define K2 UINT64_C(0x9AE16A3B2F90404F)

struct pair {
    uint64_t first, second;
};

static inline uint64_t
rotate_right(uint64_t x, int bits)
{
    return (x >> bits) | (x << (64 - bits));
}

static inline uint64_t
shift_mix(uint64_t x)
{
    return x ^ (x >> 47);
}

static inline uint64_t
mix_two(uint64_t u, uint64_t v, uint64_t mul)
{
    uint64_t a = shift_mix((u ^ v) * mul);

    return shift_mix((v ^ a) * mul) * mul;
}

/* 8 to 16 bytes: the first and the last eight. */
static inline uint64_t
hash_eights(uint64_t first, uint64_t last, size_t bytes)
{
    const uint64_t mul = K2 + bytes * 2;
    uint64_t a = first + K2;

    return mix_two(rotate_right(last, 37) * mul + a, (rotate_right(a, 25) + last) * mul, mul);
}

/* 4 to 7 */
static inline uint64_t
hash_fours(uint32_t first, uint32_t last, size_t bytes)
{
    return mix_two(bytes + ((uint64_t)first << 3), last, K2 + bytes * 2);
}

/* 1 to 3: the first, the one in the middle and the last. */
static inline uint64_t
hash_ones(uint32_t first, uint32_t middle, uint32_t last, size_t bytes)
{
    uint32_t y = first + (middle << 8);
    uint32_t z = (uint32_t)bytes + (last << 2);

    return shift_mix(y * K2 ^ z * K0) * K2;
}

/* The lengths overlap: words from the front and from the back cover the text without a loop. */
static inline uint64_t
hash_to_16(const uint8_t *s, size_t bytes)
{
    if (bytes >= 8)
        return hash_eights(load_u64(s), load_u64(s + bytes - 8), bytes);
    if (bytes >= 4)
        return hash_fours(load_u32(s), load_u32(s + bytes - 4), bytes);
    if (bytes > 0)
        return hash_ones(s[0], s[bytes >> 1], s[bytes - 1], bytes);
    return K2;
}

/* The same of a text in registers, which is not empty. */
static inline uint64_t
hash_words(tnd_text_words text, size_t bytes)
{
    if (bytes >= 8)
        return hash_eights((uint64_t)text, (uint64_t)(text >> (8 * (bytes - 8))), bytes);
    if (bytes >= 4)
        return hash_fours((uint32_t)text, (uint32_t)((uint64_t)text >> (8 * (bytes - 4))), bytes);
    return hash_ones((uint8_t)text, (uint8_t)(text >> (8 * (bytes >> 1))),
                     (uint8_t)(text >> (8 * (bytes - 1))), bytes);
}

static inline uint64_t
hash_to_32(const uint8_t *s, size_t bytes)
{
    const uint64_t mul = K2 + bytes * 2;
    uint64_t a = load_u64(s) * K1;
    uint64_t b = load_u64(s + 8);
    uint64_t c = load_u64(s + bytes - 8) * mul;
    uint64_t d = load_u64(s + bytes - 16) * K2;

    return mix_two(rotate_right(a + b, 43) + rotate_right(c, 30) + d,
                   a + rotate_right(b + K2, 18) + c, mul);
}

static uint64_t
hash_to_64(const uint8_t *s, size_t bytes)
{
    const uint64_t mul = K2 + bytes * 2;
    uint64_t a = load_u64(s) * K2;
    uint64_t b = load_u64(s + 8);
    uint64_t c = load_u64(s + bytes - 8) * mul;
    uint64_t d = load_u64(s + bytes - 16) * K2;
    uint64_t y = rotate_right(a + b, 43) + rotate_right(c, 30) + d;
    uint64_t z = mix_two(y, a + rotate_right(b + K2, 18) + c, mul);
    uint64_t e = load_u64(s + 16) * mul;
    uint64_t f = load_u64(s + 24);
    uint64_t g = (y + load_u64(s + bytes - 32)) * mul;
    uint64_t h = (z + load_u64(s + bytes - 24)) * mul;

    return mix_two(rotate_right(e + f, 43) + rotate_right(g, 30) + h,
                   e + rotate_right(f + a, 18) + g, mul);
}

static inline struct pair
weak_hash_32(const uint8_t *s, uint64_t a, uint64_t b)
{
    uint64_t z = load_u64(s + 24);
    uint64_t c;

    a += load_u64(s);
    b = rotate_right(b + a + z, 21);
    c = a;
    a += load_u64(s + 8) + load_u64(s + 16);
    b += rotate_right(a, 44);
    return (struct pair){ a + z, b + c };
}

/* The 56 bytes of state that each block of 64 is stirred into. */
struct long_state {
    uint64_t x, y, z;
    struct pair v, w;
};

/* `mul` and `nines` differ between the blocks and the last, overlapping one. */
static inline void
stir(struct long_state *t, const uint8_t *s, uint64_t mul, uint64_t nines)
{
    uint64_t x;

    t->x = rotate_right(t->x + t->y + t->v.first + load_u64(s + 8), 37) * mul;
    t->y = rotate_right(t->y + t->v.second + load_u64(s + 48), 42) * mul;
    t->x ^= t->w.second * nines;
    t->y += t->v.first * nines + load_u64(s + 40);
    t->z = rotate_right(t->z + t->w.first, 33) * mul;
    t->v = weak_hash_32(s, t->v.second * mul, t->x + t->w.first);
    t->w = weak_hash_32(s + 32, t->z + t->w.second, t->y + load_u64(s + 16));
    x = t->x;
    t->x = t->z;
    t->z = x;
}

static uint64_t
hash_long(const uint8_t *s, size_t bytes)
{
    const uint64_t seed = 81;
    const uint8_t *end = s + (bytes - 1) / 64 * 64;
    const uint8_t *last = s + bytes - 64;
    struct long_state t = { .x = seed * K2 + load_u64(s), .y = seed * K1 + 113 };
    uint64_t mul;

    t.z = shift_mix(t.y * K2 + 113) * K2;
    for (; s != end; s += 64)
        stir(&t, s, K1, 1);
    mul = K1 + ((t.z & 0xFF) << 1);
    t.w.first += (bytes - 1) & 63;
    t.v.first += t.w.first;
    t.w.first += t.v.first;
    stir(&t, last, mul, 9);
    return mix_two(mix_two(t.v.first, t.w.first, mul) + shift_mix(t.y) * K0 + t.z,
                   mix_two(t.v.second, t.w.second, mul) + t.x, mul);
}

uint64_t
tnd_hash_farm(const void *data, size_t bytes)
{
    if (bytes <= 16)
        return hash_to_16(data, bytes);
    if (bytes <= 32)
        return hash_to_32(data, bytes);
    if (bytes <= 64)
        return hash_to_64(data, bytes);
    return hash_long(data, bytes);
}

uint64_t
tnd_hash_farm_chain(uint64_t hash, const void *data, size_t bytes)
{
    uint64_t parts[2] = { hash, tnd_hash_farm(data, bytes) };

    return tnd_hash_farm(parts, sizeof parts);
}

uint64_t
tnd_hash_farm_decimal(int64_t number)
{
    char text[TND_DECIMAL_BYTES];
    tnd_text_words words;
    size_t bytes;

    if (tnd_decimal_words(number, &words, &bytes))
        return hash_words(words, bytes);
    bytes = tnd_decimal(number, text);
    return tnd_hash_farm(text, bytes);
}

uint64_t
tnd_hash_farm_cat(uint64_t cross, uint64_t column)
{
    const uint64_t mul = UINT64_C(0xC6A4A7935BD1E995);
    uint64_t result = cross ^ mul;

    result ^= shift_mix(column * mul) * mul;
    result *= mul;
    return shift_mix(shift_mix(result) * mul);
}
