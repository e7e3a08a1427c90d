/* number.c - integers of any length, and floats: by one exact operation where a double suffices,
 * else by strtod. */
#include "content/records/number.h"

#include <stdlib.h>
#include <string.h>

#include "content/text/texts.h"
#include "core/memory.h"

static void
strip(const uint8_t **text, uint64_t *size)
{
    while (*size > 0 && text_is_blank(**text)) {
        (*text)++;
        (*size)--;
    }
    while (*size > 0 && text_is_blank((*text)[*size - 1]))
        (*size)--;
}

/* Digits whose value fits 64 bits. */
static bool
long_digits(const uint8_t *text, uint64_t size, uint64_t *ret_value)
{
    uint64_t value = 0;

    if (size == 0)
        return false;
    for (uint64_t i = 0; i < size; i++) {
        uint64_t digit = (uint64_t)text[i] - '0';

        if (digit > 9 || __builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, digit, &value))
            return false;
    }
    *ret_value = value;
    return true;
}

/* An optional sign and digits: at most `limit`, or limit + 1 for a negative number. */
static bool
any_integer(const uint8_t *text, uint64_t size, uint64_t limit, int64_t *ret_number)
{
    bool is_negative = false;
    uint64_t value;

    strip(&text, &size);
    if (size > 0 && (*text == '-' || *text == '+')) {
        is_negative = *text == '-';
        text++;
        size--;
    }
    if (!long_digits(text, size, &value) || value > limit + is_negative)
        return false;
    *ret_number = (int64_t)(is_negative ? -value : value);
    return true;
}

bool
number_int64_any(const uint8_t *text, uint64_t size, int64_t *ret_number)
{
    return any_integer(text, size, INT64_MAX, ret_number);
}

bool
number_int32_any(const uint8_t *text, uint64_t size, int32_t *ret_number)
{
    int64_t wide;

    if (!any_integer(text, size, INT32_MAX, &wide))
        return false;
    *ret_number = (int32_t)wide;
    return true;
}

/* Powers of ten that a double holds exactly. */
static const double powers[] = { 1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                 1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22 };

/* The fast path for [sign] digits [. digits] [e [sign] digits]. If the digits make an integer below
 * 2^53 and a double holds the power of ten exactly, one multiplication or division gives the
 * correctly rounded result (Clinger). False: not this case. */
static bool
easy_decimal(const uint8_t *text, uint64_t size, double *ret_number)
{
    const uint8_t *end = text + size;
    bool is_negative = false;
    uint64_t digits = 0;
    int64_t exponent = 0;
    const uint8_t *begin;
    const uint8_t *point = NULL;

    if (text < end && (*text == '-' || *text == '+'))
        is_negative = *text++ == '-';
    begin = text;
    for (; text < end; text++) {
        uint8_t digit = (uint8_t)(*text - '0');

        if (digit <= 9)
            digits = 10 * digits + digit;
        else if (*text == '.' && point == NULL)
            point = text;
        else
            break;
    }
    if (text - begin > 19 || text - begin == (point != NULL))
        return false;
    if (point != NULL)
        exponent = point + 1 - text;
    if (text < end) {
        int64_t written;

        if ((*text != 'e' && *text != 'E') || end - text > 5 || text + 1 == end ||
            text_is_blank(text[1]) ||
            !any_integer(text + 1, (uint64_t)(end - text - 1), 9999, &written))
            return false;
        exponent += written;
    }
    if (digits >> 53 != 0 || exponent < -22 || exponent > 22)
        return false;
    *ret_number =
        exponent < 0 ? (double)digits / powers[-exponent] : (double)digits * powers[exponent];
    if (is_negative)
        *ret_number = -*ret_number;
    return true;
}

/* Let the C library read the text; once the blanks are gone it accepts the same forms as
 * TensorFlow. The text needs a NUL, hence the copy. */
static bool
read_by_library(const uint8_t *text, uint64_t size, float *ret_float, double *ret_double)
{
    char copy[128];
    char *memory = size < sizeof copy ? copy : tnd_alloc(size + 1);
    char *end;
    bool is_whole;

    memcpy(memory, text, size);
    memory[size] = '\0';
    if (ret_float != NULL)
        *ret_float = strtof(memory, &end);
    else
        *ret_double = strtod(memory, &end);
    is_whole = size > 0 && end == memory + size && !text_is_blank((uint8_t)memory[0]);
    if (memory != copy)
        free(memory);
    return is_whole;
}

bool
number_float64_any(const uint8_t *text, uint64_t size, double *ret_number)
{
    double number;

    strip(&text, &size);
    if (!easy_decimal(text, size, &number) && !read_by_library(text, size, NULL, &number))
        return false;
    *ret_number = number;
    return true;
}

/* Whether narrowing a rounded double gives the correctly rounded float. Only a double exactly
 * between two floats is in doubt, for the text may lie on either side; outside the normal range,
 * leave it to the library. */
static bool
rounds_safely(double number)
{
    uint64_t bits;

    memcpy(&bits, &number, sizeof bits);
    bits &= UINT64_MAX >> 1;
    return number == 0 || ((bits & 0x1fffffff) != 0x10000000 && bits >> 52 >= 1023 - 126 &&
                           bits >> 52 < 1023 + 127);
}

bool
number_float32_any(const uint8_t *text, uint64_t size, float *ret_number)
{
    double number;
    float narrow;

    strip(&text, &size);
    if (easy_decimal(text, size, &number) && rounds_safely(number))
        narrow = (float)number;
    else if (!read_by_library(text, size, &narrow, NULL))
        return false;
    *ret_number = narrow;
    return true;
}
