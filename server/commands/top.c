/* top.c - `tundish top`: live figures of the server of this node. */
#include "commands/commands.h"

#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/json.h"
#include "session/stats_page.h"
#include "shm/channel.h"

/* What is shown of a stream: counters as they stood, to take differences. */
struct sample {
    int64_t at_ns;
    uint64_t steps, rows, bytes, work_ns;
};

static uint64_t
counter(const _Atomic uint64_t *value)
{
    return atomic_load_explicit(value, memory_order_relaxed);
}

static struct sample
take(const struct stats_stream *stream)
{
    return (struct sample){
        .at_ns = tnd_clock_ns(),
        .steps = counter(&stream->steps),
        .rows = counter(&stream->rows_read),
        .bytes = counter(&stream->bytes_read),
        .work_ns = counter(&stream->work_ns),
    };
}

static double
rate(uint64_t now, uint64_t before, int64_t passed_ns)
{
    return passed_ns > 0 ? (double)(now - before) * 1e9 / (double)passed_ns : 0;
}

static void
show_text(const struct stats_stream *stream, const struct sample *before)
{
    struct sample now = take(stream);
    int64_t passed_ns = now.at_ns - before->at_ns;
    uint32_t lanes = stream->lane_count < STATS_LANES ? stream->lane_count : STATS_LANES;

    printf("stream %.63s: epoch %" PRIu64 " step %" PRIu64 "%s\n", stream->name,
           counter(&stream->epoch), counter(&stream->step),
           counter(&stream->failed) ? " FAILED" : "");
    printf(
        "  %.0f rows/s, %.1f MB/s read, %.1f steps/s, content threads %.0f%% of %u busy, %" PRIu64
        " rows skipped\n",
        rate(now.rows, before->rows, passed_ns), rate(now.bytes, before->bytes, passed_ns) / 1e6,
        rate(now.steps, before->steps, passed_ns),
        100 * rate(now.work_ns, before->work_ns, passed_ns) / 1e9 / stream->thread_count,
        stream->thread_count, counter(&stream->rows_skipped));
    for (uint32_t i = 0; i < lanes; i++) {
        uint64_t published = counter(&stream->lanes[i].published);
        uint64_t released = counter(&stream->lanes[i].released);

        printf("  replica %u: %" PRIu64 " published, %" PRIu64 " not yet released%s\n", i,
               published, published - released,
               counter(&stream->lanes[i].trainer_waits) ? ", its trainer waits for the server"
                                                        : "");
    }
}

static void
show_json(const struct stats_stream *stream, const struct sample *before)
{
    struct sample now = take(stream);
    int64_t passed_ns = now.at_ns - before->at_ns;
    uint32_t lanes = stream->lane_count < STATS_LANES ? stream->lane_count : STATS_LANES;
    struct json json;

    json_start(&json, stdout);
    json_object(&json);
    json_key_text(&json, "stream", stream->name);
    json_key_int(&json, "epoch", (int64_t)counter(&stream->epoch));
    json_key_int(&json, "step", (int64_t)counter(&stream->step));
    json_key_int(&json, "steps", (int64_t)now.steps);
    json_key_int(&json, "rows_read", (int64_t)now.rows);
    json_key_int(&json, "bytes_read", (int64_t)now.bytes);
    json_key_int(&json, "rows_skipped", (int64_t)counter(&stream->rows_skipped));
    json_key(&json, "rows_per_s");
    json_float(&json, rate(now.rows, before->rows, passed_ns), 9);
    json_key_int(&json, "threads", stream->thread_count);
    json_key_bool(&json, "failed", counter(&stream->failed) != 0);
    json_key(&json, "replicas");
    json_array(&json);
    for (uint32_t i = 0; i < lanes; i++) {
        json_object(&json);
        json_key_int(&json, "published", (int64_t)counter(&stream->lanes[i].published));
        json_key_int(&json, "released", (int64_t)counter(&stream->lanes[i].released));
        json_key_bool(&json, "trainer_waits", counter(&stream->lanes[i].trainer_waits) != 0);
        json_object_end(&json);
    }
    json_array_end(&json);
    json_object_end(&json);
    putchar('\n');
}

static bool
is_alive(const struct stats_page *page)
{
    return page->process > 0 && kill((pid_t)page->process, 0) == 0;
}

/* Once, or once a second for as long as the server lives. */
static int
show(const struct stats_page *page, bool once, bool json)
{
    static const struct timespec pause = { .tv_sec = 1 };
    struct sample before[STATS_STREAMS] = { 0 };
    bool terminal = isatty(STDOUT_FILENO) && !json;

    for (uint32_t i = 0; i < page->stream_count; i++)
        before[i] = take(&page->streams[i]);
    do {
        nanosleep(&pause, NULL);
        if (terminal)
            fputs("\033[H\033[2J", stdout);
        for (uint32_t i = 0; i < page->stream_count; i++) {
            (json ? show_json : show_text)(&page->streams[i], &before[i]);
            before[i] = take(&page->streams[i]);
        }
        fflush(stdout);
    } while (!once && is_alive(page));
    return EXIT_OK;
}

static int
command_top_run(int argc, char **argv)
{
    enum { SOCKET = 256, ONCE, JSON };
    static const struct option options[] = {
        { "socket", required_argument, NULL, SOCKET },
        { "once", no_argument, NULL, ONCE },
        { "json", no_argument, NULL, JSON },
        { 0 },
    };
    const char *wanted = NULL;
    char path[TND_SOCKET_PATH_BYTES];
    const struct stats_page *page;
    bool once = false, json = false;
    int result;

    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;)
        switch (option) {
        case SOCKET:
            wanted = optarg;
            break;
        case ONCE:
            once = true;
            break;
        case JSON:
            json = true;
            break;
        default:
            return command_misused(&command_top, NULL);
        }
    if (optind != argc)
        return command_misused(&command_top, "no arguments are taken");
    if (tnd_channel_path(wanted, path) != TUNDISH_OK)
        return command_misused(&command_top, "%s", tnd_error_text());
    if (stats_page_map(path, &page) != TUNDISH_OK || !is_alive(page)) {
        fprintf(stderr, "tundish top: no server is at %s\n", path);
        return EXIT_SYSTEM;
    }
    result = show(page, once, json);
    stats_page_unmap(page);
    return result;
}

const struct command command_top = {
    .name = "top",
    .arguments = "",
    .help = "Show what the server of this node does now, once a second.",
    .details = "  --socket PATH       which server (default: as for trainers)\n"
               "  --once              one look, over a second\n"
               "  --json              one JSON object a stream and line\n",
    .run = command_top_run,
};
