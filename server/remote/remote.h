/* remote.h - this process' way to files that are elsewhere: one for each `remote:` section, made
 * when its first URL is read, with one thread that talks to servers. It lives as long as the
 * process.
 */
#ifndef REMOTE_REMOTE_H
#define REMOTE_REMOTE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/status.h"
#include "spec/spec.h"

struct remote;

/* The one for these options (NULL: the defaults). Fails if there is no libcurl, or no thread. */
tundish_status remote_get(const struct spec_remote *options, struct remote **ret_remote);

/* From now on all that wait for a server give up with TUNDISH_STOPPED: the process ends. Any
 * thread; for a handler of signals too. */
void remote_give_up(void);
bool remote_has_given_up(void);

#endif
