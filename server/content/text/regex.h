/* regex.h - RE2's regular expressions, matched by PCRE2.
 *
 * What RE2 refuses (references back, looking around, possessive and atomic groups, recursion) is
 * refused; what the two read differently is rewritten: \s is [\t\n\f\r ], $ stands only at the end
 * of the text. Both prefer the leftmost match and the first alternative. Texts are UTF-8; bytes
 * that are not match nothing.
 */
#ifndef CONTENT_REGEX_H
#define CONTENT_REGEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The pattern as PCRE2 takes it; the caller frees it. *ret_fault says what is not RE2's, else NULL.
 * *ret_in_bytes: it has \C, and is to be matched byte by byte instead of as UTF-8. */
char *regex_translate(const char *pattern, size_t bytes, bool *ret_in_bytes,
                      const char **ret_fault);

#endif
