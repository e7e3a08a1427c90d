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
#include "watch/hold.h"

/* With more nodes than this fewer snapshots of each are kept, to save memory. */
enum { NODES_CLOSELY = 64, LEAN_WINDOW = 4 };
/* With more nodes there is no history of each stage. */
enum { NODES_BY_STAGE = 16 };
static const int64_t LEAN_NS = INT64_C(5000000000);

/* One server's file, and its snapshots of the last seconds. */
struct watched {
    char path[192];
    struct tnd_stats_file file;
    struct watch_snapshot window[WATCHER_WINDOW + 1]; /* the oldest first */
    uint32_t seen;
    bool is_fresh; /* the last look took a snapshot */
    struct watch_snapshot fresh;
    bool is_new; /* and it is of another file */
    struct tnd_stats_file new_file;
    struct watcher_node shown;
    struct watch_held held;
    bool restarted;          /* in the last look */
    enum watch_level marked; /* the level of the last look */
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
    struct watch_sibling siblings[WATCHER_NODES];
    struct history history;
    struct events events;
    struct job job;
};

/* Snapshots point into copies of the file that they were made from, so they go with it. */
static void
forget(struct watched *node)
{
    for (uint32_t i = 0; i < node->seen; i++)
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

/* Open the file that is to be read now, where it is another one than before. Without one the old
 * snapshots stay: a dead server is still shown. */
static bool
open_anew(const struct watched *node, struct tnd_stats_file *ret_file)
{
    if (node->file.descriptor >= 0 && !is_replaced(node))
        return false;
    return tnd_stats_open_file(node->path, ret_file) == TUNDISH_OK;
}

static void
take_over(struct watched *node, const struct tnd_stats_file *fresh)
{
    node->restarted = node->file.descriptor >= 0;
    node->shown.restarts += node->restarted;
    forget(node);
    node->file = *fresh;
}

/* Which snapshot gives way to another one. A lean window keeps the last two, and of the older ones
 * two that are 5 s apart. */
static uint32_t
superfluous(const struct watched *node, bool is_lean)
{
    const struct watch_snapshot *last = &node->window[node->seen - 1];

    return is_lean && last->taken_ns - node->window[1].taken_ns < LEAN_NS ? 2 : 0;
}

static void
keep(struct watched *node, const struct watch_snapshot *snapshot, bool is_lean)
{
    /* One more than the seconds, so that rates cover all of them. */
    const uint32_t most = is_lean ? LEAN_WINDOW : WATCHER_WINDOW + 1;

    while (node->seen >= most) {
        uint32_t gone = superfluous(node, is_lean);

        watch_snapshot_close(&node->window[gone]);
        node->seen--;
        memmove(&node->window[gone], &node->window[gone + 1],
                (node->seen - gone) * sizeof node->window[0]);
    }
    node->window[node->seen++] = *snapshot;
}

/* Read the file, without the lock: requests wait for no disk. */
static void
look(struct watched *node)
{
    struct tnd_stats_file fresh = TND_STATS_FILE_NONE;
    bool is_new = open_anew(node, &fresh);
    struct tnd_stats_file *file = is_new ? &fresh : &node->file;

    node->is_fresh = file->descriptor >= 0 && watch_snapshot_open(file, &node->fresh) == TUNDISH_OK;
    node->is_new = is_new && node->is_fresh;
    if (node->is_new)
        node->new_file = fresh;
    else if (is_new)
        tnd_stats_close(&fresh);
}

/* Show what was read. All nodes are shown at once, so that sums and nodes agree. */
static void
show(struct watched *node, bool is_lean)
{
    node->restarted = false;
    if (!node->is_fresh)
        return;
    if (node->is_new)
        take_over(node, &node->new_file);
    keep(node, &node->fresh, is_lean);
    node->shown.there = true;
    node->shown.rank = (uint32_t)watch_value(watch_next(&node->fresh, "server", NULL), "rank");
    node->shown.now = &node->window[node->seen - 1];
    node->shown.before = &node->window[0];
}

/* Growth a second, in the last one. Metrics of many nodes come in now and then two or none in a
 * second, so theirs is that of all the window. */
static double
growth(const struct watched *node, bool is_lean, const struct watch_set *set, const char *field)
{
    const struct watch_snapshot *before =
        &node->window[!is_lean && node->seen > 1 ? node->seen - 2 : 0];
    double passed_s = (double)(node->shown.now->taken_ns - before->taken_ns) / 1e9;

    return passed_s > 0 ? (double)watch_growth(before, set, field) / passed_s : 0;
}

/* A series of the node's, and, where there are several nodes, the sum of all. The labels come last
 * because they may be long: api_history.c cuts the name at the first two bars. */
static void
note(struct watcher *watcher, uint32_t rank, const struct watch_set *set, const char *what,
     double value)
{
    char name[HISTORY_NAME_BYTES];

    snprintf(name, sizeof name, "%u|%.12s|%s", rank, what, set->labels);
    history_note(&watcher->history, name, value);
}

static void
note_sum(struct watcher *watcher, const struct watch_set *set, const char *what, double value)
{
    char name[HISTORY_NAME_BYTES];

    snprintf(name, sizeof name, "all|%.12s|%s", what, set->labels);
    if (watcher->node_count > 1)
        history_add(&watcher->history, name, value);
}

static void
note_node(struct watcher *watcher, const struct watched *node)
{
    uint32_t rank = node->shown.rank;
    bool is_lean = watcher->node_count > NODES_CLOSELY;
    const struct watch_snapshot *now = node->shown.now;
    const struct watch_set *set = NULL;

    /* A dead server is still shown, but its charts end. */
    if (!node->shown.there || !tnd_stats_is_alive(&now->copy))
        return;
    while ((set = watch_next(now, "stream", set)) != NULL) {
        static const char *const figures[] = { "rows", "read" };

        for (size_t i = 0; i < sizeof figures / sizeof *figures; i++) {
            double grown = growth(node, is_lean, set, figures[i]);

            note(watcher, rank, set, figures[i], grown);
            note_sum(watcher, set, figures[i], grown);
        }
    }
    while ((set = watch_next(now, "reader", set)) != NULL) {
        note(watcher, rank, set, "batches", growth(node, is_lean, set, "released"));
        /* A wait that ended in this second may have begun before it. */
        note(watcher, rank, set, "wait", fmin(1, growth(node, is_lean, set, "wait") / 1e9));
    }
    while (watcher->node_count <= NODES_BY_STAGE && (set = watch_next(now, "stage", set)) != NULL)
        if (watch_value(set, "busy") > 0)
            note(watcher, rank, set, "stage", growth(node, is_lean, set, "busy") / 1e9);
    set = watch_next(now, "server", NULL);
    if (set != NULL)
        note(watcher, rank, set, "cpu", growth(node, is_lean, set, "cpu") / 1e9);
}

static void
note_events(struct watcher *watcher, struct watched *node)
{
    struct event restart = { .second = watcher->history.second,
                             .rank = node->shown.rank,
                             .kind = EVENT_RESTART };
    enum watch_level level = node->shown.diagnosis.level;

    if (!node->shown.there)
        return;
    snprintf(restart.text, sizeof restart.text, "the server on %.64s was restarted",
             node->shown.now->copy.header->node);
    if (node->restarted)
        events_note(&watcher->events, &restart);
    else if (node->is_fresh && node->seen > 1)
        events_compare(&watcher->events, restart.second, node->shown.now - 1, node->shown.now);
    if (level != node->marked)
        events_note_level(&watcher->events, restart.second, node->shown.now, level);
    node->marked = level;
}

/* Say what the snapshots show, of each node and against the others. */
static void
judge(struct watcher *watcher)
{
    struct watch_sibling *siblings = watcher->siblings;
    uint32_t count = 0;

    for (uint32_t i = 0; i < WATCHER_NODES; i++) {
        struct watcher_node *shown = &watcher->nodes[i].shown;

        if (!shown->there)
            continue;
        watch_diagnose(shown->before, shown->now, &shown->diagnosis);
        siblings[count++] = (struct watch_sibling){ .before = shown->before,
                                                    .now = shown->now,
                                                    .diagnosis = &shown->diagnosis };
    }
    watch_compare(siblings, count);
    for (uint32_t i = 0, sibling = 0; i < WATCHER_NODES; i++) {
        struct watched *node = &watcher->nodes[i];

        if (!node->shown.there)
            continue;
        node->shown.slowness = siblings[sibling++].slowness;
        watch_hold(&node->held, node->shown.now->taken_ns, &node->shown.diagnosis);
    }
}

static void
note_job(struct watcher *watcher)
{
    job_begin(&watcher->job);
    for (uint32_t i = 0; i < watcher->node_count; i++) {
        const struct watched *node = &watcher->nodes[i];
        const struct watch_snapshot *before = !node->is_fresh  ? node->shown.now
                                              : node->seen > 1 ? node->shown.now - 1
                                                               : NULL;

        if (node->shown.there)
            job_note(&watcher->job, before, node->shown.now);
    }
    job_end(&watcher->job);
}

static void
look_at_all(struct watcher *watcher)
{
    bool is_lean = watcher->node_count > NODES_CLOSELY;

    for (uint32_t i = 0; i < WATCHER_NODES; i++)
        look(&watcher->nodes[i]);
    watcher_lock(watcher);
    watcher->tick++;
    history_advance(&watcher->history, (uint64_t)time(NULL));
    /* Nodes are not counted down: one that is gone stays on the page, as gone. */
    for (uint32_t i = 0; i < WATCHER_NODES; i++) {
        show(&watcher->nodes[i], is_lean);
        if (watcher->nodes[i].shown.there)
            watcher->node_count = i + 1;
    }
    judge(watcher);
    for (uint32_t i = 0; i < watcher->node_count; i++)
        note_node(watcher, &watcher->nodes[i]);
    for (uint32_t i = 0; i < watcher->node_count; i++)
        note_events(watcher, &watcher->nodes[i]);
    note_job(watcher);
    watcher_unlock(watcher);
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
        pthread_mutex_unlock(&watcher->lock);
        look_at_all(watcher);
        pthread_mutex_lock(&watcher->lock);
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
    tnd_condition_open(&watcher->stop);
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
    job_close(&watcher->job);
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

/* Is the one worse off than the other? */
static bool
is_worse(const struct watcher_node *one, const struct watcher_node *other)
{
    if (watch_is_worse(&one->diagnosis, &other->diagnosis))
        return true;
    return !watch_is_worse(&other->diagnosis, &one->diagnosis) && one->slowness > other->slowness;
}

static int
worse_first(const void *one, const void *other, void *context)
{
    const struct watcher *watcher = context;
    const uint32_t *a = one, *b = other;
    const struct watcher_node *first = watcher_node(watcher, *a),
                              *second = watcher_node(watcher, *b);

    if (is_worse(first, second) || is_worse(second, first))
        return is_worse(first, second) ? -1 : 1;
    return (*a > *b) - (*a < *b);
}

uint32_t
watcher_rank_nodes(const struct watcher *watcher, uint32_t ret_numbers[WATCHER_NODES])
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < watcher->node_count; i++)
        if (watcher->nodes[i].shown.there)
            ret_numbers[count++] = i;
    qsort_r(ret_numbers, count, sizeof *ret_numbers, worse_first, (void *)(uintptr_t)watcher);
    return count;
}

const struct history *
watcher_history(const struct watcher *watcher)
{
    return &watcher->history;
}

const struct job *
watcher_job(const struct watcher *watcher)
{
    return &watcher->job;
}

const struct events *
watcher_events(const struct watcher *watcher)
{
    return &watcher->events;
}
