/* watcher.h - the servers that tundish-admin shows. A thread of its own reads their metrics once a
 * second.
 *
 * Node 0 is the server at the socket. Other nodes are those whose metrics that server has gathered
 * beside it (PATH.stats.RANK). A dead server is shown until another replaces it, which counts
 * as a restart.
 */
#ifndef ADMIN_WATCHER_H
#define ADMIN_WATCHER_H

#include "history.h"
#include "watch/diagnosis.h"

enum { WATCHER_NODES = 64, WATCHER_WINDOW = 10 };

struct watcher;

/* Verdicts look back this many seconds at most. */
struct watcher_node {
    bool there;        /* there is at least one snapshot */
    uint32_t rank;     /* of its server in the job */
    uint64_t restarts; /* servers seen here after the first */
    struct watch_snapshot *before, *now;
    struct watch_diagnosis diagnosis;
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
const struct history *watcher_history(const struct watcher *watcher);

#endif
