/* listen.h - a Unix socket that exactly one living server listens on. */
#ifndef DELIVER_SOCKET_LISTEN_H
#define DELIVER_SOCKET_LISTEN_H

#include <sys/types.h>

#include "tundish/tundish.h"

/* Make the folder if it is not there (0700), take over a path that a dead server left, listen with
 * mode 0600, or 0660 for a group that is not NULL. E_ARGUMENT: path too long, not a socket, or a
 * living server is there (its process is named). E_SYSTEM: the default path's folder is not this
 * user's alone (channel.h), or another process has kept the path's lock for seconds. */
tundish_status listen_open(const char *path, const gid_t *group, int *ret_socket);

/* Close and remove the path, if it is still this socket's. */
void listen_close(int socket, const char *path);

#endif
