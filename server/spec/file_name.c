/* file_name.c - the classes \w and \s of Python's regular expressions, by ICU's tables. */
#include "spec/file_name.h"

#include <stdbool.h>
#include <unicode/uchar.h>
#include <unicode/utf8.h>

static bool
is_blank(UChar32 letter)
{
    /* Python's \s includes the four separators U+001C to U+001F, which Unicode's White_Space does
     * not. */
    return letter >= 0 && (u_isUWhiteSpace(letter) || (letter >= 0x1c && letter <= 0x1f));
}

static bool
is_word(UChar32 letter)
{
    /* Python's \w is str.isalnum() or an underscore: letters and numbers of any script. */
    return letter == '_' ||
           (letter >= 0 && (U_MASK(u_charType(letter)) & (U_GC_L_MASK | U_GC_N_MASK)) != 0);
}

char *
file_name_of(const char *text, size_t bytes, struct spec_memory *memory)
{
    char *name = spec_memory_take(memory, bytes + 1, 1);
    size_t used = 0;
    bool blank = false, hyphen = false;

    for (size_t at = 0; at < bytes;) {
        size_t begin = at;
        UChar32 letter;

        U8_NEXT((const uint8_t *)text, at, bytes, letter);
        if (is_blank(letter)) {
            /* Blanks at the beginning are stripped, and the others join with hyphens to a single
             * one. */
            blank = used > 0;
            continue;
        }
        if (letter == '-') {
            hyphen = true;
            continue;
        }
        if (blank || hyphen)
            name[used++] = '-';
        blank = hyphen = false;
        /* A byte that is not UTF-8 becomes an underscore. */
        if (is_word(letter))
            while (begin < at)
                name[used++] = text[begin++];
        else
            name[used++] = '_';
    }
    if (hyphen)
        name[used++] = '-';
    name[used] = '\0';
    return name;
}
