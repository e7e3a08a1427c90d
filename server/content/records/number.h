/* number.h - numbers from text, as tf.io.decode_csv and tf.strings.to_number take them.
 *
 * Blanks around and one sign are allowed. Integers are decimal digits and must fit. Floats are
 * decimal or hexadecimal with an optional exponent, inf, infinity or nan in any case; they are
 * rounded once, to nearest even, and numbers that are too large become infinite. The text may hold
 * nothing else. 64 bytes after it can be read.
 */
#ifndef CONTENT_RECORDS_NUMBER_H
#define CONTENT_RECORDS_NUMBER_H

#include "core/bytes.h"

bool number_int32_any(const uint8_t *text, uint64_t size, int32_t *ret_number);
bool number_int64_any(const uint8_t *text, uint64_t size, int64_t *ret_number);

/* The value of 1 to 8 digits and nothing else, all at once. */
static inline bool
number_digits(const uint8_t *text, uint64_t size, uint64_t *ret_value)
{
    const uint64_t highs = UINT64_C(0xf0f0f0f0f0f0f0f0);
    const uint64_t zeros = UINT64_C(0x3030303030303030);
    uint64_t digits;

    if (size - 1 >= 8)
        return false;
    digits = load_u64(text) << (64 - 8 * size) | (zeros >> 4 * size >> 4 * size);
    if (((digits & highs) | ((digits + UINT64_C(0x0606060606060606)) & highs) >> 4) !=
        UINT64_C(0x3333333333333333))
        return false;
    digits = (digits & UINT64_C(0x0f0f0f0f0f0f0f0f)) * 2561 >> 8;
    digits = (digits & UINT64_C(0x00ff00ff00ff00ff)) * 6553601 >> 16;
    *ret_value = (digits & UINT64_C(0x0000ffff0000ffff)) * UINT64_C(42949672960001) >> 32;
    return true;
}

static inline bool
number_int32(const uint8_t *text, uint64_t size, int32_t *ret_number)
{
    uint64_t value;

    if (!number_digits(text, size, &value))
        return number_int32_any(text, size, ret_number);
    *ret_number = (int32_t)value;
    return true;
}

static inline bool
number_int64(const uint8_t *text, uint64_t size, int64_t *ret_number)
{
    uint64_t value;

    if (!number_digits(text, size, &value))
        return number_int64_any(text, size, ret_number);
    *ret_number = (int64_t)value;
    return true;
}

bool number_float32_any(const uint8_t *text, uint64_t size, float *ret_number);
bool number_float64_any(const uint8_t *text, uint64_t size, double *ret_number);

/* Up to 8 digits are an integer, which is rounded once on its way to a float. */
static inline bool
number_float32(const uint8_t *text, uint64_t size, float *ret_number)
{
    uint64_t value;

    if (!number_digits(text, size, &value))
        return number_float32_any(text, size, ret_number);
    *ret_number = (float)(int64_t)value;
    return true;
}

static inline bool
number_float64(const uint8_t *text, uint64_t size, double *ret_number)
{
    uint64_t value;

    if (!number_digits(text, size, &value))
        return number_float64_any(text, size, ret_number);
    *ret_number = (double)(int64_t)value;
    return true;
}

#endif
