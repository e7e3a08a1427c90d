/* watcher.h - the servers that tundish-admin shows. A thread of its own reads their metrics once a
 * second.
 *
 * Node 0 is the server at the socket. Other nodes are those whose metrics that server has gathered
 * beside it (PATH.stats.RANK). A dead server is shown until another replaces it, which counts
 * as a restart.
 */
#ifndef ADMIN_WATCHER_H
#define ADMIN_WATCHER_H

#include "events.h"
#include "history.h"
#include "job.h"
#include "watch/siblings.h"

/* Verdicts look back over WATCHER_WINDOW seconds, at most; for a job of many nodes over five at
 * least. */
enum { WATCHER_NODES = TND_STATS_NODES, WATCHER_WINDOW = 10 };

struct watcher;

struct watcher_node {
    bool there;        /* there is at least one snapshot */
    uint32_t rank;     /* of its server in the job */
    uint64_t restarts; /* servers seen here after the first */
    struct watch_snapshot *before, *now;
    struct watch_diagnosis diagnosis;
    double slowness; /* its time for a row, of the median of the other nodes'; 0: not known */
};

tundish_status watcher_open(const char *socket_path, struct watcher **ret_watcher);
void watcher_close(struct watcher *watcher); /* accepts NULL */

/* Keep the snapshots unchanged while they are read. */
void watcher_lock(struct watcher *watcher);
void watcher_unlock(struct watcher *watcher);

/* Locked. */
uint64_t watcher_tick(const struct watcher *watcher); /* looks so far */
uint32_t watcher_node_count(const struct watcher *watcher);
const struct watcher_node *watcher_node(const struct watcher *watcher, uint32_t number);

/* The numbers of the nodes that are there, the worst off first; returns how many they are. */
uint32_t watcher_rank_nodes(const struct watcher *watcher, uint32_t ret_numbers[WATCHER_NODES]);
const struct history *watcher_history(const struct watcher *watcher);
const struct events *watcher_events(const struct watcher *watcher);
const struct job *watcher_job(const struct watcher *watcher);

#endif
