/* json_string.c - find the end of a JSON string, and decode its escapes. */
#include "content/records/json_string.h"

#include <string.h>

#include "content/text/texts.h"

static const char letters[] = "\"\\/bfnrt";
static const char meanings[] = "\"\\/\b\f\n\r\t";

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

/* After a backslash: an escape that means something. */
static const char *
scan_escape(const uint8_t **at, const uint8_t *end)
{
    uint8_t letter = *at < end ? *(*at)++ : 0;

    if (letter == 'u')
        return four_digits(at, end) < 0 ? "a \\u escape without four hexadecimal digits" : NULL;
    return letter != 0 && strchr(letters, letter) != NULL ? NULL : "an unknown escape";
}

/* Ones in the high bits of bytes that a string's plain text does not have: its lowest such byte is
 * right. */
static uint64_t
special_bytes(uint64_t word)
{
    const uint64_t ones = UINT64_C(0x0101010101010101), highs = UINT64_C(0x8080808080808080);
    uint64_t quotes = word ^ ones * '"', slashes = word ^ ones * '\\';

    return ((quotes - ones) | (slashes - ones) | (word - ones * 0x20)) & ~word & highs;
}

/* Pass over plain text, eight bytes at a time. */
static const uint8_t *
scan_plain(const uint8_t *at, const uint8_t *end)
{
    while (at < end) {
        uint64_t special = special_bytes(load_u64(at));

        if (special != 0) {
            at += __builtin_ctzll(special) / 8;
            break;
        }
        at += 8;
    }
    return at < end ? at : end;
}

const char *
json_string_scan(const uint8_t **at, const uint8_t *end, bool *ret_has_escapes)
{
    const char *problem;

    *ret_has_escapes = false;
    for (;;) {
        *at = scan_plain(*at, end);
        if (*at == end)
            return "a string without a closing quote";
        if (**at == '"')
            return NULL;
        if (**at < 0x20)
            return "a control character in a string";
        *ret_has_escapes = true;
        ++*at;
        problem = scan_escape(at, end);
        if (problem != NULL)
            return problem;
    }
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
        return "half of a surrogate pair";
    }
    *used += text_utf8((uint32_t)code, to + *used);
    return NULL;
}

/* Decode one escape, after its backslash. */
static const char *
escape(const uint8_t **at, const uint8_t *end, uint8_t *to, uint64_t *used)
{
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
