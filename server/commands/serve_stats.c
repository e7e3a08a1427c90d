/* serve_stats.c - the metrics that a server shows its clients. */
#include "commands/serve.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "core/cpu_room.h"
#include "stats/stats_process.h"
#include "stats/stats_relay.h"

/* How often metrics are read that are not counted as they happen. */
enum { SHOW_NS = 100000000, TICKS_A_RELAY = 10 };

/* Show the pipeline file as it was read, for `tundish status` and top. */
static void
add_pipeline(struct serve *serve)
{
    char *text = NULL;
    size_t room = 0;
    FILE *file = fopen(serve->pipeline_options.path, "re");

    if (file == NULL)
        return;
    if (getdelim(&text, &room, '\0', file) > 0)
        stats_add_text(serve->stats, "pipeline", "", text);
    free(text);
    fclose(file);
}

/* Show where the file is, and the folders that were named, for programs that ask about its streams.
 */
static void
add_path(struct serve *serve, const char *name, const char *path)
{
    char *full = path != NULL ? realpath(path, NULL) : NULL;

    if (full != NULL)
        stats_add_text(serve->stats, name, "", full);
    free(full);
}

/* Their trainers may ask `tundish status` who waits for whom. */
static tundish_status
share_stats(const struct serve *serve)
{
    char path[TND_SOCKET_PATH_BYTES + 8];

    if (serve->group_name == NULL)
        return TUNDISH_OK;
    snprintf(path, sizeof path, "%s.stats", serve->socket);
    return group_share(path, serve->group, 0640);
}

tundish_status
serve_open_stats(struct serve *serve)
{
    uint32_t threads = serve->thread_count != 0 ? serve->thread_count : tnd_cpu_count();
    tundish_status status =
        stats_open(serve->socket, (threads + 1) * serve->file->stream_count, &serve->stats);

    if (status == TUNDISH_OK)
        status = share_stats(serve);
    if (status != TUNDISH_OK)
        return status;
    tnd_stats_set(&stats_server(serve->stats)->threads, threads);
    tnd_stats_set(&stats_server(serve->stats)->rank, link_rank(serve->link));
    tnd_stats_set(&stats_server(serve->stats)->processors, tnd_cpu_count());
    add_pipeline(serve);
    add_path(serve, "file", serve->pipeline_options.path);
    add_path(serve, "root", serve->pipeline_options.root);
    add_path(serve, "analysis", serve->pipeline_options.analysis);
    if (link_size(serve->link) > 1)
        serve->link_counters = stats_add(serve->stats, TND_STATS_KIND_link, "");
    return TUNDISH_OK;
}

/* Show the link's counts, and send all metrics to rank 0 at intervals. */
static void
show_link(struct serve *serve)
{
    static const struct link_key key = { .topic = LINK_COUNTERS };
    struct tnd_stats_link *counters = serve->link_counters;
    struct link_stats stats;

    link_stats(serve->link, &stats);
    tnd_stats_set(&counters->messages_sent, stats.messages_sent);
    tnd_stats_set(&counters->messages_received, stats.messages_received);
    tnd_stats_set(&counters->sent, stats.bytes_sent);
    tnd_stats_set(&counters->received, stats.bytes_received);
    tnd_stats_set(&counters->passed_on, peers_passed_on(serve->peers));
    tnd_stats_set(&counters->wait, stats.waited_ns);
    tnd_stats_set(&counters->waits, stats.waits);
    tnd_stats_copy(&counters->each_wait, &stats.wait_times);
    tnd_stats_set(&counters->failed, link_check(serve->link) != TUNDISH_OK);
    /* Once a second, if the tree lets it: rank 0 writes them into files beside its own, for its
     * tundish-admin. */
    if (link_rank(serve->link) != 0 && link_rank(serve->link) < TND_STATS_NODES &&
        ++serve->ticks % TICKS_A_RELAY == 0) {
        struct byte_view copy = stats_relay_copy(serve->stats);

        link_post(serve->link, &key, copy.data, copy.size);
    }
}

static void
show_counters(void *user)
{
    struct serve *serve = user;
    uint64_t times;

    /* The count of expirations does not matter: a late tick shows the same metrics. */
    if (read(serve->ticker, &times, sizeof times) < 0)
        return;
    atomic_fetch_add_explicit(&serve->beats, 1, memory_order_relaxed);
    stats_show_process(serve->stats);
    if (serve->link_counters != NULL)
        show_link(serve);
    serve_show_stores(serve->stats, &serve->stores);
    serve_show_python(serve->stats, &serve->pythons);
    for (uint32_t i = 0; i < serve->session_count; i++)
        session_show(serve->sessions[i]);
    named_sessions_show(serve->named_sessions);
}

tundish_status
serve_show_regularly(struct serve *serve)
{
    static const struct itimerspec tick = { .it_interval.tv_nsec = SHOW_NS, .it_value.tv_nsec = 1 };

    serve->ticker = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (serve->ticker < 0 || timerfd_settime(serve->ticker, 0, &tick, NULL) != 0)
        return tnd_fail_errno(errno, "cannot make a timer");
    return hub_add_descriptor(serve->hub, serve->ticker, show_counters, serve);
}
