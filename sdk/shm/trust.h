/* trust.h - whose servers, and whose files beside their sockets, a program believes: its own
 * user's, root's, and those of the user whose number is in TUNDISH_SERVER_UID. All others may serve
 * what they like, and are refused. Any thread. */
#ifndef TND_SHM_TRUST_H
#define TND_SHM_TRUST_H

#include <stdbool.h>
#include <stdint.h>

#include "tundish/tundish.h"

bool tnd_trust_user(uint32_t user);

/* Of the listener that a socket is connected to. E_ARGUMENT: it is another user's. `path` is for
 * the text. */
tundish_status tnd_trust_listener(int socket, const char *path);

/* A folder under a name that others can foresee: it must be this user's, with mode 0700, else
 * E_SYSTEM. One that is not there passes. */
tundish_status tnd_trust_folder(const char *path);

#endif
