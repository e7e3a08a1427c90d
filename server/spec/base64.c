/* base64.c - decode standard base64, with or without padding. */
#include "spec/base64.h"

#include <string.h>

static int
digit_of(uint8_t letter)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *found = letter != '\0' ? strchr(digits, letter) : NULL;

    return found != NULL ? (int)(found - digits) : -1;
}

bool
base64_decode(struct byte_view text, uint8_t *to, uint64_t *ret_size)
{
    uint64_t size = text.size, used = 0;
    uint32_t held = 0;
    int held_bits = 0;

    while (size > 0 && text.data[size - 1] == '=')
        size--;
    for (uint64_t i = 0; i < size; i++) {
        int digit = digit_of(text.data[i]);

        if (digit < 0)
            return false;
        /* Keep 24 bits: older ones were written, and the shift must not overflow. */
        held = (held << 6 | (uint32_t)digit) & 0xFFFFFF;
        held_bits += 6;
        if (held_bits >= 8) {
            held_bits -= 8;
            to[used++] = (uint8_t)(held >> held_bits);
        }
    }
    *ret_size = used;
    return true;
}
