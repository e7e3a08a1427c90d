/* group.h - the other users whose trainers may come: those of one group. */
#ifndef DELIVER_SOCKET_GROUP_H
#define DELIVER_SOCKET_GROUP_H

#include <stdbool.h>
#include <sys/types.h>

#include "tundish/tundish.h"

/* E_ARGUMENT: there is no group of this name. */
tundish_status group_find(const char *name, gid_t *ret_group);

/* Let the group use a file of this user as `mode` has it, which umask would have narrowed. */
tundish_status group_share(const char *path, gid_t group, mode_t mode);

/* Whether the process at the other end of a socket was in the group when it connected. `own` is the
 * one group that its credentials name. */
bool group_has_peer(int socket, gid_t own, gid_t group);

#endif
