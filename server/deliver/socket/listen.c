/* listen.c - bind under a lock, so that two servers that start together do not take each other's
 * path. */
#include "deliver/socket/listen.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/memory.h"
#include "core/status.h"
#include "deliver/socket/group.h"
#include "shm/channel.h"

/* Known to kernels since 6.16. */
#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

enum { BACKLOG = 128, LOOK_AGAIN_NS = 10000000 };

static const int64_t LOCK_PATIENCE_NS = 5000000000;

/* Make only the last folder of the path. The folders above it are for the user to make. */
static tundish_status
make_folder(const char *path)
{
    char *folder = tnd_strdup(path);
    char *slash = strrchr(folder, '/');
    tundish_status status = TUNDISH_OK;

    if (slash != NULL && slash != folder) {
        *slash = '\0';
        if (mkdir(folder, 0700) != 0 && errno != EEXIST)
            status = tnd_fail_errno(errno, "cannot create the folder %s for the server's socket",
                                    folder);
    }
    free(folder);
    return status == TUNDISH_OK ? tnd_channel_check_folder(path) : status;
}

/* E_SERVER_GONE: no server listens there. */
static tundish_status
find_listener(const char *path)
{
    struct ucred credentials = { 0 };
    socklen_t bytes = sizeof credentials;
    char process[32] = "in another container"; /* whose processes have no number here */
    int socket;
    tundish_status status = tnd_channel_connect(path, &socket);

    if (status != TUNDISH_OK)
        return status;
    (void)getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &bytes);
    close(socket);
    if (credentials.pid > 0)
        snprintf(process, sizeof process, "process %d", (int)credentials.pid);
    return tnd_fail(TUNDISH_E_ARGUMENT,
                    "another server is running at %s (%s): stop it, or choose another path", path,
                    process);
}

static tundish_status
clear_path(const char *path)
{
    struct stat about;
    tundish_status status;

    if (lstat(path, &about) != 0)
        return errno == ENOENT ? TUNDISH_OK : tnd_fail_errno(errno, "cannot look at %s", path);
    if (!S_ISSOCK(about.st_mode))
        return tnd_fail(TUNDISH_E_ARGUMENT, "%s exists and is not a socket: choose another path",
                        path);
    status = find_listener(path);
    if (status != TUNDISH_E_SERVER_GONE)
        return status;
    if (unlink(path) != 0 && errno != ENOENT)
        return tnd_fail_errno(errno, "cannot remove %s, which a dead server left", path);
    return TUNDISH_OK;
}

static tundish_status
bind_and_listen(int descriptor, const char *path)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };

    memcpy(address.sun_path, path, strlen(path) + 1);
    /* The file gets the descriptor's mode, less umask. Set it before the file exists, so the mode
     * is never wider. */
    if (fchmod(descriptor, 0600) != 0 ||
        bind(descriptor, (const struct sockaddr *)&address, sizeof address) != 0)
        return tnd_fail_errno(errno, "cannot bind %s", path);
    if (listen(descriptor, BACKLOG) != 0)
        return tnd_fail_errno(errno, "cannot listen at %s", path);
    return TUNDISH_OK;
}

/* Trainers send no descriptors. The kernel closes an untaken one while this thread reads or hangs
 * up, and that may take as long as its sender likes (SO_LINGER). So ask the kernel to refuse them.
 * An older kernel does not know the option; there they are only dropped. */
static void
refuse_descriptors(int socket)
{
    const int refused = 0;

    setsockopt(socket, SOL_SOCKET, SO_PASSRIGHTS, &refused, sizeof refused);
}

static bool
is_still_there(int descriptor, const char *name)
{
    struct stat ours, present;

    return fstat(descriptor, &ours) == 0 && lstat(name, &present) == 0 &&
           ours.st_dev == present.st_dev && ours.st_ino == present.st_ino;
}

/* flock with a time limit: another process may hold the lock and never release it. */
static tundish_status
lock_in_time(int lock, const char *name, int64_t deadline_ns)
{
    const struct timespec pause = { .tv_nsec = LOOK_AGAIN_NS };

    while (flock(lock, LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return tnd_fail_errno(errno, "cannot lock %s", name);
        if (tnd_clock_left_ns(deadline_ns) == 0)
            return tnd_fail(
                TUNDISH_E_SYSTEM,
                "%s has been locked by another process for %d s; a starting server locks it only "
                "for a moment: end that process (fuser names it), or choose another path",
                name, (int)(LOCK_PATIENCE_NS / 1000000000));
        nanosleep(&pause, NULL);
    }
    return TUNDISH_OK;
}

/* No other server may look and bind between this one's look and its bind. The holder of the lock
 * removes its file when done, so the file that this process waited for may be gone: try again. */
static tundish_status
lock_path(const char *name, int *ret_lock)
{
    int64_t deadline_ns = tnd_clock_deadline_ns(LOCK_PATIENCE_NS);

    for (;;) {
        int lock = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        tundish_status status;

        if (lock < 0)
            return tnd_fail_errno(errno, "cannot open %s", name);
        status = lock_in_time(lock, name, deadline_ns);
        if (status == TUNDISH_OK && is_still_there(lock, name)) {
            *ret_lock = lock;
            return TUNDISH_OK;
        }
        close(lock);
        if (status != TUNDISH_OK)
            return status;
    }
}

static tundish_status
open_locked(const char *path, const gid_t *group, int *ret_socket)
{
    int descriptor = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    tundish_status status =
        descriptor < 0 ? tnd_fail_errno(errno, "cannot make a socket") : clear_path(path);

    if (status == TUNDISH_OK) {
        refuse_descriptors(descriptor);
        status = bind_and_listen(descriptor, path);
    }
    if (status == TUNDISH_OK && group != NULL)
        status = group_share(path, *group, 0660);
    if (status == TUNDISH_OK)
        *ret_socket = descriptor;
    else if (descriptor >= 0)
        close(descriptor);
    return status;
}

tundish_status
listen_open(const char *path, const gid_t *group, int *ret_socket)
{
    char checked[TND_SOCKET_PATH_BYTES];
    char *name;
    int lock = -1;
    tundish_status status = tnd_channel_path(path, checked);

    if (status == TUNDISH_OK)
        status = make_folder(checked);
    if (status != TUNDISH_OK)
        return status;
    name = tnd_sprintf("%s.lock", checked);
    status = lock_path(name, &lock);
    if (status == TUNDISH_OK) {
        status = open_locked(checked, group, ret_socket);
        unlink(name);
        close(lock);
    }
    free(name);
    return status;
}

void
listen_close(int socket, const char *path)
{
    if (socket < 0)
        return;
    /* Unlink first: while this server still listens, no other can have bound the path. */
    unlink(path);
    close(socket);
}
