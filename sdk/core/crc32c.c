/* crc32c.c - CRC-32C by carry-less products of vectors, by the processor's instruction in three
 * streams, or by tables.
 *
 * Checksums are kept bit-reversed, as the instruction does: the highest bit is the coefficient of
 * x^0. Shifting a checksum over n bytes of zeros is a multiplication by x^(8n) modulo P.
 */
#include "core/crc32c.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

#include "core/bytes.h"
#include "core/cpu.h"

#define POLYNOMIAL 0x82F63B78U /* P without x^32, reversed */
#define ONE 0x80000000U        /* x^0 */

static inline uint32_t
times_x(uint32_t a)
{
    return (a >> 1) ^ (POLYNOMIAL & (0U - (a & 1)));
}

static uint32_t
multiply(uint32_t a, uint32_t b)
{
    uint32_t product = 0;

    for (; a != 0; a <<= 1) {
        product ^= b & (0U - (a >> 31));
        b = times_x(b);
    }
    return product;
}

/* x^n modulo P. */
static uint32_t
power_of_x(uint64_t n)
{
    uint32_t power = ONE;
    uint32_t square = ONE >> 1;

    for (; n != 0; n >>= 1) {
        if (n & 1)
            power = multiply(power, square);
        square = multiply(square, square);
    }
    return power;
}

static _Atomic bool is_ready; /* the constants below are */

/* tables[k][b] is the checksum of byte b followed by k bytes of zeros. */
static uint32_t tables[8][256];

static void
make_tables(void)
{
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t state = byte;

        for (int bit = 0; bit < 8; bit++)
            state = times_x(state);
        tables[0][byte] = state;
    }
    for (int zeros = 1; zeros < 8; zeros++)
        for (uint32_t byte = 0; byte < 256; byte++) {
            uint32_t before = tables[zeros - 1][byte];

            tables[zeros][byte] = (before >> 8) ^ tables[0][before & 0xFF];
        }
}

static uint32_t
update_by_tables(uint32_t state, const uint8_t *data, size_t bytes)
{
    for (; bytes >= 8; data += 8, bytes -= 8) {
        uint64_t word = load_u64(data) ^ state;

        state = 0;
        for (int i = 0; i < 8; i++)
            state ^= tables[7 - i][(word >> (8 * i)) & 0xFF];
    }
    for (; bytes > 0; data++, bytes--)
        state = (state >> 8) ^ tables[0][(state ^ *data) & 0xFF];
    return state;
}

#ifdef __x86_64__
/* The instruction takes 3 cycles but one can start in each, so three runs go side by side and
 * their states are joined. A run is at most this many words, so that the constants for every
 * length fit a small table. */
#define RUN_WORDS 128

/* shift_by[w] moves a state over w words of zeros: x^(64w - 33), the 33 being what a carry-less
 * product followed by the instruction adds. */
static uint32_t shift_by[2 * RUN_WORDS + 1];

static void
make_shifts(void)
{
    const uint32_t word = power_of_x(64);

    shift_by[1] = power_of_x(31);
    for (size_t words = 2; words <= 2 * RUN_WORDS; words++)
        shift_by[words] = multiply(shift_by[words - 1], word);
}

__attribute__((target("sse4.2,pclmul"))) static inline uint64_t
shifted(uint64_t state, size_t words)
{
    __m128i product = _mm_clmulepi64_si128(_mm_cvtsi64_si128((long long)state),
                                           _mm_cvtsi32_si128((int)shift_by[words]), 0);

    return _mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(product));
}

__attribute__((target("sse4.2,pclmul"))) static uint32_t
update_by_instruction(uint32_t state, const uint8_t *data, size_t bytes)
{
    uint64_t a = state;

    while (bytes >= 3 * 8 * 4) {
        size_t run = bytes / 24 < RUN_WORDS ? bytes / 24 : RUN_WORDS;
        const uint8_t *end = data + run * 8;
        uint64_t b = 0;
        uint64_t c = 0;

        for (const uint8_t *at = data; at != end; at += 8) {
            a = _mm_crc32_u64(a, load_u64(at));
            b = _mm_crc32_u64(b, load_u64(at + run * 8));
            c = _mm_crc32_u64(c, load_u64(at + run * 16));
        }
        a = shifted(a, 2 * run) ^ shifted(b, run) ^ c;
        data += run * 24;
        bytes -= run * 24;
    }
    for (; bytes >= 8; data += 8, bytes -= 8)
        a = _mm_crc32_u64(a, load_u64(data));
    for (; bytes > 0; data++, bytes--)
        a = _mm_crc32_u8((uint32_t)a, *data);
    return (uint32_t)a;
}

/* 16 bytes at a time are moved over the bytes that follow them and added to those there, 256 bytes
 * in one turn. The result is 16 bytes with the same checksum. fold_by[k] moves them over 128 << k
 * bits: x^(n+32) for their first half, x^(n-32) for their second. Twice that, since the product of
 * two reversed numbers is one bit short. */
enum { FOLDED_BYTES = 256, FOLD_KINDS = 5 };

static uint64_t fold_by[FOLD_KINDS][2];

static void
make_folds(void)
{
    for (int k = 0; k < FOLD_KINDS; k++) {
        const uint64_t bits = UINT64_C(128) << k;

        fold_by[k][0] = (uint64_t)power_of_x(bits + 32) << 1;
        fold_by[k][1] = (uint64_t)power_of_x(bits - 32) << 1;
    }
}

#define FOLDS __attribute__((target("avx512f,avx512bw,avx512vl,vpclmulqdq,pclmul,sse4.2")))

FOLDS static inline __m512i
multipliers(int k)
{
    return _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)(const void *)fold_by[k]));
}

FOLDS static inline __m512i
sixty_four(const uint8_t *data)
{
    return _mm512_loadu_si512(data);
}

/* The sum of three numbers without carries. */
enum { SUM_OF_THREE = 0x96 };

FOLDS static inline __m512i
fold(__m512i from, __m512i by, __m512i to)
{
    return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(from, by, 0x00),
                                     _mm512_clmulepi64_epi128(from, by, 0x11), to, SUM_OF_THREE);
}

FOLDS static inline __m256i
fold_256(__m256i from, __m256i by, __m256i to)
{
    return _mm256_ternarylogic_epi64(_mm256_clmulepi64_epi128(from, by, 0x00),
                                     _mm256_clmulepi64_epi128(from, by, 0x11), to, SUM_OF_THREE);
}

FOLDS static inline __m128i
fold_128(__m128i from, __m128i by, __m128i to)
{
    return _mm_ternarylogic_epi64(_mm_clmulepi64_si128(from, by, 0x00),
                                  _mm_clmulepi64_si128(from, by, 0x11), to, SUM_OF_THREE);
}

/* The state of the 64 bytes that all others have been added to. */
FOLDS static inline uint32_t
state_of(__m512i folded)
{
    const __m256i half =
        fold_256(_mm512_castsi512_si256(folded), _mm512_castsi512_si256(multipliers(1)),
                 _mm512_extracti64x4_epi64(folded, 1));
    const __m128i last =
        fold_128(_mm256_castsi256_si128(half), _mm512_castsi512_si128(multipliers(0)),
                 _mm256_extracti128_si256(half, 1));
    const uint64_t first = _mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(last));

    return (uint32_t)_mm_crc32_u64(first, (uint64_t)_mm_extract_epi64(last, 1));
}

/* Four times 64 bytes go side by side, since a product takes longer than two can begin. (By name:
 * as an array they would lie in memory.) */
FOLDS static uint32_t
update_by_folding(uint32_t state, const uint8_t *data, size_t bytes)
{
    const __m512i by = multipliers(4);
    __m512i a, b, c, d;

    if (bytes < FOLDED_BYTES)
        return update_by_instruction(state, data, bytes);
    a = _mm512_xor_si512(sixty_four(data), _mm512_zextsi128_si512(_mm_cvtsi32_si128((int)state)));
    b = sixty_four(data + 64);
    c = sixty_four(data + 128);
    d = sixty_four(data + 192);
    data += FOLDED_BYTES;
    for (bytes -= FOLDED_BYTES; bytes >= FOLDED_BYTES; bytes -= FOLDED_BYTES) {
        a = fold(a, by, sixty_four(data));
        b = fold(b, by, sixty_four(data + 64));
        c = fold(c, by, sixty_four(data + 128));
        d = fold(d, by, sixty_four(data + 192));
        data += FOLDED_BYTES;
    }
    c = fold(a, multipliers(3), c);
    d = fold(b, multipliers(3), d);
    d = fold(c, multipliers(2), d);
    for (; bytes >= 64; data += 64, bytes -= 64)
        d = fold(d, multipliers(2), sixty_four(data));
    state = state_of(d);
    _mm256_zeroupper(); /* what follows is compiled without vectors of this width */
    return update_by_instruction(state, data, bytes);
}
#endif

static void
make_constants(void)
{
    make_tables();
#ifdef __x86_64__
    make_shifts();
    make_folds();
#endif
    /* Release pairs with the acquire load in tnd_crc32c: the constants are there. */
    atomic_store_explicit(&is_ready, true, memory_order_release);
}

uint32_t
tnd_crc32c(uint32_t crc, const void *data, size_t bytes)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    if (!atomic_load_explicit(&is_ready, memory_order_acquire))
        pthread_once(&once, make_constants);
#ifdef __x86_64__
    if (tnd_cpu_has(TND_CPU_VBMI2))
        return ~update_by_folding(~crc, data, bytes);
    if (tnd_cpu_has(TND_CPU_SSE42))
        return ~update_by_instruction(~crc, data, bytes);
#endif
    return ~update_by_tables(~crc, data, bytes);
}
