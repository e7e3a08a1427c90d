/* decimal_words.h - the decimal text of an integer in registers, for hashing. Through memory it
 * would be slower: a wide load waits until narrower stores to the same bytes have completed. */
#ifndef TND_CORE_DECIMAL_WORDS_H
#define TND_CORE_DECIMAL_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

__extension__ typedef unsigned __int128 tnd_text_words;

enum { TND_TEXT_WORDS_BYTES = 16 };

/* The eight digits of a number below 10^8, zeros in front, the first one lowest: halves are split
 * at once, by products that are exact for them. */
static inline uint64_t
tnd_eight_digits(uint32_t number)
{
    uint64_t fours = number / 10000 | (uint64_t)(number % 10000) << 32, twos, ones;

    twos = fours * 5243 >> 19 & UINT64_C(0x0000007F0000007F); /* by 100 */
    twos |= (fours - 100 * twos) << 16;
    ones = twos * 103 >> 10 & UINT64_C(0x000F000F000F000F); /* by 10 */
    return ones | (twos - 10 * ones) << 8;
}

/* A number below 10^8 without zeros in front. */
static inline uint64_t
tnd_short_decimal(uint32_t number, size_t *ret_bytes)
{
    uint64_t digits = tnd_eight_digits(number);
    /* The last digit stays, whatever it is. */
    unsigned zeros = (unsigned)__builtin_ctzll(digits | UINT64_C(1) << 56) & ~7U;

    *ret_bytes = 8 - zeros / 8;
    return (digits | UINT64_C(0x3030303030303030)) >> zeros;
}

/* The text, its first byte lowest and zeros after the last. False: the number is too long for it.
 */
static inline bool
tnd_decimal_words(int64_t number, tnd_text_words *ret_text, size_t *ret_bytes)
{
    const uint64_t most = UINT64_C(1000000000000000); /* 15 digits and a sign */
    uint64_t left = number < 0 ? -(uint64_t)number : (uint64_t)number;
    tnd_text_words text;
    size_t bytes;

    if (left >= most)
        return false;
    if (left < 100000000) {
        text = tnd_short_decimal((uint32_t)left, &bytes);
    } else {
        uint64_t last = tnd_eight_digits((uint32_t)(left % 100000000));

        text = tnd_short_decimal((uint32_t)(left / 100000000), &bytes);
        text |= (tnd_text_words)(last | UINT64_C(0x3030303030303030)) << (8 * bytes);
        bytes += 8;
    }
    if (number < 0) {
        text = text << 8 | '-';
        bytes++;
    }
    *ret_text = text;
    *ret_bytes = bytes;
    return true;
}

#endif
