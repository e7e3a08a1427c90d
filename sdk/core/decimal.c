/* decimal.c - integers as decimal text, two digits at a time. */
#include "core/decimal.h"

#include <string.h>

static const char pairs[] = "00010203040506070809101112131415161718192021222324"
                            "25262728293031323334353637383940414243444546474849"
                            "50515253545556575859606162636465666768697071727374"
                            "75767778798081828384858687888990919293949596979899";

size_t
tnd_decimal(int64_t number, char ret_text[TND_DECIMAL_BYTES])
{
    char text[TND_DECIMAL_BYTES];
    size_t at = sizeof text;
    uint64_t left = number < 0 ? -(uint64_t)number : (uint64_t)number;

    while (left >= 10) {
        at -= 2;
        memcpy(text + at, pairs + 2 * (left % 100), 2);
        left /= 100;
    }
    if (left != 0 || at == sizeof text)
        text[--at] = (char)('0' + left);
    if (number < 0)
        text[--at] = '-';
    memcpy(ret_text, text + at, sizeof text - at);
    return sizeof text - at;
}
