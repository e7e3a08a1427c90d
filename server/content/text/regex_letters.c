/* regex_letters.c - see regex_letters.h. Only the outline of a pattern is read here. RE2 says which
 * bytes are in the set. */
#include "content/text/regex_letters.h"

#include <string.h>

/* After an escape, or NULL if it is not one of a set of letters. *ret_wide: characters beyond ASCII
 * may be in the set. */
static const char *
pass_escape(const char *at, const char *end, bool *ret_wide)
{
    char letter = at + 1 < end ? at[1] : '\0';
    const char *close;

    if (letter == '\0' || (unsigned char)letter >= 0x80)
        return NULL;
    if (strchr("dswntrfv", letter) != NULL || strchr("-.,;:!?+*/\\|()[]{}^$'\"&%#@_=<>~`", letter))
        return at + 2;
    *ret_wide = true;
    if (strchr("DSW", letter) != NULL)
        return at + 2;
    if (strchr("pP", letter) == NULL || at + 2 == end)
        return NULL;
    close = at[2] == '{' ? memchr(at, '}', (size_t)(end - at)) : at + 2;
    return close == NULL ? NULL : close + 1;
}

/* After a class [...], or NULL. */
static const char *
pass_class(const char *at, const char *end, bool *ret_wide)
{
    at++;
    if (at < end && *at == '^') {
        *ret_wide = true;
        at++;
    }
    if (at < end && *at == ']') /* literal as the first of a class */
        at++;
    while (at != NULL && at < end && *at != ']') {
        if (*at == '\\') {
            at = pass_escape(at, end, ret_wide);
        } else if (*at == '[' && at + 1 < end && at[1] == ':') { /* [:alpha:], [:^alpha:] */
            *ret_wide = true;
            at = memmem(at + 2, (size_t)(end - at - 2), ":]", 2);
            at = at == NULL ? NULL : at + 2;
        } else {
            *ret_wide |= (unsigned char)*at >= 0x80;
            at++;
        }
    }
    return at == NULL || at == end ? NULL : at + 1;
}

static const char *
pass_letter(const char *at, const char *end, bool *ret_wide)
{
    if (at == end || (unsigned char)*at >= 0x80 || strchr(".^$*+?()|{}", *at) != NULL)
        return NULL;
    if (*at == '\\')
        return pass_escape(at, end, ret_wide);
    return *at == '[' ? pass_class(at, end, ret_wide) : at + 1;
}

bool
regex_letters_open(const struct regex *regex, const char *pattern, size_t bytes,
                   struct regex_letters *ret_letters)
{
    const char *end = pattern + bytes;
    bool is_wide = false;
    const char *at = pass_letter(pattern, end, &is_wide);
    struct regex_letters letters = { 0 };

    if (at == NULL)
        return false;
    if (at < end && *at == '+') {
        letters.in_runs = true;
        at++;
    }
    if (at != end)
        return false;
    for (int byte = 0; byte < 256; byte++) {
        uint8_t text = (uint8_t)byte;

        letters.kind[byte] = byte >= 0x80
                                 ? (is_wide ? LETTER_UNSURE : LETTER_OUT)
                                 : (regex_matches(regex, &text, 1) ? LETTER_IN : LETTER_OUT);
    }
    *ret_letters = letters;
    return true;
}
