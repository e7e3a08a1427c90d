/* printable.c - control characters and broken UTF-8, written as \xNN. */
#include "core/printable.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Well-formed as Unicode defines it: no overlong forms, no surrogates, nothing above U+10FFFF. */
unsigned
tnd_printable_utf8_length(const uint8_t *text, uint64_t left)
{
    unsigned length = text[0] < 0x80                       ? 1
                      : text[0] >= 0xc2 && text[0] <= 0xdf ? 2
                      : (text[0] & 0xf0) == 0xe0           ? 3
                      : text[0] >= 0xf0 && text[0] <= 0xf4 ? 4
                                                           : 0;

    if (length == 0 || length > left)
        return 0;
    for (unsigned i = 1; i < length; i++)
        if ((text[i] & 0xc0) != 0x80)
            return 0;
    if (length == 3 && ((text[0] == 0xe0 && text[1] < 0xa0) || (text[0] == 0xed && text[1] > 0x9f)))
        return 0;
    if (length == 4 && ((text[0] == 0xf0 && text[1] < 0x90) || (text[0] == 0xf4 && text[1] > 0x8f)))
        return 0;
    return length;
}

/* Those of ASCII, and those of U+0080 to U+009F, which terminals obey as well. */
static bool
is_control(const uint8_t *character)
{
    return character[0] < 0x20 || character[0] == 0x7f ||
           (character[0] == 0xc2 && character[1] < 0xa0);
}

size_t
tnd_printable(const char *text, char *ret_text, size_t room)
{
    const uint8_t *bytes = (const uint8_t *)text;
    size_t left = strlen(text), wanted = 0, used = 0;

    while (left > 0) {
        unsigned length = tnd_printable_utf8_length(bytes, left);
        bool escaped = length == 0 || is_control(bytes);
        unsigned step = length > 0 ? length : 1;
        size_t takes = escaped ? 4 * (size_t)step : step;

        /* As long as nothing was left out. The text is cut between characters, never within one. */
        if (used == wanted && used + takes < room) {
            for (unsigned i = 0; escaped && i < step; i++)
                snprintf(ret_text + used + 4 * i, 5, "\\x%02x", bytes[i]);
            if (!escaped)
                memcpy(ret_text + used, bytes, step);
            used += takes;
        }
        wanted += takes;
        bytes += step;
        left -= step;
    }
    if (room > 0)
        ret_text[used] = '\0';
    return wanted;
}
