/* crc32c.c - CRC-32C by the processor's instruction in three streams, or by tables.
 *
 * Checksums are kept bit-reversed, as the instruction does: the highest bit is the coefficient of
 * x^0. Shifting a checksum over n bytes of zeros is a multiplication by x^(8n) modulo P.
 */
#include "core/crc32c.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

#include "core/bytes.h"
#include "core/cpu.h"

#define POLYNOMIAL 0x82F63B78U /* P without x^32, reversed */
#define ONE 0x80000000U        /* x^0 */

typedef uint32_t update_function(uint32_t state, const uint8_t *data, size_t bytes);

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
#endif

static update_function first_update;
static _Atomic(update_function *) update = first_update;
static pthread_once_t chosen = PTHREAD_ONCE_INIT;

static void
choose(void)
{
    update_function *best = update_by_tables;

    make_tables();
#ifdef __x86_64__
    if (tnd_cpu_has(TND_CPU_SSE42)) {
        make_shifts();
        best = update_by_instruction;
    }
#endif
    /* Release pairs with the acquire load in tnd_crc32c: the tables are filled. */
    atomic_store_explicit(&update, best, memory_order_release);
}

static uint32_t
first_update(uint32_t state, const uint8_t *data, size_t bytes)
{
    pthread_once(&chosen, choose);
    return atomic_load_explicit(&update, memory_order_acquire)(state, data, bytes);
}

uint32_t
tnd_crc32c(uint32_t crc, const void *data, size_t bytes)
{
    return ~atomic_load_explicit(&update, memory_order_acquire)(~crc, data, bytes);
}

uint32_t
tnd_crc32c_portable(uint32_t crc, const void *data, size_t bytes)
{
    pthread_once(&chosen, choose);
    return ~update_by_tables(~crc, data, bytes);
}
