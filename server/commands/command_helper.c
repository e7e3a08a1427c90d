/* command_helper.c - `tundish helper`: make parts of batches for servers of other machines. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands/options.h"
#include "commands/serve_owner.h"
#include "commands/serve_signals.h"
#include "core/log.h"
#include "core/read_write.h"
#include "helpers/helper_serve.h"

struct helping {
    struct pipeline_options pipeline_options;
    const char *listen;
    uint32_t thread_count;
    uint32_t owner;       /* the process with which the helper ends; 0: none */
    int ready_descriptor; /* -1: none */
    struct spec_errors errors;
    struct spec_file *file;
    struct learned *learned;
    struct helper_server *server;
};

static tundish_status
open_helper(struct helping *helping)
{
    struct helper_server_options options = {
        .listen = helping->listen,
        .cache_folder = helping->pipeline_options.cache,
        .thread_count = helping->thread_count != 0 ? helping->thread_count : pipeline_threads(),
        .stop = &serve_stop_signal,
    };
    tundish_status status = serve_hear_signals();

    tnd_log_start();
    if (status == TUNDISH_OK && helping->owner != 0)
        status = serve_end_with(helping->owner);
    if (status == TUNDISH_OK)
        status = spec_open(helping->pipeline_options.path, helping->pipeline_options.root,
                           &helping->errors, &helping->file);
    if (status == TUNDISH_OK)
        status = pipeline_open_learned(&helping->pipeline_options, helping->file, &helping->errors,
                                       &helping->learned);
    options.file = helping->file;
    options.learned = helping->learned;
    return status == TUNDISH_OK ? helper_server_open(&options, &helping->server) : status;
}

/* "ready PORT", for the process that gave the descriptor. */
static void
say_ready(const struct helping *helping)
{
    uint32_t port = helper_server_port(helping->server);
    char line[32];
    int bytes = snprintf(line, sizeof line, "ready %u\n", port), error;

    tnd_log(TND_LOG_NOTICE, "ready", "helps at port %u", port);
    if (helping->ready_descriptor < 0)
        return;
    error = tnd_write(helping->ready_descriptor, line, (size_t)bytes);
    if (error != 0)
        tnd_log(TND_LOG_WARNING, "ready", "--ready-fd %d: %s", helping->ready_descriptor,
                strerror(error));
    if (helping->ready_descriptor > STDERR_FILENO)
        close(helping->ready_descriptor);
}

static int
run_helper(struct helping *helping)
{
    tundish_status status = open_helper(helping);
    int result = EXIT_OK;

    if (status != TUNDISH_OK) {
        result = command_failed(&command_helper, status, &helping->errors);
    } else {
        say_ready(helping);
        while (atomic_load(&serve_stop_signal) == 0)
            (void)serve_wait(-1);
        tnd_log(TND_LOG_NOTICE, "stop", "signal %d: stopping", atomic_load(&serve_stop_signal));
    }
    helper_server_close(helping->server);
    pipeline_close_learned(helping->learned);
    spec_close(helping->file);
    spec_errors_close(&helping->errors);
    tnd_log_flush();
    return result;
}

static int
command_helper_run(int argc, char **argv)
{
    struct helping helping = { .ready_descriptor = -1 };
    const char *format = NULL;
    uint32_t ready = 0;
    bool says_ready = false;
    const struct option_row rows[] = {
        PIPELINE_FOLDERS(helping.pipeline_options),
        { "listen", .text = &helping.listen },
        { "threads", .count = &helping.thread_count, .minimum = 1, .maximum = 256 },
        { "end-with", .count = &helping.owner, .minimum = 1, .maximum = INT32_MAX },
        { "ready-fd", .count = &ready, .maximum = INT32_MAX, .flag = &says_ready },
        { "log-format", .text = &format },
        { 0 },
    };
    int result =
        options_read_file(&command_helper, argc, argv, rows, &helping.pipeline_options.path);

    if (result != EXIT_OK)
        return result;
    if (format != NULL && !tnd_log_set_format(format))
        return command_misused(&command_helper, "--log-format is text, json or journal, not '%s'",
                               format);
    if (helping.listen == NULL)
        return command_misused(&command_helper, "--listen HOST:PORT is needed");
    if (says_ready)
        helping.ready_descriptor = (int)ready;
    return run_helper(&helping);
}

const struct command command_helper = {
    .name = "helper",
    .arguments = "FILE",
    .help = "Make parts of batches for servers of other machines (serve --helpers).",
    .details =
        "  --listen HOST:PORT  where servers call; port 0: a free one\n"
        "  --threads N         parts made at a time (default: one per processor that\n"
        "                      the helper may use)\n"
        "  --root DIR          folder for relative paths (default: the file's folder)\n"
        "  --cache DIR         folder for indexes and vocabulary tables\n"
        "  --analysis DIR      folder of learned statistics (default: analysis/FILE beside it)\n"
        "  --end-with PID      stop when process PID has ended, however it ended\n"
        "  --ready-fd N        write `ready PORT` to this descriptor when servers can call\n"
        "  --log-format F      text, json, or journal (the default where journald reads standard\n"
        "                      error): levels as <N>\n"
        "\n"
        "Servers and helpers share a key of at least 16 bytes, in TUNDISH_HELPER_KEY, and read "
        "the\n"
        "same files by the same names. tundish-launch --helpers sees to all of that. A helper may "
        "be\n"
        "killed and started again at any time: no row depends on it.\n",
    .run = command_helper_run,
};
