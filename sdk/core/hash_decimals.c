/* hash_decimals.c - decimal texts made and hashed four at a time.
 *
 * Four texts stand in registers, each as words of eight bytes; every step is done to all four,
 * those that differ with their length for each length there is among them. Numbers of more than 14
 * digits are left to the functions for one.
 */
#include "core/hash_decimals.h"

#include "core/cpu.h"
#include "core/hash_farm.h"
#include "core/hash_sip.h"

#ifdef __x86_64__

#include <immintrin.h>

#define FOUR_LANES __attribute__((target("avx2"))) static inline

enum { LANES = 4 };

typedef uint64_t lanes __attribute__((vector_size(32)));

/* In a register or on the stack before the loop; compilers that see the value compute it again for
 * every four numbers, or shifts and additions of a multiplication by it. */
FOUR_LANES lanes
all_lanes(uint64_t value)
{
    lanes all = { value, value, value, value };

    __asm__("" : "+x"(all));
    return all;
}

#define FOUR_TIMES(digits) (UINT64_C(0x0001000100010001) * (digits))

struct constants {
    lanes k0, k2;
    lanes most, most_short;
    lanes by_10000, ten_thousand, by_100, hundred, by_10, ten, last_digit, low_bits, ascii;
};

FOUR_LANES struct constants
constants(void)
{
    return (struct constants){
        .k0 = all_lanes(UINT64_C(0xC3A5C85C97CB3127)),
        .k2 = all_lanes(UINT64_C(0x9AE16A3B2F90404F)),
        .most = all_lanes(UINT64_C(99999999999999)),
        .most_short = all_lanes(99999999),
        .by_10000 = all_lanes(3518437209),
        .ten_thousand = all_lanes(10000),
        .by_100 = all_lanes(FOUR_TIMES(5243)),
        .hundred = all_lanes(FOUR_TIMES(100)),
        .by_10 = all_lanes(FOUR_TIMES(6554)),
        .ten = all_lanes(FOUR_TIMES(10)),
        .last_digit = all_lanes(UINT64_C(1) << 56),
        .low_bits = all_lanes(UINT64_C(0x0101010101010101)),
        .ascii = all_lanes(UINT64_C(0x3030303030303030)),
    };
}

/* A lane of what is chosen where the mask's is all ones, else of the other. */
FOUR_LANES lanes
choose(lanes mask, lanes chosen, lanes other)
{
    return (lanes)_mm256_blendv_epi8((__m256i)other, (__m256i)chosen, (__m256i)mask);
}

FOUR_LANES bool
any_of(lanes mask)
{
    return !_mm256_testz_si256((__m256i)mask, (__m256i)mask);
}

/* By 64 bits or more, or by less than none: 0. */
FOUR_LANES lanes
shift_up(lanes x, lanes bits)
{
    return (lanes)_mm256_sllv_epi64((__m256i)x, (__m256i)bits);
}

FOUR_LANES lanes
shift_down(lanes x, lanes bits)
{
    return (lanes)_mm256_srlv_epi64((__m256i)x, (__m256i)bits);
}

/* The product of numbers below 2^32. */
FOUR_LANES lanes
product(lanes x, lanes y)
{
    return (lanes)_mm256_mul_epu32((__m256i)x, (__m256i)y);
}

/* None of the lanes, as signed numbers, is above its limit. */
FOUR_LANES bool
are_within(lanes x, lanes limit)
{
    return !any_of((lanes)_mm256_cmpgt_epi64((__m256i)x, (__m256i)limit));
}

/* Up to 15 bytes: the first eight, those after them, zeros after the last one. */
struct texts {
    lanes first, second;
    lanes last; /* the last eight, where there are eight */
    lanes bytes;
};

/* The eight digits of a number below 10^8, zeros in front, the first one lowest. */
FOUR_LANES lanes
eight_digits(const struct constants *c, lanes number)
{
    const lanes upper = product(number, c->by_10000) >> 45;
    const lanes fours = upper | (number - product(upper, c->ten_thousand)) << 32;
    const __m256i hundreds =
        _mm256_srli_epi16(_mm256_mulhi_epu16((__m256i)fours, (__m256i)c->by_100), 3);
    const __m256i below_hundred =
        _mm256_sub_epi16((__m256i)fours, _mm256_mullo_epi16(hundreds, (__m256i)c->hundred));
    const __m256i twos = _mm256_or_si256(hundreds, _mm256_slli_epi32(below_hundred, 16));
    const __m256i tens = _mm256_mulhi_epu16(twos, (__m256i)c->by_10);
    const __m256i below_ten = _mm256_sub_epi16(twos, _mm256_mullo_epi16(tens, (__m256i)c->ten));

    return (lanes)_mm256_or_si256(tens, _mm256_slli_epi16(below_ten, 8));
}

/* How many bytes are 0 before the first that is not: all bits below its lowest one are ones. */
FOUR_LANES lanes
zeros_in_front(const struct constants *c, lanes digits)
{
    const lanes below = (digits - 1) & ~digits;

    return (lanes)_mm256_sad_epu8((__m256i)(below >> 7 & c->low_bits), _mm256_setzero_si256());
}

/* A number below 2^51 without its lowest eight decimal digits. The quotient of doubles is rounded:
 * it may be one too much. */
FOUR_LANES lanes
above_eight_digits(lanes number)
{
    const __m256d large = _mm256_set1_pd(0x1p52);
    const __m256d exact =
        _mm256_sub_pd(_mm256_castsi256_pd(_mm256_or_si256((__m256i)number, (__m256i)large)), large);
    const __m256d quotient = _mm256_add_pd(_mm256_mul_pd(exact, _mm256_set1_pd(1e-8)), large);
    const lanes rounded = (lanes)_mm256_xor_si256((__m256i)quotient, (__m256i)large);
    const lanes rest = number - product(rounded, all_lanes(100000000));

    return rounded - (rest >> 63);
}

/* Numbers of up to eight digits. */
FOUR_LANES void
make_short_texts(const struct constants *c, lanes numbers, struct texts *ret_texts)
{
    const lanes digits = eight_digits(c, numbers);
    const lanes zeros = zeros_in_front(c, digits | c->last_digit);

    *ret_texts = (struct texts){
        .first = shift_down(digits | c->ascii, zeros * 8),
        .last = digits | c->ascii,
        .bytes = 8 - zeros,
    };
}

/* The texts of numbers of up to 14 digits. */
FOUR_LANES void
make_long_texts(const struct constants *c, lanes numbers, struct texts *ret_texts)
{
    const lanes above = above_eight_digits(numbers);
    const lanes upper = eight_digits(c, above);
    const lanes digits = eight_digits(c, numbers - product(above, all_lanes(100000000)));
    const lanes lower = digits | c->ascii;
    const lanes zeros = zeros_in_front(c, upper) +
                        (zeros_in_front(c, digits | c->last_digit) & (lanes)(upper == 0));

    *ret_texts = (struct texts){
        .first = shift_down(upper | c->ascii, zeros * 8) | shift_up(lower, 64 - zeros * 8) |
                 shift_down(lower, zeros * 8 - 64),
        .second = shift_down(lower, zeros * 8),
        .last = lower,
        .bytes = 16 - zeros,
    };
}

FOUR_LANES void
put_minus(lanes minus, struct texts *texts)
{
    const lanes second = texts->second << 8 | texts->first >> 56;
    const lanes first = texts->first << 8 | '-';

    texts->first = choose(minus, first, texts->first);
    texts->second = choose(minus, second, texts->second);
    texts->bytes -= minus;
    texts->last = choose((lanes)(texts->bytes == 8), texts->first, texts->last);
}

/* False: a number has more than 14 digits. */
FOUR_LANES bool
make_texts(const struct constants *c, lanes numbers, struct texts *ret_texts)
{
    const lanes minus = (lanes)_mm256_cmpgt_epi64(_mm256_setzero_si256(), (__m256i)numbers);
    const lanes magnitudes = (numbers ^ minus) - minus;

    /* The magnitude of the least number is negative. */
    if (!are_within(magnitudes, c->most) || any_of(magnitudes >> 63))
        return false;
    if (are_within(magnitudes, c->most_short))
        make_short_texts(c, magnitudes, ret_texts);
    else
        make_long_texts(c, magnitudes, ret_texts);
    if (any_of(minus))
        put_minus(minus, ret_texts);
    return true;
}

FOUR_LANES lanes
rotate_right(lanes x, int bits)
{
    return x >> bits | x << (64 - bits);
}

FOUR_LANES lanes
shift_mix(lanes x)
{
    return x ^ x >> 47;
}

FOUR_LANES lanes
mix_two(lanes u, lanes v, lanes mul)
{
    const lanes a = shift_mix((u ^ v) * mul);

    return shift_mix((v ^ a) * mul) * mul;
}

FOUR_LANES lanes
hash_ones(const struct constants *c, const struct texts *texts)
{
    const lanes middle = shift_down(texts->first, (texts->bytes >> 1) * 8) & 0xFF;
    const lanes last = shift_down(texts->first, (texts->bytes - 1) * 8) & 0xFF;
    const lanes y = (texts->first & 0xFF) + (middle << 8), z = texts->bytes + (last << 2);

    return shift_mix(y * c->k2 ^ z * c->k0) * c->k2;
}

FOUR_LANES lanes
hash_farm(const struct constants *c, const struct texts *texts)
{
    const lanes are_eights = (lanes)(texts->bytes > 7), are_ones = (lanes)(texts->bytes < 4);
    const lanes mul = texts->bytes * 2 + c->k2, a = texts->first + c->k2;
    lanes u = rotate_right(texts->last, 37) * mul + a;
    lanes v = (rotate_right(a, 25) + texts->last) * mul, hash;

    if (any_of(~are_eights)) {
        const lanes first = texts->first << 32 >> 29;
        const lanes last = shift_down(texts->first, texts->bytes * 8 - 32);

        u = choose(are_eights, u, texts->bytes + first);
        v = choose(are_eights, v, last & UINT32_MAX);
    }
    hash = mix_two(u, v, mul);
    return any_of(are_ones) ? choose(are_ones, hash_ones(c, texts), hash) : hash;
}

__attribute__((target("avx2"))) static size_t
farm_avx2(const int64_t *numbers, size_t count, uint64_t *hashes)
{
    const struct constants c = constants();
    struct texts texts;
    size_t i = 0;

    for (; i + LANES <= count; i += LANES) {
        const __m256i four = _mm256_loadu_si256((const __m256i *)(const void *)(numbers + i));

        if (!make_texts(&c, (lanes)four, &texts))
            break;
        _mm256_storeu_si256((__m256i *)(void *)(hashes + i), (__m256i)hash_farm(&c, &texts));
    }
    return i;
}

struct sip {
    lanes v0, v1, v2, v3;
};

FOUR_LANES lanes
rotate_half(lanes x)
{
    return (lanes)_mm256_shuffle_epi32((__m256i)x, 0xB1);
}

FOUR_LANES void
sip_round(struct sip *s)
{
    s->v0 += s->v1;
    s->v2 += s->v3;
    s->v1 = rotate_right(s->v1, 64 - 13) ^ s->v0;
    s->v3 = rotate_right(s->v3, 64 - 16) ^ s->v2;
    s->v0 = rotate_half(s->v0) + s->v3;
    s->v2 += s->v1;
    s->v3 = rotate_right(s->v3, 64 - 21) ^ s->v0;
    s->v1 = rotate_right(s->v1, 64 - 17) ^ s->v2;
    s->v2 = rotate_half(s->v2);
}

FOUR_LANES void
sip_word(struct sip *s, lanes word)
{
    s->v3 ^= word;
    sip_round(s);
    sip_round(s);
    s->v0 ^= word;
}

FOUR_LANES lanes
hash_sip(const uint64_t key[2], const struct texts *texts)
{
    const lanes are_long = (lanes)(texts->bytes > 7), length = texts->bytes << 56;
    struct sip s = {
        .v0 = all_lanes(key[0] ^ UINT64_C(0x736F6D6570736575)),
        .v1 = all_lanes(key[1] ^ UINT64_C(0x646F72616E646F6D)),
        .v2 = all_lanes(key[0] ^ UINT64_C(0x6C7967656E657261)),
        .v3 = all_lanes(key[1] ^ UINT64_C(0x7465646279746573)),
    };

    if (any_of(are_long)) {
        const struct sip short_ones = s;

        sip_word(&s, texts->first);
        s.v0 = choose(are_long, s.v0, short_ones.v0);
        s.v1 = choose(are_long, s.v1, short_ones.v1);
        s.v2 = choose(are_long, s.v2, short_ones.v2);
        s.v3 = choose(are_long, s.v3, short_ones.v3);
    }
    sip_word(&s, choose(are_long, texts->second, texts->first) | length);
    s.v2 ^= 0xFF;
    for (int i = 0; i < 4; i++)
        sip_round(&s);
    return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}

__attribute__((target("avx2"))) static size_t
sip_avx2(const uint64_t key[2], const int64_t *numbers, size_t count, uint64_t *hashes)
{
    const struct constants c = constants();
    struct texts texts;
    size_t i = 0;

    for (; i + LANES <= count; i += LANES) {
        const __m256i four = _mm256_loadu_si256((const __m256i *)(const void *)(numbers + i));

        if (!make_texts(&c, (lanes)four, &texts))
            break;
        _mm256_storeu_si256((__m256i *)(void *)(hashes + i), (__m256i)hash_sip(key, &texts));
    }
    return i;
}

#else

enum { LANES = 1 };

static size_t
farm_avx2(const int64_t *numbers, size_t count, uint64_t *hashes)
{
    (void)numbers, (void)count, (void)hashes;
    return 0;
}

static size_t
sip_avx2(const uint64_t key[2], const int64_t *numbers, size_t count, uint64_t *hashes)
{
    (void)key, (void)numbers, (void)count, (void)hashes;
    return 0;
}

#endif

/* Where the lanes stopped: their four one by one, or what is left. */
static size_t
singles_end(size_t at, size_t count)
{
    return count - at < LANES ? count : at + LANES;
}

void
tnd_hash_farm_decimals(const int64_t *numbers, size_t count, uint64_t *ret_hashes)
{
    const bool in_lanes = tnd_cpu_has(TND_CPU_AVX2);

    for (size_t i = 0; i < count;) {
        size_t end;

        if (in_lanes)
            i += farm_avx2(numbers + i, count - i, ret_hashes + i);
        for (end = singles_end(i, count); i < end; i++)
            ret_hashes[i] = tnd_hash_farm_decimal(numbers[i]);
    }
}

void
tnd_hash_sip_decimals(const uint64_t key[2], const int64_t *numbers, size_t count,
                      uint64_t *ret_hashes)
{
    const bool in_lanes = tnd_cpu_has(TND_CPU_AVX2);

    for (size_t i = 0; i < count;) {
        size_t end;

        if (in_lanes)
            i += sip_avx2(key, numbers + i, count - i, ret_hashes + i);
        for (end = singles_end(i, count); i < end; i++)
            ret_hashes[i] = tnd_hash_sip_decimal(key, numbers[i]);
    }
}
