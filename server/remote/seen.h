/* seen.h - cached HEAD and LIST answers of stores, so that the place, the check of the inputs and
 * the first read ask each store once while a server starts. Many names are asked for at the same
 * time. Any thread. */
#ifndef REMOTE_SEEN_H
#define REMOTE_SEEN_H

#include "remote/list.h"

struct remote_seen;

struct remote_seen *remote_seen_open(void);
void remote_seen_close(struct remote_seen *seen); /* accepts NULL */

/* As remote_list. `seen` may be NULL: the store is asked. So it is again after a failure, and where
 * the list was too long to be remembered. */
tundish_status remote_seen_list(struct remote_seen *seen, struct remote *remote,
                                const char *pattern, struct remote_matches *ret_matches);

/* The object of that name; `seen` as above. */
tundish_status remote_seen_look(struct remote_seen *seen, struct remote *remote, const char *name,
                                struct remote_match *ret_match);

/* It will be looked at: ask now, and return at once. */
void remote_seen_expect(struct remote_seen *seen, struct remote *remote, const char *name);

#endif
