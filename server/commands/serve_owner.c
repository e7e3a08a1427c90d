/* serve_owner.c - wait for the end of the process that owns this server.
 *
 * A pidfd, because the other ways say something else: the parent's death signal comes when the
 * *thread* that started the server ends, and a pipe stays open in the children of its owner. */
#include "commands/serve_owner.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "core/log.h"

enum { POLL_MS = 50, GRACE_S = 10 };

static pid_t owner;
static int owner_descriptor; /* -1: this system has no pidfd */

static bool
has_ended(void)
{
    struct pollfd watched = { .fd = owner_descriptor, .events = POLLIN };

    if (owner_descriptor >= 0)
        return poll(&watched, 1, -1) > 0;
    poll(NULL, 0, POLL_MS);
    return kill(owner, 0) != 0 && errno == ESRCH;
}

/* Nobody is left to send the second signal, which ends a server that cannot stop in good order. */
static void *
stop_after_owner(void *unused)
{
    static const struct timespec grace = { .tv_sec = GRACE_S };

    (void)unused;
    while (!has_ended())
        ;
    tnd_log(TND_LOG_NOTICE, "stop", "process %d, which owns this server, has ended", (int)owner);
    kill(getpid(), SIGTERM);
    nanosleep(&grace, NULL);
    kill(getpid(), SIGTERM);
    return NULL;
}

tundish_status
serve_end_with(uint32_t pid)
{
    pthread_t thread;
    int error;

    owner = (pid_t)pid;
    owner_descriptor = (int)syscall(SYS_pidfd_open, owner, 0);
    if (owner_descriptor < 0 && kill(owner, 0) != 0 && errno == ESRCH)
        return tnd_fail(TUNDISH_E_SYSTEM, "--end-with %u: there is no such process", pid);
    error = pthread_create(&thread, NULL, stop_after_owner, NULL);
    if (error != 0)
        return tnd_fail_errno(error, "cannot start a thread");
    pthread_detach(thread);
    return TUNDISH_OK;
}
