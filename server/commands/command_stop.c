/* command_stop.c - `tundish stop`: ask the server at a socket to drain and end, and wait until it
 * has. */
#include "commands/options.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/clock.h"
#include "shm/channel.h"
#include "watch/diagnosis.h"

/* How long to wait before a word about it, and between two. */
static const int64_t FIRST_WORD_NS = 1000000000, NEXT_WORD_NS = 5000000000;

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

/* Say whom the server waits for, as its figures have it. */
static void
tell_of_wait(const char *path, char said[640])
{
    struct tnd_stats_file file = TND_STATS_FILE_NONE;
    struct watch_diagnosis diagnosis = { .level = WATCH_IDLE };
    struct watch_snapshot now;

    if (tnd_stats_open_server(path, &file) != TUNDISH_OK)
        return;
    if (watch_snapshot_open(&file, &now) == TUNDISH_OK) {
        watch_diagnose(&now, &now, &diagnosis);
        watch_snapshot_close(&now);
    }
    tnd_stats_close(&file);
    if (diagnosis.level != WATCH_STOPPING || strcmp(diagnosis.sentence, said) == 0)
        return;
    snprintf(said, 640, "%s", diagnosis.sentence);
    fprintf(stderr, "tundish stop: %s\n", said);
}

/* Until the process has ended, or the deadline. As poll does, it returns 0 after that, or -1. */
static int
await_end(const char *path, int process, int64_t deadline_ns)
{
    struct pollfd gone = { .fd = process, .events = POLLIN };
    int64_t word_ns = tnd_clock_deadline_ns(FIRST_WORD_NS);
    char said[640] = "";

    for (;;) {
        int64_t left_ns = tnd_clock_left_ns(deadline_ns), next_ns = tnd_clock_left_ns(word_ns);
        int64_t wait_ns = left_ns < next_ns ? left_ns : next_ns;
        /* Rounded up, so that poll does not return just before the deadline. */
        int found = poll(&gone, 1, (int)((wait_ns + 999999) / 1000000));

        if (found > 0 || (found < 0 && errno != EINTR) || left_ns == 0)
            return found;
        if (tnd_clock_left_ns(word_ns) == 0) {
            tell_of_wait(path, said);
            word_ns = tnd_clock_deadline_ns(NEXT_WORD_NS);
        }
    }
}

static int
stop_server(const char *path, int64_t timeout_ns)
{
    int64_t deadline_ns = tnd_clock_deadline_ns(timeout_ns);
    pid_t id = 0;
    int process = -1, result = EXIT_OK;

    if (find_server(path, &process, &id) != TUNDISH_OK) {
        fprintf(stderr, "tundish stop: %s\n", tnd_error_text());
        return EXIT_SYSTEM;
    }
    if (syscall(SYS_pidfd_send_signal, process, SIGTERM, NULL, 0) != 0) {
        fprintf(stderr, "tundish stop: process %d: %s\n", (int)id,
                errno == EPERM ? "it belongs to another user" : "it does not accept the signal");
        close(process);
        return EXIT_SYSTEM;
    }
    /* A second signal would end it at once. */
    if (await_end(path, process, deadline_ns) <= 0) {
        fprintf(stderr,
                "tundish stop: process %d is still draining: tundish status says who has "
                "batches left; run tundish stop again to stop it at once\n",
                (int)id);
        result = EXIT_REFUSED;
    }
    close(process);
    return result;
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
    .details =
        "  --socket PATH       the server's socket (default: as for trainers)\n"
        "  --timeout SECONDS   how long to wait for the server to stop (default 30)\n"
        "\n"
        "The server delivers what is made before it stops. If that takes a second, this command\n"
        "says which trainers have batches left. serve --drain-limit limits the wait. Exit status: "
        "0 it has stopped; 1 it has not yet, and the same\n"
        "command again ends it at once; 3 there is no server.\n",
    .run = command_stop_run,
};
