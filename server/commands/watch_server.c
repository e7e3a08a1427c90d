/* watch_server.c - two looks at a running server. */
#include "commands/watch_server.h"

#include <stdio.h>
#include <time.h>

#include "shm/channel.h"

tundish_status
watch_find_counters(const char *socket, struct tnd_stats_file *ret_file)
{
    char path[TND_SOCKET_PATH_BYTES];
    tundish_status status = tnd_channel_path(socket, path);

    if (status == TUNDISH_OK)
        status = tnd_stats_open_server(path, ret_file);
    return status == TUNDISH_E_SERVER_GONE ? tnd_fail(status, "no server is at %s", path) : status;
}

tundish_status
watch_server_open(const char *socket, struct watch_server *ret_watch)
{
    struct watch_server watch = { .socket = socket, .file = TND_STATS_FILE_NONE };
    tundish_status status = watch_find_counters(socket, &watch.file);

    if (status == TUNDISH_OK)
        status = watch_snapshot_open(&watch.file, &watch.now);
    if (status != TUNDISH_OK) {
        tnd_stats_close(&watch.file);
        return status;
    }
    *ret_watch = watch;
    return TUNDISH_OK;
}

void
watch_server_close(struct watch_server *watch)
{
    watch_snapshot_close(&watch->before);
    watch_snapshot_close(&watch->now);
    tnd_stats_close(&watch->file);
}

bool
watch_server_follow(struct watch_server *watch)
{
    struct watch_server other;

    if (watch_server_open(watch->socket, &other) != TUNDISH_OK)
        return false;
    if (other.file.inode == watch->file.inode && other.file.device == watch->file.device) {
        watch_server_close(&other);
        return false;
    }
    watch_server_close(watch);
    *watch = other;
    return true;
}

tundish_status
watch_server_next(struct watch_server *watch, int64_t interval_ns)
{
    struct watch_snapshot next;
    tundish_status status;

    nanosleep(&(struct timespec){ .tv_sec = interval_ns / 1000000000,
                                  .tv_nsec = interval_ns % 1000000000 },
              NULL);
    status = watch_snapshot_open(&watch->file, &next);
    if (status != TUNDISH_OK)
        return status;
    watch_snapshot_close(&watch->before);
    watch->before = watch->now;
    watch->now = next;
    return TUNDISH_OK;
}
