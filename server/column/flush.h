/* flush.h - subnormal numbers count as 0 in arithmetic, as on the threads of tf.data.
 *
 * Content stages run between flush_begin and flush_end. Code that only moves bits, or must give the
 * same bits whatever the thread's mode, uses the inline forms.
 */
#ifndef COLUMN_FLUSH_H
#define COLUMN_FLUSH_H

#include <stdint.h>
#include <string.h>

#include "column/vector_half.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

/* Set FTZ and DAZ (AArch64: FZ) for the calling thread; returns the mode before. */
static inline uint64_t
flush_begin(void)
{
#if defined(__x86_64__)
    unsigned mode = _mm_getcsr();

    _mm_setcsr(mode | 0x8040);
    return mode;
#elif defined(__aarch64__)
    uint64_t mode;

    __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
    __asm__ volatile("msr fpcr, %0" : : "r"(mode | UINT64_C(1) << 24));
    return mode;
#else
    return 0;
#endif
}

static inline void
flush_end(uint64_t mode)
{
#if defined(__x86_64__)
    _mm_setcsr((unsigned)mode);
#elif defined(__aarch64__)
    __asm__ volatile("msr fpcr, %0" : : "r"(mode));
#else
    (void)mode;
#endif
}

static inline uint64_t
double_bits(double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline double
double_of_bits(uint64_t bits)
{
    double value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline float
flush_float(float value)
{
    uint32_t bits = float_bits(value);

    return float_of_bits((bits & 0x7F800000) == 0 ? bits & 0x80000000 : bits);
}

static inline double
flush_double(double value)
{
    uint64_t bits = double_bits(value);

    return double_of_bits(
        (bits & UINT64_C(0x7FF0000000000000)) == 0 ? bits & UINT64_C(0x8000000000000000) : bits);
}

#endif
