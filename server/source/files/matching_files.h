/* matching_files.h - the paths that match patterns, as tf.io.matching_files finds them.
 *
 * Each component of a pattern may hold * ? [..] [!..] and \ before a literal character; * also
 * matches names that begin with a dot. {a..b} and ** are not supported.
 */
#ifndef SOURCE_MATCHING_FILES_H
#define SOURCE_MATCHING_FILES_H

#include <stddef.h>
#include <stdint.h>

#include "core/status.h"

struct glob_list {
    size_t count;
    char **paths;     /* owned, in byte order; a path that two patterns match is there twice */
    uint32_t *labels; /* one for each path, or NULL */
};

/* Find the files that match any of the patterns; relative ones start at `root`, and their matches
 * are reported relative to it. Nothing found is not an error here. */
tundish_status glob_find(const char *root, const char *const *patterns, size_t pattern_count,
                         struct glob_list *ret_list);
void glob_list_close(struct glob_list *list);

#endif
