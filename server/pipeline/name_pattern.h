/* name_pattern.h - patterns with * ? [a-z] [!a] against names. A backslash is a letter like others.
 */
#ifndef PIPELINE_NAME_PATTERN_H
#define PIPELINE_NAME_PATTERN_H

#include <stdbool.h>

/* Could `text` be a pattern? */
bool glob_is(const char *text);

/* Does the pattern match the whole name? */
bool glob_matches(const char *pattern, const char *name);

#endif
