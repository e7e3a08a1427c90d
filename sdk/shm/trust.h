/* trust.h - the users whose servers and metrics files a program trusts: its own user, root, and the
 * user whose number is in TUNDISH_SERVER_UID. Other users' sockets and files are refused, because
 * they could serve any data. Any thread. */
#ifndef TND_SHM_TRUST_H
#define TND_SHM_TRUST_H

#include <stdbool.h>
#include <stdint.h>

#include "tundish/tundish.h"

bool tnd_trust_user(uint32_t user);

/* Check the user of the listener that a socket is connected to. E_ARGUMENT: it is not trusted.
 * `path` is for the text. */
tundish_status tnd_trust_listener(int socket, const char *path);

/* A folder under a name that others can foresee: it must be this user's, with mode 0700, else
 * E_SYSTEM. One that is not there passes. */
tundish_status tnd_trust_folder(const char *path);

#endif
