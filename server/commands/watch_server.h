/* watch_server.h - for commands that look at a running server's figures. */
#ifndef COMMANDS_WATCH_SERVER_H
#define COMMANDS_WATCH_SERVER_H

#include "commands/commands.h"
#include "watch/diagnosis.h"

/* Two snapshots, the second `interval_ns` after the first; and how to go on from there. */
struct watch_server {
    const char *socket; /* as it was asked for */
    struct tnd_stats_file file;
    struct watch_snapshot before, now;
};

/* Open the figures of the server at `socket` (NULL: the default). E_SERVER_GONE: none is there. */
tundish_status watch_find_counters(const char *socket, struct tnd_stats_file *ret_file);

/* Find the server at `socket` (NULL: the default). E_SERVER_GONE if no figures are there, those of
 * a server that was killed included in what is there. */
tundish_status watch_server_open(const char *socket, struct watch_server *ret_watch);
void watch_server_close(struct watch_server *watch);

/* Wait, then look again: what was now is before. */
tundish_status watch_server_next(struct watch_server *watch, int64_t interval_ns);

/* Has another server replaced it? Then it is looked at from now on. */
bool watch_server_follow(struct watch_server *watch);

#endif
