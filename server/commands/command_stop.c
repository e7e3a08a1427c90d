/* command_stop.c - `tundish stop`: ask the server at a socket to drain and end, and wait until it
 * has. */
#include "commands/options.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/clock.h"
#include "shm/channel.h"

/* Find the process that listens at the socket, and get a pidfd of it. A pid alone could be reused
 * by another process before the signal is sent. */
static tundish_status
find_server(const char *path, int *ret_process, pid_t *ret_id)
{
    struct ucred peer = { 0 };
    socklen_t bytes = sizeof peer;
    int socket, process;
    tundish_status status = tnd_channel_connect(path, &socket);

    if (status != TUNDISH_OK)
        return status;
    if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0 || peer.pid <= 0) {
        close(socket);
        return tnd_fail(TUNDISH_E_SYSTEM,
                        "the server at %s runs in another container: stop that, or run tundish "
                        "stop in it",
                        path);
    }
    process = (int)syscall(SYS_pidfd_open, peer.pid, 0);
    close(socket);
    if (process < 0)
        return tnd_fail_errno(errno, "process %d", (int)peer.pid);
    *ret_process = process;
    *ret_id = peer.pid;
    return TUNDISH_OK;
}

static int
stop_server(const char *path, int64_t timeout_ns)
{
    int64_t deadline_ns = tnd_clock_deadline_ns(timeout_ns);
    struct pollfd gone = { .events = POLLIN };
    pid_t id = 0;

    if (find_server(path, &gone.fd, &id) != TUNDISH_OK) {
        fprintf(stderr, "tundish stop: %s\n", tnd_error_text());
        return EXIT_SYSTEM;
    }
    if (syscall(SYS_pidfd_send_signal, gone.fd, SIGTERM, NULL, 0) != 0) {
        fprintf(stderr, "tundish stop: process %d: %s\n", (int)id,
                errno == EPERM ? "it belongs to another user" : "it does not accept the signal");
        close(gone.fd);
        return EXIT_SYSTEM;
    }
    for (;;) {
        int64_t left_ns = tnd_clock_left_ns(deadline_ns);
        /* Rounded up, so that poll does not return just before the deadline. */
        int found = poll(&gone, 1, (int)((left_ns + 999999) / 1000000));

        if (found > 0)
            break;
        /* The server has not ended in time; a second signal would end it at once. */
        if (found == 0 || (found < 0 && errno != EINTR)) {
            fprintf(stderr,
                    "tundish stop: process %d is still draining: tundish status says who has "
                    "batches left; run tundish stop again to stop it at once\n",
                    (int)id);
            close(gone.fd);
            return EXIT_REFUSED;
        }
    }
    close(gone.fd);
    return EXIT_OK;
}

static int
command_stop_run(int argc, char **argv)
{
    const char *wanted = NULL;
    char path[TND_SOCKET_PATH_BYTES];
    uint64_t seconds = 30;
    const struct option_row rows[] = {
        { "socket", .text = &wanted },
        { "timeout", .number = &seconds, .maximum = 86400 },
        { 0 },
    };
    int result = options_read_alone(&command_stop, argc, argv, rows);

    if (result != EXIT_OK)
        return result;
    if (tnd_channel_path(wanted, path) != TUNDISH_OK)
        return command_misused(&command_stop, "%s", tnd_error_text());
    return stop_server(path, (int64_t)seconds * INT64_C(1000000000));
}

const struct command command_stop = {
    .name = "stop",
    .arguments = "",
    .help = "Drain and stop this node's server.",
    .details = "  --socket PATH       the server's socket (default: as for trainers)\n"
               "  --timeout SECONDS   how long to wait for the server to stop (default 30)\n"
               "\n"
               "The server delivers what is made before it stops; tundish status counts what its\n"
               "trainers have left. Exit status: 0 it has stopped; 1 it has not yet, and the same\n"
               "command again ends it at once; 3 there is no server.\n",
    .run = command_stop_run,
};
