/* yaml_breaks.c - line breaks of YAML 1.1, hidden from libyaml. */
#include "spec/yaml_breaks.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"

/* U+E000 to U+F8FF, three bytes each. */
enum { PRIVATE_FIRST = 0xe000, PRIVATE_COUNT = 0x1900 };

static const struct letter {
    const char *text;
    size_t bytes;
} letters[YAML_BREAKS] = { { "\xc2\x85", 2 }, { "\xe2\x80\xa8", 3 }, { "\xe2\x80\xa9", 3 } };

/* Which of them begins here, or YAML_BREAKS. */
static size_t
letter_at(const char *at, size_t left)
{
    for (size_t i = 0; i < YAML_BREAKS; i++)
        if (left >= letters[i].bytes && memcmp(at, letters[i].text, letters[i].bytes) == 0)
            return i;
    return YAML_BREAKS;
}

static void
use(bool *used, uint32_t code_point)
{
    if (code_point >= PRIVATE_FIRST && code_point < PRIVATE_FIRST + PRIVATE_COUNT)
        used[code_point - PRIVATE_FIRST] = true;
}

/* The code point of the escape \uXXXX or \UXXXXXXXX, or 0. */
static uint32_t
escaped(const char *at, size_t left)
{
    size_t digits = left < 2 ? 0 : at[1] == 'u' ? 4 : at[1] == 'U' ? 8 : 0;
    char number[9] = "";

    if (digits == 0 || left < 2 + digits)
        return 0;
    memcpy(number, at + 2, digits);
    return (uint32_t)strtoul(number, NULL, 16);
}

/* Mark the private letters that are in the file, or may come out of an escape. */
static void
mark_used(const char *text, size_t text_bytes, bool *used)
{
    for (size_t i = 0; i < text_bytes; i++) {
        const unsigned char *at = (const unsigned char *)&text[i];

        if (*at == '\\')
            use(used, escaped(&text[i], text_bytes - i));
        else if ((*at & 0xf0) == 0xe0 && text_bytes - i >= 3)
            use(used, (uint32_t)(at[0] & 0x0f) << 12 | (uint32_t)(at[1] & 0x3f) << 6 |
                          (uint32_t)(at[2] & 0x3f));
    }
}

static bool
choose(const char *text, size_t text_bytes, struct yaml_breaks *breaks)
{
    bool *used = tnd_zalloc(PRIVATE_COUNT, sizeof *used);
    size_t chosen = 0;

    mark_used(text, text_bytes, used);
    for (uint32_t i = 0; i < PRIVATE_COUNT && chosen < YAML_BREAKS; i++) {
        uint32_t code_point = PRIVATE_FIRST + i;
        unsigned char *bytes = breaks->stand_ins[chosen];

        if (used[i])
            continue;
        bytes[0] = (unsigned char)(0xe0 | code_point >> 12);
        bytes[1] = (unsigned char)(0x80 | (code_point >> 6 & 0x3f));
        bytes[2] = (unsigned char)(0x80 | (code_point & 0x3f));
        chosen++;
    }
    free(used);
    return chosen == YAML_BREAKS;
}

static size_t
count_letters(const char *text, size_t text_bytes)
{
    size_t count = 0;

    for (size_t i = 0; i < text_bytes; i++)
        count += letter_at(&text[i], text_bytes - i) < YAML_BREAKS;
    return count;
}

bool
yaml_breaks_hide(const char *text, size_t text_bytes, struct yaml_breaks *ret_breaks)
{
    struct yaml_breaks breaks = { 0 };
    size_t count = count_letters(text, text_bytes);

    if (count == 0) {
        *ret_breaks = breaks;
        return true;
    }
    if (!choose(text, text_bytes, &breaks))
        return false;
    breaks.text = tnd_alloc(text_bytes + count); /* two bytes may become three */
    for (size_t i = 0; i < text_bytes;) {
        size_t letter = letter_at(&text[i], text_bytes - i);

        if (letter < YAML_BREAKS) {
            memcpy(&breaks.text[breaks.text_bytes], breaks.stand_ins[letter], 3);
            breaks.text_bytes += 3;
            i += letters[letter].bytes;
        } else {
            breaks.text[breaks.text_bytes++] = text[i++];
        }
    }
    *ret_breaks = breaks;
    return true;
}

void
yaml_breaks_close(struct yaml_breaks *breaks)
{
    free(breaks->text);
    *breaks = (struct yaml_breaks){ 0 };
}

size_t
yaml_breaks_restore(const struct yaml_breaks *breaks, char *scalar, size_t scalar_bytes)
{
    size_t bytes = 0;

    if (breaks->text == NULL)
        return scalar_bytes;
    for (size_t i = 0; i < scalar_bytes;) {
        size_t letter = 0;

        while (letter < YAML_BREAKS &&
               (scalar_bytes - i < 3 || memcmp(&scalar[i], breaks->stand_ins[letter], 3) != 0))
            letter++;
        if (letter == YAML_BREAKS) {
            scalar[bytes++] = scalar[i++];
        } else {
            memcpy(&scalar[bytes], letters[letter].text, letters[letter].bytes);
            bytes += letters[letter].bytes;
            i += 3;
        }
    }
    scalar[bytes] = '\0';
    return bytes;
}
