/* regex.c - translate a pattern from RE2's syntax to PCRE2's in one pass, and refuse what RE2 would
 * not accept. */
#include "content/text/regex.h"

#include <ctype.h>
#include <string.h>

#include "core/memory.h"

struct translation {
    const char *at, *end;
    char *out; /* 32 bytes for each byte; the longest replacement is 60 for 2 */
    bool in_class;
    bool after_repeat; /* after a repetition, where + would mean possessive */
    bool has_byte;     /* \C */
    bool has_letters;  /* something that may match several bytes */
    const char *fault;
};

static void
put(struct translation *t, const char *text)
{
    size_t bytes = strlen(text);

    memcpy(t->out, text, bytes);
    t->out += bytes;
}

/* \d, \s, \w and their complements as explicit ranges. RE2's are ASCII only, without \v among the
 * blanks. PCRE2's \D, \S and \W do not match beyond ASCII while ill-formed text is allowed. */
static const struct range {
    char letter;
    const char *inside; /* a class */
} ranges[] = {
    { 'd', "0-9" },           { 'D', "\\x00-\\x2f\\x3a-\\x{10ffff}" },
    { 's', "\\t\\n\\f\\r " }, { 'S', "\\x00-\\x08\\x0b\\x0e-\\x1f\\x21-\\x{10ffff}" },
    { 'w', "0-9A-Za-z_" },    { 'W', "\\x00-\\x2f\\x3a-\\x40\\x5b-\\x5e\\x60\\x7b-\\x{10ffff}" },
};

static bool
translate_range(struct translation *t, char letter)
{
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        if (ranges[i].letter != letter)
            continue;
        put(t, t->in_class ? "" : "[");
        put(t, ranges[i].inside);
        put(t, t->in_class ? "" : "]");
        return true;
    }
    return false;
}

/* Copy the braces of \p{Lu} and \x{1F600}: these are not repetitions. */
static void
copy_braces(struct translation *t)
{
    const char *close =
        t->at < t->end && *t->at == '{' ? memchr(t->at, '}', (size_t)(t->end - t->at)) : NULL;

    if (close == NULL)
        return;
    memcpy(t->out, t->at, (size_t)(close + 1 - t->at));
    t->out += close + 1 - t->at;
    t->at = close + 1;
}

/* \Q ... \E, or to the end of the pattern: literal text. Escape everything that could have a
 * meaning. */
static void
translate_quote(struct translation *t)
{
    static const char digits[] = "0123456789abcdef";

    for (t->at += 2; t->at < t->end; t->at++) {
        unsigned char c = (unsigned char)*t->at;

        if (c == '\\' && t->at + 1 < t->end && t->at[1] == 'E') {
            t->at += 2;
            return;
        }
        if (c >= 0x80 || isalnum(c)) {
            *t->out++ = (char)c;
            continue;
        }
        put(t, "\\x");
        *t->out++ = digits[c >> 4];
        *t->out++ = digits[c & 15];
    }
}

static bool
is_repeated(const struct translation *t, const char *at)
{
    return at < t->end && (*at == '*' || *at == '+' || *at == '?' || *at == '{');
}

/* An anchor such as ^ or \b. RE2 allows it to be repeated; PCRE2 needs a group for that. */
static void
put_anchor(struct translation *t, size_t bytes)
{
    bool grouped = is_repeated(t, t->at + bytes);

    put(t, grouped ? "(?:" : "");
    memcpy(t->out, t->at, bytes);
    t->out += bytes;
    put(t, grouped ? ")" : "");
    t->at += bytes;
}

/* Translate an escape. Letters with the same meaning in both are copied. */
static void
translate_escape(struct translation *t)
{
    char letter = t->at + 1 < t->end ? t->at[1] : '\0';

    t->after_repeat = false;
    t->has_letters |= letter != '\0' && strchr("DSWpPx", letter) != NULL;
    if (!t->in_class && letter == 'Q') {
        translate_quote(t);
        return;
    }
    if (!t->in_class && letter == 'C') {
        t->has_byte = true;
        put(t, "[\\x00-\\xff]");
        t->at += 2;
        return;
    }
    if (!t->in_class && letter != '\0' && strchr("AbBz", letter) != NULL) {
        put_anchor(t, 2);
        return;
    }
    if (letter == '\0')
        t->fault = "it ends in \\";
    else if (letter == 'v')
        put(t, "\\x0b");
    else if (letter >= '1' && letter <= '9' &&
             !(t->at + 2 < t->end && t->at[2] >= '0' && t->at[2] <= '7' && letter <= '7'))
        /* RE2 has no back references; \1 to \7 followed by an octal digit are octal codes. */
        t->fault = "it refers back to a group";
    else if (isalpha((unsigned char)letter) && strchr("adDfnprtwWxPsS", letter) == NULL)
        t->fault = "it has an escape that is not RE2's";
    else if (!translate_range(t, letter)) {
        *t->out++ = '\\';
        *t->out++ = letter;
    }
    t->at += letter == '\0' ? 1 : 2;
    if (letter == 'p' || letter == 'P' || letter == 'x')
        copy_braces(t);
}

/* After (? may follow flags, a colon for a group without a number, or a name. */
static void
check_group(struct translation *t)
{
    const char *at = t->at + 2;

    if (t->at + 1 >= t->end || t->at[1] != '?')
        return;
    if (at < t->end && *at == 'P' && at + 1 < t->end && at[1] == '<')
        return;
    while (at < t->end && strchr("imsU-", *at) != NULL)
        at++;
    if (at == t->end || (*at != ':' && *at != ')'))
        t->fault = "it has a kind of group that is not RE2's";
}

/* Read a decimal number; stop counting above 1000, so that it cannot overflow. */
static const char *
read_count(const char *at, const char *end, int *ret_count)
{
    int count = 0;

    for (; at < end && *at >= '0' && *at <= '9'; at++)
        count = count > 1000 ? count : count * 10 + (*at - '0');
    *ret_count = count;
    return at;
}

/* {n}, {n,} or {n,m}: RE2 allows up to 1000. */
static void
check_counts(struct translation *t)
{
    int least, most = 0;
    const char *at = read_count(t->at + 1, t->end, &least);

    if (at == t->at + 1)
        return;
    if (at < t->end && *at == ',')
        at = read_count(at + 1, t->end, &most);
    if (at < t->end && *at == '}' && (least > 1000 || most > 1000))
        t->fault = "it repeats more than 1000 times";
}

static void
translate_plain(struct translation *t)
{
    char c = *t->at;
    bool repeats = c == '*' || c == '+' || c == '?' || c == '}';

    if (c == '[') {
        t->in_class = true;
        *t->out++ = *t->at++;
        if (t->at < t->end && *t->at == '^') {
            t->has_letters = true;
            *t->out++ = *t->at++;
        }
        if (t->at < t->end && *t->at == ']') /* literal as the first of a class */
            *t->out++ = *t->at++;
        t->after_repeat = false;
        return;
    }
    if (c == '^' || c == '$') {
        t->after_repeat = false;
        put_anchor(t, 1);
        return;
    }
    if (c == '(')
        check_group(t);
    t->has_letters |=
        c == '.' || (unsigned char)c >= 0x80 || (c == '(' && t->at + 1 < t->end && t->at[1] == '?');
    if (c == '{')
        check_counts(t);
    if (t->after_repeat && (c == '+' || c == '*'))
        t->fault = "it repeats a repetition";
    t->after_repeat = repeats && !t->after_repeat;
    *t->out++ = *t->at++;
}

static void
translate_class(struct translation *t)
{
    if (t->at[0] == '[' && t->at + 1 < t->end && t->at[1] == ':') { /* [:alpha:] */
        const char *close = memmem(t->at, (size_t)(t->end - t->at), ":]", 2);

        if (close != NULL) {
            memcpy(t->out, t->at, (size_t)(close + 2 - t->at));
            t->out += close + 2 - t->at;
            t->at = close + 2;
            return;
        }
    }
    if (t->at[0] == ']')
        t->in_class = false;
    if (t->at[0] == '[') /* literal to RE2; PCRE2 may see a class */
        *t->out++ = '\\';
    *t->out++ = *t->at++;
}

char *
regex_translate(const char *pattern, size_t bytes, bool *ret_in_bytes, const char **ret_fault)
{
    char *made = tnd_zalloc(bytes * 32 + 16, 1);
    struct translation t = { .at = pattern, .end = pattern + bytes, .out = made };

    while (t.at < t.end && t.fault == NULL) {
        if (*t.at == '\\')
            translate_escape(&t);
        else if (t.in_class)
            translate_class(&t);
        else
            translate_plain(&t);
    }
    *t.out = '\0';
    if (t.fault == NULL && t.has_byte && t.has_letters)
        t.fault = "\\C matches one byte and may be combined only with other single bytes";
    *ret_in_bytes = t.has_byte;
    *ret_fault = t.fault;
    return made;
}
