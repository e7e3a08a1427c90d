/* newline.c - compare 64 bytes, walk the bits of the answer. */
#include "source/scan/newline.h"

#include <string.h>

#include "core/cpu.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

size_t
newline_find_portable(const uint8_t *data, size_t bytes, uint32_t *positions)
{
    size_t count = 0;

    for (const uint8_t *at = data; (at = memchr(at, '\n', bytes - (size_t)(at - data))) != NULL;
         at++)
        positions[count++] = (uint32_t)(at - data);
    return count;
}

size_t
newline_find_marks_portable(const uint8_t *data, size_t bytes, bool quotes, uint32_t *positions)
{
    size_t count = 0;

    for (size_t i = 0; i < bytes; i++)
        if (data[i] == '\n' || data[i] == '\r' || (quotes && data[i] == '"'))
            positions[count++] = (uint32_t)i;
    return count;
}

/* Append the positions of the bits in `mask`. */
static inline size_t
put_bits(uint64_t mask, uint32_t base, uint32_t *positions, size_t count)
{
    while (mask != 0) {
        positions[count++] = base + (uint32_t)__builtin_ctzll(mask);
        mask &= mask - 1;
    }
    return count;
}

#ifdef __x86_64__

__attribute__((target("avx2,bmi"))) static inline uint64_t
equal_avx2(__m256i low, __m256i high, char c)
{
    __m256i wanted = _mm256_set1_epi8(c);
    uint32_t a = (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(low, wanted));
    uint32_t b = (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(high, wanted));

    return (uint64_t)b << 32 | a;
}

/* Both loops copy a last partial block to a buffer, so that they read nothing after the data. */
__attribute__((target("avx2,bmi"))) static size_t
find_avx2(const uint8_t *data, size_t bytes, uint32_t *positions)
{
    size_t count = 0;
    size_t i = 0;
    uint8_t tail[64];

    for (; bytes - i >= 64; i += 64) {
        __m256i low = _mm256_loadu_si256((const void *)(data + i));
        __m256i high = _mm256_loadu_si256((const void *)(data + i + 32));

        count = put_bits(equal_avx2(low, high, '\n'), (uint32_t)i, positions, count);
    }
    if (i < bytes) {
        memset(tail, 0, sizeof tail);
        memcpy(tail, data + i, bytes - i);
        count = put_bits(equal_avx2(_mm256_loadu_si256((const void *)tail),
                                    _mm256_loadu_si256((const void *)(tail + 32)), '\n'),
                         (uint32_t)i, positions, count);
    }
    return count;
}

__attribute__((target("avx2,bmi"))) static size_t
find_marks_avx2(const uint8_t *data, size_t bytes, bool quotes, uint32_t *positions)
{
    /* Without quotes, the third comparison repeats the first one, which is cheaper than a second
     * loop. */
    char quote = quotes ? '"' : '\n';
    size_t count = 0;
    uint8_t tail[64];

    for (size_t i = 0; i < bytes; i += 64) {
        const uint8_t *at = data + i;

        if (bytes - i < 64) {
            memset(tail, 0, sizeof tail);
            memcpy(tail, at, bytes - i);
            at = tail;
        }
        __m256i low = _mm256_loadu_si256((const void *)at);
        __m256i high = _mm256_loadu_si256((const void *)(at + 32));
        uint64_t mask = equal_avx2(low, high, '\n') | equal_avx2(low, high, '\r') |
                        equal_avx2(low, high, quote);

        count = put_bits(mask, (uint32_t)i, positions, count);
    }
    return count;
}

__attribute__((target("avx512f,avx512bw,bmi"))) static size_t
find_avx512(const uint8_t *data, size_t bytes, uint32_t *positions)
{
    const __m512i newline = _mm512_set1_epi8('\n');
    size_t count = 0;
    size_t i = 0;

    for (; bytes - i >= 64; i += 64) {
        __m512i block = _mm512_loadu_si512((const void *)(data + i));

        count = put_bits(_mm512_cmpeq_epi8_mask(block, newline), (uint32_t)i, positions, count);
    }
    if (i < bytes) {
        /* A masked load does not fault on the bytes that it leaves out. */
        __mmask64 inside = UINT64_MAX >> (64 - (bytes - i));
        __m512i block = _mm512_maskz_loadu_epi8(inside, data + i);

        count = put_bits(_mm512_cmpeq_epi8_mask(block, newline), (uint32_t)i, positions, count);
    }
    return count;
}

__attribute__((target("avx512f,avx512bw,bmi"))) static size_t
find_marks_avx512(const uint8_t *data, size_t bytes, bool quotes, uint32_t *positions)
{
    const __m512i newline = _mm512_set1_epi8('\n');
    const __m512i carriage = _mm512_set1_epi8('\r');
    const __m512i quote = _mm512_set1_epi8(quotes ? '"' : '\n');
    size_t count = 0;

    for (size_t i = 0; i < bytes; i += 64) {
        __mmask64 inside = bytes - i >= 64 ? UINT64_MAX : UINT64_MAX >> (64 - (bytes - i));
        __m512i block = _mm512_maskz_loadu_epi8(inside, data + i);
        uint64_t mask = _mm512_cmpeq_epi8_mask(block, newline) |
                        _mm512_cmpeq_epi8_mask(block, carriage) |
                        _mm512_cmpeq_epi8_mask(block, quote);

        count = put_bits(mask, (uint32_t)i, positions, count);
    }
    return count;
}

#endif

/* Which instructions there are is known only when the program runs: one binary serves all
 * machines. */
size_t
newline_find(const uint8_t *data, size_t bytes, uint32_t *positions)
{
#ifdef __x86_64__
    if (tnd_cpu_has(TND_CPU_AVX512))
        return find_avx512(data, bytes, positions);
    if (tnd_cpu_has(TND_CPU_AVX2))
        return find_avx2(data, bytes, positions);
#endif
    return newline_find_portable(data, bytes, positions);
}

size_t
newline_find_marks(const uint8_t *data, size_t bytes, bool quotes, uint32_t *positions)
{
#ifdef __x86_64__
    if (tnd_cpu_has(TND_CPU_AVX512))
        return find_marks_avx512(data, bytes, quotes, positions);
    if (tnd_cpu_has(TND_CPU_AVX2))
        return find_marks_avx2(data, bytes, quotes, positions);
#endif
    return newline_find_marks_portable(data, bytes, quotes, positions);
}
