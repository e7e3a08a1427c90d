/* name_pattern.c - patterns with * ? [..] against names. */
#include "spec/name_pattern.h"

#include <string.h>

/* Does the class at `pattern` ("[a-z]", "[!a]") contain `c`? Returns the pattern after it, or NULL
 * if it never closes: then [ stands for itself, as in fnmatch. */
static const char *
match_class(const char *pattern, char c, bool *ret_holds)
{
    const char *at = pattern + 1;
    bool negated = *at == '!' || *at == '^';
    bool holds = false;

    at += negated;
    /* The first character is taken before the loop looks for ], so that []a] contains ]. */
    do {
        unsigned char first = (unsigned char)*at, last = first;

        if (*at == '\0')
            return NULL;
        if (at[1] == '-' && at[2] != ']' && at[2] != '\0') {
            last = (unsigned char)at[2];
            at += 2;
        }
        holds = holds || ((unsigned char)c >= first && (unsigned char)c <= last);
        at++;
    } while (*at != ']');
    *ret_holds = holds != negated;
    return at + 1;
}

/* Match one step of the pattern against one character. Returns the rest of the pattern, or NULL. */
static const char *
match_one(const char *pattern, char c)
{
    bool holds;

    if (*pattern == '?')
        return pattern + 1;
    if (*pattern == '[') {
        const char *rest = match_class(pattern, c, &holds);

        if (rest != NULL)
            return holds ? rest : NULL;
    }
    return *pattern == c ? pattern + 1 : NULL;
}

/* It is enough to go back to the last *, so even a pattern of many * costs at most its length times
 * that of the name. */
bool
name_pattern_matches(const char *pattern, const char *name)
{
    const char *star = NULL, *star_name = NULL;

    while (*name != '\0') {
        const char *rest;

        if (*pattern == '*') {
            star = ++pattern;
            star_name = name;
            continue;
        }
        rest = *pattern != '\0' ? match_one(pattern, *name) : NULL;
        if (rest != NULL) {
            pattern = rest;
            name++;
        } else if (star != NULL) {
            pattern = star;
            name = ++star_name;
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return *pattern == '\0';
}

bool
name_pattern_is(const char *text)
{
    return strpbrk(text, "*?[") != NULL;
}
