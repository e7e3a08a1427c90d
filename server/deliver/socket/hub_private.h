/* hub_private.h - the internals of the hub, for hub.c and hub_feeds.c. */
#ifndef DELIVER_SOCKET_HUB_PRIVATE_H
#define DELIVER_SOCKET_HUB_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "deliver/socket/hub_protocol.h"

/* The kind of an epoll event. It is the first member of every struct that an event points to. */
enum watched_kind {
    WATCHED_LISTENER,
    WATCHED_WAKE,
    WATCHED_SOCKET,
    WATCHED_PID,
    WATCHED_WAKEUP,
    WATCHED_OTHER
};

struct watched {
    enum watched_kind kind;
};

struct other {
    struct watched watched;
    struct other *next;
    int descriptor;
    void (*ready)(void *user);
    void *user;
};

/* A connection in the hub's loop. */
struct hub_connection {
    struct watched socket_watched, pid_watched, wakeup_watched;
    struct hub_connection *next;
    struct protocol protocol;
    int pidfd;
    int wakeup;
    bool is_dropped;
};

struct hub {
    struct hub_config config;
    char *path;
    int listener, epoll, wake;
    int spare; /* closed to accept and refuse a connection when there are no descriptors left */
    struct watched listener_watched, wake_watched;
    pthread_t thread;
    bool is_running;
    _Atomic bool stop, is_shut;
    struct hub_connection *connections; /* the hub's thread alone */
    uint32_t connection_count;
    int64_t next_look_ns; /* for dying trainers */

    pthread_mutex_t lock; /* of all below */
    pthread_cond_t removed;
    struct feed **feeds;
    uint32_t feed_count;
    struct feed *removing; /* its trainers are to be cut off */
    struct other *others;
};

/* Wake the hub's thread. Any thread. */
void hub_wake(struct hub *hub);

/* The hub's thread, here and below. Detach the connection and close its socket: its
 * member slot is free at once, since its successor's HELLO may be the next message to be read. The
 * struct is freed by hub_free_dropped, because pending events may still point to it. */
void hub_drop(struct hub *hub, struct hub_connection *entry, bool died);
void hub_free_dropped(struct hub *hub);

/* End what hub_remove began. */
void hub_finish_removal(struct hub *hub);

#endif
