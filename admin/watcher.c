/* watcher.c - read the metrics of all servers once a second. */
#include "watcher.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "core/clock.h"
#include "core/status.h"

/* One server's file, and its snapshots of the last seconds. */
struct watched {
    char path[192];
    struct tnd_stats_file file;
    struct watch_snapshot window[WATCHER_WINDOW + 1]; /* a ring; `newest` is its last */
    uint32_t seen, newest;
    struct watcher_node shown;
};

struct watcher {
    pthread_t thread;
    bool running;
    pthread_mutex_t lock;
    pthread_cond_t stop;
    bool stopping;
    uint64_t tick;
    uint32_t node_count; /* up to the highest that has ever been there */
    struct watched nodes[WATCHER_NODES];
    struct history history;
};

/* Snapshots point into copies of the file that they were made from, so they go with it. */
static void
forget(struct watched *node)
{
    for (uint32_t i = 0; i <= WATCHER_WINDOW; i++)
        watch_snapshot_close(&node->window[i]);
    node->seen = 0;
    tnd_stats_close(&node->file);
}

/* Has a new server replaced the file that is open? The name then leads to another inode. */
static bool
is_replaced(const struct watched *node)
{
    struct stat about;

    return stat(node->path, &about) == 0 && ((uint64_t)about.st_ino != node->file.inode ||
                                             (uint64_t)about.st_dev != node->file.device);
}

static void
reopen(struct watched *node)
{
    bool had = node->file.descriptor >= 0;
    struct tnd_stats_file fresh = TND_STATS_FILE_NONE;

    if (had && !is_replaced(node))
        return;
    /* Without a new file the old snapshots stay: a dead server is still shown. */
    if (tnd_stats_open_file(node->path, &fresh) != TUNDISH_OK)
        return;
    if (had)
        node->shown.restarts++;
    forget(node);
    node->file = fresh;
}

/* Take a snapshot. The ring has one more than the window, so that rates cover the whole window. */
static void
look(struct watched *node)
{
    struct watch_snapshot snapshot;
    uint32_t next = (node->newest + 1) % (WATCHER_WINDOW + 1);
    uint32_t oldest;

    reopen(node);
    if (node->file.descriptor < 0 || watch_snapshot_open(&node->file, &snapshot) != TUNDISH_OK)
        return;
    watch_snapshot_close(&node->window[next]);
    node->window[next] = snapshot;
    node->newest = next;
    if (node->seen <= WATCHER_WINDOW)
        node->seen++;
    /* With fewer snapshots than the ring holds, the window begins at the first of them. */
    oldest = (next + WATCHER_WINDOW + 2 - node->seen) % (WATCHER_WINDOW + 1);
    node->shown.there = true;
    node->shown.rank = (uint32_t)watch_value(watch_next(&snapshot, "server", NULL), "rank");
    node->shown.now = &node->window[next];
    node->shown.before = &node->window[oldest];
    watch_diagnose(node->shown.before, node->shown.now, &node->shown.diagnosis);
}

/* Growth in the last second. */
static double
growth(const struct watched *node, const struct watch_set *set, const char *field)
{
    const struct watch_snapshot *before =
        &node->window[(node->newest + WATCHER_WINDOW) % (WATCHER_WINDOW + 1)];
    double passed_s = (double)(node->shown.now->taken_ns - before->taken_ns) / 1e9;

    return node->seen > 1 && passed_s > 0 ? (double)watch_growth(before, set, field) / passed_s : 0;
}

static void
note(struct history *history, uint32_t rank, const struct watch_set *set, const char *what,
     double value)
{
    char name[HISTORY_NAME_BYTES];

    /* The labels come last because they may be long: api.c cuts the name at the first two bars. */
    snprintf(name, sizeof name, "%u|%.12s|%s", rank, what, set->labels);
    history_note(history, name, value);
}

static void
note_node(struct history *history, const struct watched *node)
{
    uint32_t rank = node->shown.rank;
    const struct watch_snapshot *now = node->shown.now;
    const struct watch_set *set = NULL;

    /* A dead server is still shown, but its charts end. */
    if (!node->shown.there || !tnd_stats_is_alive(&now->copy))
        return;
    while ((set = watch_next(now, "stream", set)) != NULL) {
        note(history, rank, set, "rows", growth(node, set, "rows"));
        note(history, rank, set, "read", growth(node, set, "read"));
    }
    while ((set = watch_next(now, "reader", set)) != NULL) {
        note(history, rank, set, "batches", growth(node, set, "released"));
        /* A wait that ended in this second may have begun before it. */
        note(history, rank, set, "wait", fmin(1, growth(node, set, "wait") / 1e9));
    }
    set = watch_next(now, "server", NULL);
    if (set != NULL)
        note(history, rank, set, "cpu", growth(node, set, "cpu") / 1e9);
}

static void
look_at_all(struct watcher *watcher)
{
    watcher->tick++;
    history_advance(&watcher->history, (uint64_t)time(NULL));
    for (uint32_t i = 0; i < WATCHER_NODES; i++) {
        struct watched *node = &watcher->nodes[i];

        look(node);
        if (!node->shown.there)
            continue;
        /* Nodes are not counted down: one that is gone stays on the page, as gone. */
        watcher->node_count = i + 1;
        note_node(&watcher->history, node);
    }
}

static void *
watch(void *argument)
{
    struct watcher *watcher = argument;
    struct timespec next;

    /* Absolute times, so that the length of a look does not add up. */
    clock_gettime(CLOCK_MONOTONIC, &next);
    pthread_mutex_lock(&watcher->lock);
    while (!watcher->stopping) {
        look_at_all(watcher);
        next.tv_sec++;
        while (!watcher->stopping &&
               pthread_cond_timedwait(&watcher->stop, &watcher->lock, &next) == 0)
            ;
    }
    pthread_mutex_unlock(&watcher->lock);
    return NULL;
}

tundish_status
watcher_open(const char *socket_path, struct watcher **ret_watcher)
{
    struct watcher *watcher = calloc(1, sizeof *watcher);
    pthread_condattr_t monotonic;
    int error;

    if (watcher == NULL || history_open(&watcher->history) != 0) {
        free(watcher);
        return tnd_fail(TUNDISH_E_MEMORY, "no memory");
    }
    for (uint32_t i = 0; i < WATCHER_NODES; i++) {
        watcher->nodes[i].file.descriptor = -1;
        /* Number 0 is this node's server. The others' metrics are relayed into files beside its
         * own. */
        if (i == 0)
            snprintf(watcher->nodes[i].path, sizeof watcher->nodes[i].path, "%.120s.stats",
                     socket_path);
        else
            snprintf(watcher->nodes[i].path, sizeof watcher->nodes[i].path, "%.120s.stats.%u",
                     socket_path, i);
    }
    pthread_mutex_init(&watcher->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&watcher->stop, &monotonic);
    pthread_condattr_destroy(&monotonic);
    error = pthread_create(&watcher->thread, NULL, watch, watcher);
    if (error != 0) {
        watcher_close(watcher);
        return tnd_fail_errno(error, "cannot start a thread");
    }
    watcher->running = true;
    *ret_watcher = watcher;
    return TUNDISH_OK;
}

void
watcher_close(struct watcher *watcher)
{
    if (watcher == NULL)
        return;
    watcher_lock(watcher);
    watcher->stopping = true;
    pthread_cond_signal(&watcher->stop);
    watcher_unlock(watcher);
    if (watcher->running)
        pthread_join(watcher->thread, NULL);
    for (uint32_t i = 0; i < WATCHER_NODES; i++)
        forget(&watcher->nodes[i]);
    history_close(&watcher->history);
    pthread_cond_destroy(&watcher->stop);
    pthread_mutex_destroy(&watcher->lock);
    free(watcher);
}

void
watcher_lock(struct watcher *watcher)
{
    pthread_mutex_lock(&watcher->lock);
}

void
watcher_unlock(struct watcher *watcher)
{
    pthread_mutex_unlock(&watcher->lock);
}

uint64_t
watcher_tick(const struct watcher *watcher)
{
    return watcher->tick;
}

uint32_t
watcher_node_count(const struct watcher *watcher)
{
    return watcher->node_count;
}

const struct watcher_node *
watcher_node(const struct watcher *watcher, uint32_t number)
{
    return &watcher->nodes[number].shown;
}

const struct history *
watcher_history(const struct watcher *watcher)
{
    return &watcher->history;
}
