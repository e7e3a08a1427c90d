/* serve.c - `tundish serve`: feed this node's trainers until told to stop. */
#include "commands/commands.h"

#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/log.h"
#include "core/memory.h"
#include "shm/channel.h"
#include "deliver/bell.h"
#include "session/session.h"
#include "session/stats_page.h"

struct serve {
    struct pipeline_options pipeline_options;
    const char *socket;
    uint32_t thread_count;
    int ready_descriptor; /* -1: none */

    struct spec_errors errors;
    struct spec_file *file;
    uint32_t session_count;
    struct session **sessions; /* one a stream that is served */
    struct bell **bells;
    struct hub *hub;
    struct stats_page *page;
};

/* --- signals ------------------------------------------------------------------------------------
 */

static void
stop_signals(sigset_t *ret_set)
{
    sigemptyset(ret_set);
    sigaddset(ret_set, SIGTERM);
    sigaddset(ret_set, SIGINT);
}

/* Block them before any thread starts, so that all inherit it and one waits. */
static void
block_signals(void)
{
    sigset_t set;

    stop_signals(&set);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
}

static int
wait_for_signal(void)
{
    sigset_t set;
    int number = 0;

    stop_signals(&set);
    while (sigwait(&set, &number) != 0)
        ;
    return number;
}

/* While the server drains: once more ends it at once. */
static void *
end_at_once(void *unused)
{
    int number = wait_for_signal();

    (void)unused;
    tnd_log(TND_LOG_WARNING, "stop", "signal %d again: ending at once", number);
    _exit(128 + number);
}

/* --- opening ------------------------------------------------------------------------------------
 */

static bool
is_served(const struct serve *serve, const struct spec_stream *stream)
{
    return serve->pipeline_options.stream == NULL ||
           strcmp(serve->pipeline_options.stream, stream->name) == 0;
}

static tundish_status
open_session(struct serve *serve, const struct spec_stream *stream)
{
    struct session_options options = {
        .file = serve->file,
        .stream = stream,
        .plan = {
            .worker_count = 1,
            .replicas = serve->pipeline_options.replicas,
            .root_seed = serve->pipeline_options.seed,
            .cache_folder = serve->pipeline_options.cache,
        },
        .thread_count = serve->thread_count,
        .reader_count = 2,
    };
    struct session *session;
    tundish_status status = bell_open(&serve->bells[serve->session_count]);

    if (status != TUNDISH_OK)
        return status;
    if (getrandom(&options.server_generation, sizeof options.server_generation, 0) < 0)
        options.server_generation = (uint64_t)tnd_clock_ns();
    options.bell = serve->bells[serve->session_count];
    status = session_open(&options, &serve->errors, &session);
    if (status != TUNDISH_OK)
        return tnd_fail_while(status, "stream '%s'", stream->name);
    serve->sessions[serve->session_count++] = session;
    status = hub_add(serve->hub, session_feed(session));
    return status == TUNDISH_OK ? session_start(session) : status;
}

static tundish_status
open_sessions(struct serve *serve)
{
    tundish_status status = TUNDISH_OK;

    serve->sessions = tnd_zalloc(serve->file->stream_count, sizeof(struct session *));
    serve->bells = tnd_zalloc(serve->file->stream_count, sizeof(struct bell *));
    for (uint32_t i = 0; status == TUNDISH_OK && i < serve->file->stream_count; i++)
        if (is_served(serve, &serve->file->streams[i]))
            status = open_session(serve, &serve->file->streams[i]);
    if (status == TUNDISH_OK && serve->session_count == 0)
        return spec_complain(&serve->errors, 0, 0, "there is no stream '%s'",
                             serve->pipeline_options.stream);
    return status;
}

/* Figures for `tundish top`. */
static tundish_status
open_page(struct serve *serve)
{
    tundish_status status = stats_page_create(serve->socket, &serve->page);

    if (status != TUNDISH_OK)
        return status;
    serve->page->stream_count =
        serve->session_count < STATS_STREAMS ? serve->session_count : STATS_STREAMS;
    for (uint32_t i = 0; i < serve->page->stream_count; i++)
        session_show(serve->sessions[i], &serve->page->streams[i]);
    atomic_store_explicit(&serve->page->magic, STATS_MAGIC, memory_order_release);
    return TUNDISH_OK;
}

static tundish_status
open_all(struct serve *serve)
{
    struct hub_config config = { .socket_path = serve->socket };
    tundish_status status = spec_open(serve->pipeline_options.path, serve->pipeline_options.root,
                                      &serve->errors, &serve->file);

    if (status == TUNDISH_OK)
        status = hub_open(&config, &serve->hub);
    if (status == TUNDISH_OK)
        status = open_sessions(serve);
    if (status == TUNDISH_OK)
        status = open_page(serve);
    return status == TUNDISH_OK ? hub_start(serve->hub) : status;
}

static void
close_all(struct serve *serve)
{
    for (uint32_t i = 0; i < serve->session_count; i++)
        session_stop(serve->sessions[i]);
    for (uint32_t i = 0; i < serve->session_count; i++)
        hub_remove(serve->hub, session_feed(serve->sessions[i]));
    for (uint32_t i = 0; i < serve->session_count; i++)
        session_close(serve->sessions[i]);
    stats_page_remove(serve->socket, serve->page);
    hub_close(serve->hub);
    for (uint32_t i = 0; serve->bells != NULL && i < serve->file->stream_count; i++)
        bell_close(serve->bells[i]);
    free(serve->bells);
    free(serve->sessions);
    spec_close(serve->file);
}

/* --- serving ------------------------------------------------------------------------------------
 */

/* Tell whoever waits for the server that trainers may come. */
static void
say_ready(const struct serve *serve)
{
    tnd_log(TND_LOG_NOTICE, "ready", "serving %u stream%s at %s", serve->session_count,
            serve->session_count == 1 ? "" : "s", serve->socket);
    if (serve->ready_descriptor < 0)
        return;
    if (write(serve->ready_descriptor, "ready\n", 6) != 6)
        tnd_log(TND_LOG_WARNING, "ready", "--ready-fd %d: %s", serve->ready_descriptor,
                strerror(errno));
    close(serve->ready_descriptor);
}

static int
refuse(const struct serve *serve)
{
    bool refused = serve->errors.count > 0;

    if (refused) {
        char *text = spec_errors_text(&serve->errors);

        fputs(text, stderr);
        free(text);
    } else {
        tnd_log(TND_LOG_ERROR, "start", "%s", tnd_error_text());
    }
    return refused ? EXIT_REFUSED : EXIT_SYSTEM;
}

static int
run_serve(struct serve *serve)
{
    int result = EXIT_OK;
    pthread_t impatient;

    block_signals();
    if (open_all(serve) != TUNDISH_OK) {
        result = refuse(serve);
    } else {
        int number;

        say_ready(serve);
        number = wait_for_signal();
        tnd_log(TND_LOG_NOTICE, "stop", "signal %d: stopping; once more to end at once", number);
        if (pthread_create(&impatient, NULL, end_at_once, NULL) == 0)
            pthread_detach(impatient);
    }
    close_all(serve);
    spec_errors_close(&serve->errors);
    if (result == EXIT_OK)
        tnd_log(TND_LOG_NOTICE, "stop", "stopped");
    return result;
}

static int
command_serve_run(int argc, char **argv)
{
    enum { STREAM = 256, SOCKET, REPLICAS, THREADS, ROOT, CACHE, SEED, READY_FD, LOG_FORMAT };
    static const struct option options[] = {
        { "stream", required_argument, NULL, STREAM },
        { "socket", required_argument, NULL, SOCKET },
        { "replicas", required_argument, NULL, REPLICAS },
        { "threads", required_argument, NULL, THREADS },
        { "root", required_argument, NULL, ROOT },
        { "cache", required_argument, NULL, CACHE },
        { "seed", required_argument, NULL, SEED },
        { "ready-fd", required_argument, NULL, READY_FD },
        { "log-format", required_argument, NULL, LOG_FORMAT },
        { 0 },
    };
    struct serve serve = { .ready_descriptor = -1 };
    char socket_path[TND_SOCKET_PATH_BYTES];
    uint64_t number = 0;

    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        bool right = true;

        switch (option) {
        case STREAM:
            serve.pipeline_options.stream = optarg;
            break;
        case SOCKET:
            serve.socket = optarg;
            break;
        case REPLICAS:
            right = parse_count(optarg, 1, 4096, &number);
            serve.pipeline_options.replicas = (uint32_t)number;
            break;
        case THREADS:
            right = parse_count(optarg, 1, 256, &number);
            serve.thread_count = (uint32_t)number;
            break;
        case ROOT:
            serve.pipeline_options.root = optarg;
            break;
        case CACHE:
            serve.pipeline_options.cache = optarg;
            break;
        case SEED:
            right = parse_count(optarg, 0, UINT64_MAX, &serve.pipeline_options.seed);
            serve.pipeline_options.has_seed = true;
            break;
        case READY_FD:
            right = parse_count(optarg, 0, INT32_MAX, &number);
            serve.ready_descriptor = (int)number;
            break;
        case LOG_FORMAT:
            if (!tnd_log_set_format(optarg))
                return command_misused(&command_serve, "--log-format is text or json, not '%s'",
                                       optarg);
            break;
        default:
            return command_misused(&command_serve, NULL);
        }
        if (!right)
            return command_misused(&command_serve, "'%s' is not a number that fits here", optarg);
    }
    if (optind + 1 != argc)
        return command_misused(&command_serve, "one pipeline file is needed");
    serve.pipeline_options.path = argv[optind];
    if (!serve.pipeline_options.has_seed)
        serve.pipeline_options.seed = pipeline_draw_seed();
    if (tnd_channel_path(serve.socket, socket_path) != TUNDISH_OK)
        return command_misused(&command_serve, "%s", tnd_error_text());
    serve.socket = socket_path;
    return run_serve(&serve);
}

const struct command command_serve = {
    .name = "serve",
    .arguments = "FILE",
    .help = "Feed this node's trainers, until SIGTERM (drains) or a second one (ends at once).",
    .details =
        "  --stream NAME       serve only this stream (default: all in the file)\n"
        "  --socket PATH       where trainers attach (default: $TUNDISH_SERVER, else\n"
        "                      $XDG_RUNTIME_DIR/tundish/server, else /tmp/tundish-UID/server)\n"
        "  --replicas R        replicas on this node (default: as the file says)\n"
        "  --threads N         that make batches (default: one a processor)\n"
        "  --root DIR          relative paths start here (default: the file's folder)\n"
        "  --cache DIR         where indexes and vocabulary tables are kept\n"
        "  --seed N            the seed of what has none in the file (default: drawn, and logged)\n"
        "  --ready-fd N        write a line to this descriptor when trainers may come\n"
        "  --log-format F      text or json\n",
    .run = command_serve_run,
};
