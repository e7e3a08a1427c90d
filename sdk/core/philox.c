/* philox.c - the parts of Philox that are too long to inline. */
#include "core/philox.h"

#include "core/cpu.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* As TensorFlow's StatelessRandom ops: the seed is scrambled by one block with a fixed key, so that
 * seeds that differ in one bit give unrelated streams. */
struct tnd_philox
tnd_philox_of_stateless_seed(int64_t seed0, int64_t seed1)
{
    const uint64_t low = (uint64_t)seed0;
    const uint64_t high = (uint64_t)seed1;
    struct tnd_philox scrambler = {
        .key = { 0x3EC8F720U, 0x02461E29U },
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

/* Eight blocks at a time, as long as only the counter's lowest word changes. Returns how many. */
AVX2 static size_t
fill_lanes(struct tnd_philox *philox, size_t blocks, uint32_t *ret_words)
{
    const __m256i m0 = _mm256_set1_epi32((int)0xD2511F53U);
    const __m256i m1 = _mm256_set1_epi32((int)0xCD9E8D57U);
    const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    size_t done = 0;

    for (; blocks - done >= LANES && philox->counter[0] <= UINT32_MAX - LANES; done += LANES) {
        __m256i c0 = _mm256_add_epi32(_mm256_set1_epi32((int)philox->counter[0]), lanes);
        __m256i c1 = _mm256_set1_epi32((int)philox->counter[1]);
        __m256i c2 = _mm256_set1_epi32((int)philox->counter[2]);
        __m256i c3 = _mm256_set1_epi32((int)philox->counter[3]);
        uint32_t k0 = philox->key[0], k1 = philox->key[1];

        /* Philox4x32-10; the key's increments are the golden ratio and sqrt(3) - 1, as in the
         * paper. */
        for (int round = 0; round < 10; round++) {
            __m256i low0, high0, low1, high1;

            multiply(c0, m0, &low0, &high0);
            multiply(c2, m1, &low1, &high1);
            c0 = _mm256_xor_si256(_mm256_xor_si256(high1, c1), _mm256_set1_epi32((int)k0));
            c1 = low1;
            c2 = _mm256_xor_si256(_mm256_xor_si256(high0, c3), _mm256_set1_epi32((int)k1));
            c3 = low0;
            k0 += 0x9E3779B9U;
            k1 += 0xBB67AE85U;
        }
        store_blocks(c0, c1, c2, c3, ret_words + 4 * done);
        philox->counter[0] += LANES;
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
