/* glob.h - patterns with * ? [a-z] [!a] against names. A backslash is a letter like others. */
#ifndef SPEC_GLOB_H
#define SPEC_GLOB_H

#include <stdbool.h>

/* Could `text` be a pattern? */
bool glob_is(const char *text);

/* Does the pattern match the whole name? */
bool glob_matches(const char *pattern, const char *name);

#endif
