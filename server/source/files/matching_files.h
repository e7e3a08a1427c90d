/* matching_files.h - the paths that match patterns, as tf.io.matching_files finds them.
 *
 * Each component of a pattern may hold * ? [..] [!..] and \ before a literal character; * also
 * matches names that begin with a dot. {a..b} and ** are not supported.
 */
#ifndef SOURCE_FILES_MATCHING_FILES_H
#define SOURCE_FILES_MATCHING_FILES_H

#include <stddef.h>
#include <stdint.h>

#include "core/status.h"

struct catalogue;
struct listed;
struct remote_seen;
struct spec_remote;

struct matching_files {
    size_t count;
    char **paths;     /* owned, in byte order; a path that two patterns match is there twice */
    uint32_t *labels; /* one for each path, or NULL */
    char *texts;      /* in which all paths lie; NULL: each is owned by itself */
};

/* Where paths that are not absolute start, how URLs are read (NULL: by the defaults), what stores
 * said before (or NULL), what was found here before (or NULL), and the files of all nodes (NULL:
 * files are those found here). */
struct path_base {
    const char *root;
    const struct spec_remote *remote;
    struct remote_seen *seen;
    struct listed *listed;
    const struct catalogue *catalogue;
};

/* Find the files that match any of the patterns; relative ones start at the root, and their matches
 * are reported relative to it. Nothing found is not an error here. URLs are asked for at their
 * store, whose keys are matched as paths are. */
tundish_status matching_files_find(const struct path_base *base, const char *const *patterns,
                                   size_t pattern_count, struct matching_files *ret_list);
void matching_files_close(struct matching_files *list);

#endif
