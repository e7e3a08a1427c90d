/* json_scan.c - find the end of a value, and check it on the way. */
#include "content/records/json_scan.h"

#include <string.h>

#include "content/records/json_string.h"

/* A bit for each level that is open: 1 for an object. */
enum { LEVELS_MAX = 1 << 16 };

const char *
json_scan_word(const uint8_t **at, const uint8_t *end, const char *word)
{
    size_t bytes = strlen(word);

    if ((size_t)(end - *at) < bytes || memcmp(*at, word, bytes) != 0)
        return "neither a value nor a number";
    *at += bytes;
    return NULL;
}

static bool
has_digits(const uint8_t **at, const uint8_t *end)
{
    const uint8_t *begin = *at;

    while (*at < end && **at >= '0' && **at <= '9')
        ++*at;
    return *at > begin;
}

const char *
json_scan_number(const uint8_t **at, const uint8_t *end)
{
    const uint8_t *digits;

    if (*at < end && **at == 'N')
        return json_scan_word(at, end, "NaN");
    if (*at < end && **at == '-')
        ++*at;
    if (*at < end && **at == 'I')
        return json_scan_word(at, end, "Infinity");
    digits = *at;
    if (!has_digits(at, end) || (*digits == '0' && *at - digits > 1))
        return "neither a value nor a number";
    if (*at < end && **at == '.') {
        ++*at;
        if (!has_digits(at, end))
            return "a number without digits after its decimal point";
    }
    if (*at < end && (**at | 0x20) == 'e') {
        ++*at;
        if (*at < end && (**at == '-' || **at == '+'))
            ++*at;
        if (!has_digits(at, end))
            return "a number without digits in its exponent";
    }
    return NULL;
}

struct scan {
    const uint8_t *at, *end;
    uint32_t levels;
    uint64_t objects[LEVELS_MAX / 64];
};

static bool
is_next(struct scan *scan, char byte)
{
    json_scan_blanks(&scan->at, scan->end);
    if (scan->at >= scan->end || *scan->at != (uint8_t)byte)
        return false;
    scan->at++;
    return true;
}

static bool
is_in_object(const struct scan *scan)
{
    uint32_t level = scan->levels - 1;

    return (scan->objects[level / 64] >> level % 64 & 1) != 0;
}

static const char *
scan_string(struct scan *scan)
{
    bool has_escapes;
    const char *problem = json_string_scan(&scan->at, scan->end, &has_escapes);

    if (problem == NULL)
        scan->at++;
    return problem;
}

static const char *
scan_name(struct scan *scan)
{
    const char *problem;

    if (!is_next(scan, '"'))
        return "a member without a name";
    problem = scan_string(scan);
    return problem != NULL ? problem : is_next(scan, ':') ? NULL : "a member without a value";
}

/* Open a list or an object. *ret_is_value: it is empty, so that a value has ended. */
static const char *
scan_open(struct scan *scan, bool is_object, bool *ret_is_value)
{
    uint64_t bit = UINT64_C(1) << scan->levels % 64;

    if (is_next(scan, is_object ? '}' : ']')) {
        *ret_is_value = true;
        return NULL;
    }
    *ret_is_value = false;
    if (scan->levels == LEVELS_MAX)
        return "more than 65536 levels";
    if (is_object)
        scan->objects[scan->levels / 64] |= bit;
    else
        scan->objects[scan->levels / 64] &= ~bit;
    scan->levels++;
    return is_object ? scan_name(scan) : NULL;
}

/* The beginning of a value, or all of one that holds no others. */
static const char *
scan_one(struct scan *scan, bool *ret_is_value)
{
    *ret_is_value = true;
    json_scan_blanks(&scan->at, scan->end);
    if (scan->at >= scan->end)
        return "a value is missing";
    switch (*scan->at) {
    case '{':
    case '[':
        return scan_open(scan, *scan->at++ == '{', ret_is_value);
    case '"':
        scan->at++;
        return scan_string(scan);
    case 't':
        return json_scan_word(&scan->at, scan->end, "true");
    case 'f':
        return json_scan_word(&scan->at, scan->end, "false");
    case 'n':
        return json_scan_word(&scan->at, scan->end, "null");
    default:
        return json_scan_number(&scan->at, scan->end);
    }
}

/* After a value: close what ends here. *ret_is_over: the outermost value is among it. */
static const char *
scan_after(struct scan *scan, bool *ret_is_over)
{
    *ret_is_over = false;
    while (scan->levels > 0) {
        bool is_object = is_in_object(scan);

        if (is_next(scan, ','))
            return is_object ? scan_name(scan) : NULL;
        if (!is_next(scan, is_object ? '}' : ']'))
            return is_object ? "an object without a closing }" : "a list without a closing ]";
        scan->levels--;
    }
    *ret_is_over = true;
    return NULL;
}

const char *
json_scan_value(const uint8_t **at, const uint8_t *end)
{
    struct scan scan;
    const char *problem = NULL;
    bool is_over = false;

    scan.at = *at;
    scan.end = end;
    scan.levels = 0;
    while (problem == NULL && !is_over) {
        bool is_value;

        problem = scan_one(&scan, &is_value);
        if (problem == NULL && is_value)
            problem = scan_after(&scan, &is_over);
    }
    *at = scan.at;
    return problem;
}
