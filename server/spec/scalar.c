/* scalar.c - the type of an unquoted word, and environment variables in it. */
#include "spec/scalar.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"

/* A text with variables may refer to long ones many times. */
enum { EXPANDED_BYTES_MAX = 1 << 20 };

static bool
is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool
is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static size_t
name_bytes(const char *text)
{
    size_t bytes = 0;

    if (is_letter(text[0]))
        while (is_letter(text[bytes]) || is_digit(text[bytes]))
            bytes++;
    return bytes;
}

/* Expand the "${..." at `text`. Returns how many bytes of `text` it used; 0 after a complaint. */
static size_t
expand_one(const char *text, const struct spec_value *value, FILE *out, struct spec_errors *errors)
{
    const char *name = text + 2;
    const char *end = name + name_bytes(name); /* of the name */
    const char *closing = memchr(name, '}', (size_t)(value->text + value->text_bytes - name));
    const char *content;
    char name_text[256];

    if (closing == NULL || end == name || (end != closing && strncmp(end, ":-", 2) != 0)) {
        spec_complain(errors, value->line, value->column,
                      "expected ${NAME} or ${NAME:-default} in \"%.200s\"; write $${ for ${ itself",
                      value->text);
        return 0;
    }
    if ((size_t)(end - name) >= sizeof name_text) {
        spec_complain(errors, value->line, value->column,
                      "the name of the environment variable is longer than %zu letters",
                      sizeof name_text - 1);
        return 0;
    }
    memcpy(name_text, name, (size_t)(end - name));
    name_text[end - name] = '\0';
    content = getenv(name_text);
    /* As the shell's ${NAME:-default}: the default also replaces an empty value. */
    if (content != NULL && (*content != '\0' || end == closing))
        fputs(content, out);
    else if (end != closing)
        fwrite(end + 2, 1, (size_t)(closing - end - 2), out);
    else {
        spec_complain(errors, value->line, value->column,
                      "the environment variable %s is not set; ${%s:-default} gives a default",
                      name_text, name_text);
        return 0;
    }
    return (size_t)(closing + 1 - text);
}

tundish_status
scalar_expand(struct spec_value *value, struct spec_memory *memory, struct spec_errors *errors)
{
    tundish_status status = TUNDISH_OK;
    char *expanded;
    size_t expanded_bytes;
    const char *end = value->text + value->text_bytes;
    FILE *out;

    if (memmem(value->text, value->text_bytes, "${", 2) == NULL)
        return TUNDISH_OK;
    out = open_memstream(&expanded, &expanded_bytes);
    tnd_must_have(out != NULL);
    for (const char *at = value->text; at < end && status == TUNDISH_OK;) {
        size_t taken = 1;

        /* $${ is a literal ${. */
        if (strncmp(at, "$${", 3) == 0) {
            fputs("${", out);
            taken = 3;
        } else if (strncmp(at, "${", 2) == 0) {
            taken = expand_one(at, value, out, errors);
            if (taken == 0)
                status = TUNDISH_E_PIPELINE;
        } else {
            fputc(*at, out);
        }
        at += taken;
        if (ftell(out) > EXPANDED_BYTES_MAX)
            status = spec_complain(errors, value->line, value->column,
                                   "with its environment variables this text is longer than 1 MiB");
    }
    tnd_must_have(fclose(out) == 0);
    if (status == TUNDISH_OK) {
        value->text = spec_memory_text(memory, expanded, expanded_bytes);
        value->text_bytes = expanded_bytes;
    }
    free(expanded);
    return status;
}

static size_t
digits(const char *text)
{
    size_t count = 0;

    while (is_digit(text[count]))
        count++;
    return count;
}

/* A number of YAML 1.2's core schema: [-+]? ( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]?
 * [0-9]+ )? */
static bool
is_decimal(const char *text, bool *ret_integer)
{
    const char *at = text + (*text == '-' || *text == '+');
    size_t before = digits(at);
    size_t after = 0;
    bool has_point;

    at += before;
    has_point = *at == '.';
    if (has_point) {
        after = digits(at + 1);
        at += 1 + after;
    }
    if (before + after == 0)
        return false;
    *ret_integer = !has_point;
    if (*at == 'e' || *at == 'E') {
        at++;
        at += *at == '-' || *at == '+';
        if (digits(at) == 0)
            return false;
        at += digits(at);
        *ret_integer = false;
    }
    return *at == '\0';
}

/* 0o17 or 0x1f. YAML 1.2 has no 017 and no 0b1. */
static int
prefixed_base(const char *text)
{
    bool octal = strncmp(text, "0o", 2) == 0;
    bool hexadecimal = strncmp(text, "0x", 2) == 0;

    if (octal && text[2] != '\0' && strspn(text + 2, "01234567") == strlen(text + 2))
        return 8;
    if (hexadecimal && text[2] != '\0' &&
        strspn(text + 2, "0123456789abcdefABCDEF") == strlen(text + 2))
        return 16;
    return 0;
}

static bool
take_integer(struct spec_value *value, const char *digits_text, int base)
{
    bool negative = value->text[0] == '-';
    unsigned long long magnitude;

    errno = 0;
    magnitude = strtoull(digits_text, NULL, base);
    /* -2^63 is an int64 although its magnitude is not. */
    if (errno == ERANGE || (negative && magnitude > (uint64_t)INT64_MAX + 1))
        return false;
    if (negative) {
        value->kind = SPEC_INTEGER;
        value->integer = (int64_t)-magnitude;
        value->number = (double)value->integer;
        return true;
    }
    value->kind = magnitude <= INT64_MAX ? SPEC_INTEGER : SPEC_NATURAL;
    value->natural = magnitude;
    value->integer = value->kind == SPEC_INTEGER ? (int64_t)magnitude : 0;
    value->number = (double)magnitude;
    return true;
}

static bool
is_one_of(const char *text, const char *const *words)
{
    for (; *words != NULL; words++)
        if (strcmp(text, *words) == 0)
            return true;
    return false;
}

static bool
take_special(struct spec_value *value)
{
    /* The words of YAML 1.2's core schema. Only true and false are booleans here: True and yes are
     * texts, which a message explains. */
    static const char *const nulls[] = { "", "~", "null", "Null", "NULL", NULL };
    static const char *const infinities[] = { ".inf", ".Inf", ".INF", NULL };
    static const char *const nans[] = { ".nan", ".NaN", ".NAN", NULL };
    const char *text = value->text;
    const char *unsigned_text = text + (*text == '-' || *text == '+');

    if (is_one_of(text, nulls)) {
        value->kind = SPEC_NULL;
    } else if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0) {
        value->kind = SPEC_BOOL;
        value->boolean = text[0] == 't';
    } else if (is_one_of(unsigned_text, infinities)) {
        value->kind = SPEC_NUMBER;
        value->number = *text == '-' ? -INFINITY : INFINITY;
    } else if (is_one_of(text, nans)) {
        value->kind = SPEC_NUMBER;
        value->number = NAN;
    } else {
        return false;
    }
    return true;
}

/* $name, or $name(integer). Any other text that begins with $ is a text. */
static bool
take_variable(struct spec_value *value, struct spec_memory *memory)
{
    const char *name = value->text + 1;
    size_t bytes;
    const char *after_name;
    char *end;

    if (value->text[0] != '$')
        return false;
    bytes = name_bytes(name);
    after_name = name + bytes;
    if (bytes == 0)
        return false;
    if (*after_name == '(') {
        errno = 0;
        value->integer = strtoll(after_name + 1, &end, 10);
        /* $per_replica_batch_size(N) is the only one with an argument; check_stream says so if it
         * is another. */
        if (end == after_name + 1 || errno != 0 || strcmp(end, ")") != 0)
            return false;
        value->has_argument = true;
    } else if (*after_name != '\0') {
        return false;
    }
    value->kind = SPEC_VARIABLE;
    value->text = spec_memory_text(memory, name, bytes);
    value->text_bytes = bytes;
    return true;
}

bool
scalar_type(struct spec_value *value, struct spec_memory *memory)
{
    const char *text = value->text;
    bool integer;

    value->kind = SPEC_TEXT;
    /* A text with a NUL inside can be nothing else. */
    if (strlen(text) != value->text_bytes || take_special(value) || take_variable(value, memory))
        return true;
    /* A number that does not fit 64 bits returns false: the reader complains. */
    if (prefixed_base(text) != 0)
        return take_integer(value, text + 2, prefixed_base(text));
    if (!is_decimal(text, &integer))
        return true;
    if (integer)
        return take_integer(value, text + (*text == '-' || *text == '+'), 10);
    value->kind = SPEC_NUMBER;
    value->number = strtod(text, NULL);
    return true;
}
