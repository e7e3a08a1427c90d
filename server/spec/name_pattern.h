/* name_pattern.h - patterns with * ? [a-z] [!a] against names. A backslash is a letter like others.
 */
#ifndef SPEC_NAME_PATTERN_H
#define SPEC_NAME_PATTERN_H

#include <stdbool.h>

/* Could `text` be a pattern? */
bool name_pattern_is(const char *text);

/* Does the pattern match the whole name? */
bool name_pattern_matches(const char *pattern, const char *name);

#endif
