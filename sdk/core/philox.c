/* philox.c - the parts of Philox that are too long to inline. */
#include "core/philox.h"

#include "core/cpu.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define SCRAMBLER_0 0x3EC8F720U
#define SCRAMBLER_1 0x02461E29U

/* As TensorFlow's StatelessRandom ops: the seed is scrambled by one block with a fixed key, so that
 * seeds that differ in one bit give unrelated streams. */
struct tnd_philox
tnd_philox_of_stateless_seed(int64_t seed0, int64_t seed1)
{
    const uint64_t low = (uint64_t)seed0;
    const uint64_t high = (uint64_t)seed1;
    struct tnd_philox scrambler = {
        .key = { SCRAMBLER_0, SCRAMBLER_1 },
        .counter = { (uint32_t)low, (uint32_t)(low >> 32), (uint32_t)high, (uint32_t)(high >> 32) },
    };
    uint32_t mixed[4];

    tnd_philox_block(&scrambler, mixed);
    return (struct tnd_philox){ .key = { mixed[0], mixed[1] },
                                .counter = { 0, 0, mixed[2], mixed[3] } };
}

#if defined(__x86_64__)

enum { LANES = 8 };

#define AVX2 __attribute__((target("avx2")))

/* The halves of the 64-bit products of each lane with `by`. */
AVX2 static inline void
multiply(__m256i lanes, __m256i by, __m256i *ret_low, __m256i *ret_high)
{
    __m256i even = _mm256_mul_epu32(lanes, by);
    __m256i odd = _mm256_mul_epu32(_mm256_srli_epi64(lanes, 32), by);

    *ret_low = _mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xAA);
    *ret_high = _mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xAA);
}

/* Words of eight blocks, a vector for each of their four words, to block after block. */
AVX2 static inline void
store_blocks(__m256i c0, __m256i c1, __m256i c2, __m256i c3, uint32_t *ret_words)
{
    __m256i low01 = _mm256_unpacklo_epi32(c0, c1), high01 = _mm256_unpackhi_epi32(c0, c1);
    __m256i low23 = _mm256_unpacklo_epi32(c2, c3), high23 = _mm256_unpackhi_epi32(c2, c3);
    __m256i block04 = _mm256_unpacklo_epi64(low01, low23);
    __m256i block15 = _mm256_unpackhi_epi64(low01, low23);
    __m256i block26 = _mm256_unpacklo_epi64(high01, high23);
    __m256i block37 = _mm256_unpackhi_epi64(high01, high23);
    __m256i *to = (__m256i *)(void *)ret_words;

    _mm256_storeu_si256(to, _mm256_permute2x128_si256(block04, block15, 0x20));
    _mm256_storeu_si256(to + 1, _mm256_permute2x128_si256(block26, block37, 0x20));
    _mm256_storeu_si256(to + 2, _mm256_permute2x128_si256(block04, block15, 0x31));
    _mm256_storeu_si256(to + 3, _mm256_permute2x128_si256(block26, block37, 0x31));
}

/* Eight counters and keys. */
struct eight {
    __m256i c0, c1, c2, c3, k0, k1;
};

/* Philox4x32-10; the key's increments are the golden ratio and sqrt(3) - 1, as in the paper. */
AVX2 static inline void
mix(struct eight *eight)
{
    const __m256i m0 = _mm256_set1_epi32((int)0xD2511F53U);
    const __m256i m1 = _mm256_set1_epi32((int)0xCD9E8D57U);

    for (int round = 0; round < 10; round++) {
        __m256i low0, high0, low1, high1;

        multiply(eight->c0, m0, &low0, &high0);
        multiply(eight->c2, m1, &low1, &high1);
        eight->c0 = _mm256_xor_si256(_mm256_xor_si256(high1, eight->c1), eight->k0);
        eight->c1 = low1;
        eight->c2 = _mm256_xor_si256(_mm256_xor_si256(high0, eight->c3), eight->k1);
        eight->c3 = low0;
        eight->k0 = _mm256_add_epi32(eight->k0, _mm256_set1_epi32((int)0x9E3779B9U));
        eight->k1 = _mm256_add_epi32(eight->k1, _mm256_set1_epi32((int)0xBB67AE85U));
    }
}

/* Eight blocks at a time, as long as only the counter's lowest word changes. Returns how many. */
AVX2 static size_t
fill_lanes(struct tnd_philox *philox, size_t blocks, uint32_t *ret_words)
{
    const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    size_t done = 0;

    for (; blocks - done >= LANES && philox->counter[0] <= UINT32_MAX - LANES; done += LANES) {
        struct eight eight = {
            .c0 = _mm256_add_epi32(_mm256_set1_epi32((int)philox->counter[0]), lanes),
            .c1 = _mm256_set1_epi32((int)philox->counter[1]),
            .c2 = _mm256_set1_epi32((int)philox->counter[2]),
            .c3 = _mm256_set1_epi32((int)philox->counter[3]),
            .k0 = _mm256_set1_epi32((int)philox->key[0]),
            .k1 = _mm256_set1_epi32((int)philox->key[1]),
        };

        mix(&eight);
        store_blocks(eight.c0, eight.c1, eight.c2, eight.c3, ret_words + 4 * done);
        philox->counter[0] += LANES;
    }
    return done;
}

/* Eight pairs at a time. Returns how many. */
AVX2 static size_t
pair_lanes(const uint32_t *seeds, size_t pairs, uint32_t *ret_words)
{
    const __m256i zeros = _mm256_setzero_si256();
    const __m256i even_odd = _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7);
    size_t done = 0;

    for (; pairs - done >= LANES; done += LANES) {
        const __m256i *from = (const __m256i *)(const void *)(seeds + 2 * done);
        __m256i *to = (__m256i *)(void *)(ret_words + 2 * done);
        __m256i one = _mm256_permutevar8x32_epi32(_mm256_loadu_si256(from), even_odd);
        __m256i two = _mm256_permutevar8x32_epi32(_mm256_loadu_si256(from + 1), even_odd);
        struct eight eight = {
            .c0 = _mm256_permute2x128_si256(one, two, 0x20),
            .c1 = zeros,
            .c2 = _mm256_permute2x128_si256(one, two, 0x31),
            .c3 = zeros,
            .k0 = _mm256_set1_epi32((int)SCRAMBLER_0),
            .k1 = _mm256_set1_epi32((int)SCRAMBLER_1),
        };
        __m256i low, high;

        mix(&eight);
        eight = (struct eight){ zeros, zeros, eight.c2, eight.c3, eight.c0, eight.c1 };
        mix(&eight);
        low = _mm256_unpacklo_epi32(eight.c0, eight.c1);
        high = _mm256_unpackhi_epi32(eight.c0, eight.c1);
        _mm256_storeu_si256(to, _mm256_permute2x128_si256(low, high, 0x20));
        _mm256_storeu_si256(to + 1, _mm256_permute2x128_si256(low, high, 0x31));
    }
    return done;
}

#else

static size_t
fill_lanes(struct tnd_philox *philox, size_t blocks, uint32_t *ret_words)
{
    (void)philox, (void)blocks, (void)ret_words;
    return 0;
}

static size_t
pair_lanes(const uint32_t *seeds, size_t pairs, uint32_t *ret_words)
{
    (void)seeds, (void)pairs, (void)ret_words;
    return 0;
}

#endif

void
tnd_philox_fill(struct tnd_philox *philox, size_t blocks, uint32_t *ret_words)
{
    size_t done = 0;

    while (done < blocks) {
        if (tnd_cpu_has(TND_CPU_AVX2))
            done += fill_lanes(philox, blocks - done, ret_words + 4 * done);
        if (done < blocks)
            tnd_philox_next(philox, ret_words + 4 * done++);
    }
}

void
tnd_philox_of_pairs(const uint32_t *seeds, size_t pairs, uint32_t *ret_words)
{
    size_t done = tnd_cpu_has(TND_CPU_AVX2) ? pair_lanes(seeds, pairs, ret_words) : 0;

    for (; done < pairs; done++) {
        struct tnd_philox philox =
            tnd_philox_of_stateless_seed(seeds[2 * done], seeds[2 * done + 1]);
        uint32_t words[4];

        tnd_philox_block(&philox, words);
        memcpy(ret_words + 2 * done, words, 2 * sizeof *words);
    }
}

/* Words are numbered over blocks of four, so any thread can compute any of them. */
void
tnd_philox_words(const struct tnd_philox *philox, uint64_t first, size_t count, uint32_t *ret_words)
{
    struct tnd_philox at = *philox;
    uint32_t block[4];
    size_t done = 0;

    tnd_philox_skip(&at, first / 4);
    while (done < count) {
        size_t from = done == 0 ? (size_t)(first % 4) : 0;
        size_t words = count - done < 4 - from ? count - done : 4 - from;

        tnd_philox_next(&at, block);
        memcpy(ret_words + done, block + from, words * sizeof *block);
        done += words;
    }
}
