/* json_string.c - find the end of a JSON string, and decode its escapes. */
#include "content/records/json_string.h"

#include <string.h>

#include "content/text/texts.h"

const char *
json_string_scan(const uint8_t **at, const uint8_t *end, bool *ret_has_escapes)
{
    *ret_has_escapes = false;
    for (; *at < end && **at != '"'; ++*at) {
        if (**at < 0x20)
            return "a control character in a string";
        if (**at == '\\') {
            *ret_has_escapes = true;
            if (++*at == end)
                break;
        }
    }
    return *at < end ? NULL : "a string without a closing quote";
}

/* The value of four hexadecimal digits, or -1. */
static int32_t
four_digits(const uint8_t **at, const uint8_t *end)
{
    int32_t code = 0;

    for (int i = 0; i < 4; i++, ++*at) {
        uint8_t byte = *at < end ? **at : 0;

        if (byte >= '0' && byte <= '9')
            code = 16 * code + byte - '0';
        else if ((byte | 0x20) >= 'a' && (byte | 0x20) <= 'f')
            code = 16 * code + (byte | 0x20) - 'a' + 10;
        else
            return -1;
    }
    return code;
}

/* After \u: one character. Beyond U+FFFF it takes two escapes, a surrogate pair; half a pair is
 * refused, since UTF-8 cannot encode it. */
static const char *
unicode_escape(const uint8_t **at, const uint8_t *end, uint8_t *to, uint64_t *used)
{
    int32_t code = four_digits(at, end);

    if (code >= 0xd800 && code < 0xdc00) {
        int32_t low = -1;

        if (end - *at >= 2 && (*at)[0] == '\\' && (*at)[1] == 'u') {
            *at += 2;
            low = four_digits(at, end);
        }
        if (low < 0xdc00 || low > 0xdfff)
            return "half of a surrogate pair";
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    } else if (code < 0 || (code >= 0xdc00 && code < 0xe000)) {
        return "a \\u escape that is not a character";
    }
    *used += text_utf8((uint32_t)code, to + *used);
    return NULL;
}

/* Decode one escape, after its backslash. */
static const char *
escape(const uint8_t **at, const uint8_t *end, uint8_t *to, uint64_t *used)
{
    static const char letters[] = "\"\\/bfnrt";
    static const char meanings[] = "\"\\/\b\f\n\r\t";
    const char *letter;

    if (*at >= end)
        return "the text ends within an escape";
    if (**at == 'u') {
        ++*at;
        return unicode_escape(at, end, to, used);
    }
    letter = **at == '\0' ? NULL : strchr(letters, **at);
    if (letter == NULL)
        return "an unknown escape";
    to[(*used)++] = (uint8_t)meanings[letter - letters];
    ++*at;
    return NULL;
}

const char *
json_string_decode(const uint8_t **at, const uint8_t *end, uint8_t *to, uint64_t *ret_size)
{
    const char *problem = NULL;
    uint64_t used = 0;

    while (problem == NULL && *at < end && **at != '"') {
        if (**at != '\\') {
            to[used++] = *(*at)++;
            continue;
        }
        ++*at;
        problem = escape(at, end, to, &used);
    }
    if (problem == NULL)
        *ret_size = used;
    return problem;
}
