/* list.h - the objects of a store that match a pattern. */
#ifndef REMOTE_LIST_H
#define REMOTE_LIST_H

#include "remote/listing.h"
#include "remote/remote.h"

/* An object with its whole URL. */
struct remote_match {
    char *name;
    uint64_t bytes, hash; /* of its ETag */
};

struct remote_matches {
    struct remote_match *list;
    size_t count;
};

/* Those that `pattern` matches, in byte order; * ? and [..] as in paths, none of them matching a /.
 * For http, which has no lists: the URL itself, if there is such a file. Blocks. */
tundish_status remote_list(struct remote *remote, const char *pattern,
                           struct remote_matches *ret_matches);
/* All objects whose names begin with that of a folder, which ends in a slash; of stores alone. */
tundish_status remote_list_below(struct remote *remote, const char *folder,
                                 struct remote_matches *ret_matches);
void remote_matches_close(struct remote_matches *matches); /* accepts zeros */

#endif
