/* status_view.h - two snapshots of a running server's metrics, for status, top and trace. */
#ifndef COMMANDS_STATUS_VIEW_H
#define COMMANDS_STATUS_VIEW_H

#include "commands/commands.h"
#include "watch/hold.h"

/* Verdicts look back over STATUS_WINDOW snapshots, at most. */
enum { STATUS_WINDOW = 10 };

/* The server, and its last two snapshots: `now` was taken an interval after `before`. */
struct status_view {
    const char *socket; /* as it was asked for */
    struct tnd_stats_file file;
    struct watch_snapshot before, now;
    struct watch_snapshot past[STATUS_WINDOW - 1]; /* those before `before`, the oldest first */
    uint32_t past_count;
    struct watch_held held;
    struct watch_diagnosis diagnosis; /* of status_view_next: from the oldest to `now` */
};

/* Open the metrics of the server at `socket` (NULL: the default). E_SERVER_GONE: none is there. */
tundish_status status_find_metrics(const char *socket, struct tnd_stats_file *ret_file);

/* Find the server at `socket` (NULL: the default). E_SERVER_GONE if it has no metrics. Those of a
 * killed server remain, and are found. */
tundish_status status_view_open(const char *socket, struct status_view *ret_view);
void status_view_close(struct status_view *view);

/* Wait, then take another snapshot: `now` becomes `before`. */
tundish_status status_view_next(struct status_view *view, int64_t interval_ns);

/* Has another server replaced it? Then the view is of that one from now on. */
bool status_view_follow(struct status_view *view);

#endif
