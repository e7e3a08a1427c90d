/* trust.c - users as the kernel tells of them. */
#include "shm/trust.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/status.h"

/* A server can crash its trainers, or feed them wrong data, through shared memory. Root can do that
 * anyhow. */
bool
tnd_trust_user(uint32_t user)
{
    const char *named = getenv("TUNDISH_SERVER_UID");
    char *end;
    unsigned long number;

    if (user == geteuid() || user == 0)
        return true;
    if (named == NULL || named[0] < '0' || named[0] > '9')
        return false;
    number = strtoul(named, &end, 10);
    return *end == '\0' && number == user;
}

tundish_status
tnd_trust_listener(int socket, const char *path)
{
    struct ucred listener;
    socklen_t bytes = sizeof listener;

    /* The kernel's word for who listens; the owner of the path in the file system could be another.
     */
    if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &listener, &bytes) != 0)
        return tnd_fail_errno(errno, "cannot find the owner of socket %s", path);
    if (tnd_trust_user(listener.uid))
        return TUNDISH_OK;
    return tnd_fail(TUNDISH_E_ARGUMENT,
                    "the server at %s belongs to user %u, neither to this user (%u) nor to root: "
                    "choose another socket (TUNDISH_SERVER), or set TUNDISH_SERVER_UID=%u to trust "
                    "that user",
                    path, (unsigned)listener.uid, (unsigned)geteuid(), (unsigned)listener.uid);
}

tundish_status
tnd_trust_folder(const char *path)
{
    struct stat about;

    /* lstat: a link would lead to a folder whose owner this does not check. */
    if (lstat(path, &about) != 0)
        return errno == ENOENT ? TUNDISH_OK : tnd_fail_errno(errno, "cannot look at %s", path);
    if (S_ISDIR(about.st_mode) && about.st_uid == geteuid() && (about.st_mode & 0777) == 0700)
        return TUNDISH_OK;
    return tnd_fail(TUNDISH_E_SYSTEM,
                    "%s must be a folder of this user (%u) with mode 0700, because trainers trust "
                    "the server's socket in it (owner %u, mode %04o): remove it, run chmod 0700, "
                    "or choose another socket (TUNDISH_SERVER)",
                    path, (unsigned)geteuid(), (unsigned)about.st_uid,
                    (unsigned)(about.st_mode & 07777));
}
