/* admin_main.c - tundish-admin: options, parts, and waiting for a signal. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "admin_options.h"
#include "core/end_signals.h"
#include "core/log.h"
#include "core/status.h"
#include "http.h"
#include "shm/channel.h"

enum { EXIT_MACHINE = 3, NAME_BYTES = 300 };

/* A whole text file, or NULL with a line on standard error. */
static char *
read_file(const char *path)
{
    char *text = NULL;
    size_t room = 0;
    FILE *file = fopen(path, "re");

    if (file == NULL || getdelim(&text, &room, '\0', file) < 0) {
        fprintf(stderr, "tundish-admin: %s: %s\n", path, strerror(errno));
        free(text);
        text = NULL;
    }
    if (file != NULL)
        fclose(file);
    return text;
}

/* List the Host headers to answer: the address, its usual names, and those of --host. Others are
 * refused, so that a foreign name that resolves to this address (DNS rebinding) reaches nothing. */
static void
name_hosts(const struct admin_options *options, uint16_t port, struct guard *guard,
           char names[3][NAME_BYTES])
{
    char address[INET6_ADDRSTRLEN] = "";

    if (options->address.ss_family == AF_INET6) {
        inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)&options->address)->sin6_addr, address,
                  sizeof address);
        snprintf(names[0], NAME_BYTES, "[%s]:%u", address, port);
    } else {
        inet_ntop(AF_INET, &((const struct sockaddr_in *)&options->address)->sin_addr, address,
                  sizeof address);
        snprintf(names[0], NAME_BYTES, "%s:%u", address, port);
    }
    guard->hosts[guard->host_count++] = names[0];
    if (options->is_loopback) {
        snprintf(names[1], NAME_BYTES, "localhost:%u", port);
        guard->hosts[guard->host_count++] = names[1];
    }
    for (unsigned i = 0; i < options->host_count; i++)
        guard->hosts[guard->host_count++] = options->hosts[i];
}

static void
say_ready(const struct admin_options *options, const char *host)
{
    const char *scheme = options->tls_certificate != NULL ? "https" : "http";

    tnd_log(TND_LOG_NOTICE, "ready", "the dashboard is at %s://%s/", scheme, host);
    /* Scripts that asked for port 0 learn the port here, once requests are answered. */
    if (options->ready_descriptor >= 0) {
        dprintf(options->ready_descriptor, "%s://%s/\n", scheme, host);
        close(options->ready_descriptor);
    }
}

static int
serve(const struct admin_options *options, struct admin *admin)
{
    struct http_options http_options = { .socket = -1 };
    struct http *http = NULL;
    uint16_t port;
    char names[3][NAME_BYTES];
    char *certificate = NULL, *key = NULL;
    tundish_status status = http_listen(&options->address, &http_options.socket, &port);

    if (status == TUNDISH_OK) {
        name_hosts(options, port, &admin->guard, names);
        status = watcher_open(admin->socket_path, &admin->watcher);
    }
    if (options->tls_certificate != NULL) {
        http_options.certificate = certificate = read_file(options->tls_certificate);
        http_options.key = key = read_file(options->tls_key);
        if (certificate == NULL || key == NULL)
            status = tnd_fail(TUNDISH_E_SYSTEM, "no certificate");
    }
    if (status == TUNDISH_OK)
        status = http_open(&http_options, admin, &http);
    if (status == TUNDISH_OK) {
        sigset_t set;
        int number;

        say_ready(options, names[0]);
        sigemptyset(&set);
        tnd_end_signals_add(&set);
        /* The threads of the watcher and of the HTTP library do all work from here on. */
        while (sigwait(&set, &number) != 0)
            ;
    } else {
        tnd_log(TND_LOG_ERROR, "start", "%s", tnd_error_text());
    }
    http_close(http);
    watcher_close(admin->watcher);
    free(certificate);
    free(key);
    return status == TUNDISH_OK ? EXIT_SUCCESS : EXIT_MACHINE;
}

int
main(int argc, char **argv)
{
    struct admin_options options;
    struct admin admin = { 0 };
    char path[TND_SOCKET_PATH_BYTES];
    sigset_t set;
    int result = options_read(argc, argv, &options);

    if (result >= 0)
        return result;
    if (tnd_channel_path(options.socket, path) != TUNDISH_OK) {
        fprintf(stderr, "tundish-admin: %s\n", tnd_error_text());
        return 2;
    }
    /* In a folder that others may write to, the metrics could be anybody's. */
    if (tnd_channel_check_folder(path) != TUNDISH_OK) {
        fprintf(stderr, "tundish-admin: %s\n", tnd_error_text());
        return EXIT_MACHINE;
    }
    snprintf(admin.socket_path, sizeof admin.socket_path, "%s", path);
    admin.chart_path = options.chart_path;
    admin.guard.tls = options.tls_certificate != NULL;
    admin.guard.behind_proxy = options.behind_proxy;
    admin.guard.reading_needs_token = !options.is_loopback;
    if (options.token_file != NULL) {
        const char *wrong = guard_read_token(options.token_file, admin.guard.token);

        if (wrong != NULL) {
            fprintf(stderr, "tundish-admin: %s\n", wrong);
            return 2;
        }
    }
    sigemptyset(&set);
    tnd_end_signals_add(&set);
    sigaddset(&set, SIGPIPE);
    sigaddset(&set, SIGUSR1); /* Slurm sends these to every process of a job step, for trainers */
    sigaddset(&set, SIGUSR2);
    sigprocmask(SIG_BLOCK, &set, NULL); /* inherited by all threads: only sigwait takes them */
    tnd_log_start();
    result = serve(&options, &admin);
    tnd_log_flush();
    return result;
}
