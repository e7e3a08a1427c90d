/* skips.h - bad rows that are left out (on_error: skip): counted, and told at most once a second.
 *
 * A file may be bad in every row, and a line for each would bury the rest of the log. The first is
 * told at once; after that one line stands for all of its second and names the last of them. The
 * caller keeps threads apart.
 */
#ifndef SESSION_SKIPS_H
#define SESSION_SKIPS_H

#include <stdint.h>

#include "core/status.h"

struct skips {
    const char *stream;
    uint64_t limit; /* more since the stream's start, or its last return to a place, are an error */
    uint64_t count, count_before; /* of all, and of those before that start */
    uint64_t told_count; /* as of the last line, which was written at told_ns; 0: none so far */
    int64_t told_ns;
    char text[1024]; /* the error of the last */
};

/* `count` more were left out; `text` is the error of the last. E_DATA above the limit. */
tundish_status skips_add(struct skips *skips, uint64_t count, const char *text);

/* Tell what has not been told, if a second has passed since the last line; at the end, at once. */
void skips_tell(struct skips *skips);
void skips_tell_rest(struct skips *skips);

#endif
