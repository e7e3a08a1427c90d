/* status_view.c - opens the metrics of a running server and takes snapshots. */
#include "commands/status_view.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "shm/channel.h"

tundish_status
status_find_metrics(const char *socket, struct tnd_stats_file *ret_file)
{
    char path[TND_SOCKET_PATH_BYTES];
    tundish_status status = tnd_channel_path(socket, path);

    if (status == TUNDISH_OK)
        status = tnd_stats_open_server(path, ret_file);
    return status == TUNDISH_E_SERVER_GONE ? tnd_fail(status, "no server is at %s", path) : status;
}

tundish_status
status_view_open(const char *socket, struct status_view *ret_view)
{
    struct status_view view = { .socket = socket, .file = TND_STATS_FILE_NONE };
    tundish_status status = status_find_metrics(socket, &view.file);

    if (status == TUNDISH_OK)
        status = watch_snapshot_open(&view.file, &view.now);
    if (status != TUNDISH_OK) {
        tnd_stats_close(&view.file);
        return status;
    }
    *ret_view = view;
    return TUNDISH_OK;
}

void
status_view_close(struct status_view *view)
{
    for (uint32_t i = 0; i < view->past_count; i++)
        watch_snapshot_close(&view->past[i]);
    watch_snapshot_close(&view->before);
    watch_snapshot_close(&view->now);
    tnd_stats_close(&view->file);
}

bool
status_view_follow(struct status_view *view)
{
    struct status_view other;

    if (status_view_open(view->socket, &other) != TUNDISH_OK)
        return false;
    /* The file of a dead server stays until the next one replaces it. */
    if (other.file.inode == view->file.inode && other.file.device == view->file.device) {
        status_view_close(&other);
        return false;
    }
    status_view_close(view);
    *view = other;
    return true;
}

/* Keep `before` for later verdicts. The first look has none. */
static void
keep_past(struct status_view *view)
{
    if (view->before.sets == NULL)
        return;
    if (view->past_count == STATUS_WINDOW - 1) {
        watch_snapshot_close(&view->past[0]);
        memmove(&view->past[0], &view->past[1], --view->past_count * sizeof view->past[0]);
    }
    view->past[view->past_count++] = view->before;
}

tundish_status
status_view_next(struct status_view *view, int64_t interval_ns)
{
    struct watch_snapshot next;
    tundish_status status;

    /* A signal may end it early: rates are over the time between the snapshots, not over this. */
    nanosleep(&(struct timespec){ .tv_sec = interval_ns / 1000000000,
                                  .tv_nsec = interval_ns % 1000000000 },
              NULL);
    status = watch_snapshot_open(&view->file, &next);
    if (status != TUNDISH_OK)
        return status;
    keep_past(view);
    view->before = view->now;
    view->now = next;
    watch_diagnose(view->past_count > 0 ? &view->past[0] : &view->before, &view->now,
                   &view->diagnosis);
    watch_hold(&view->held, next.taken_ns, &view->diagnosis);
    return TUNDISH_OK;
}
