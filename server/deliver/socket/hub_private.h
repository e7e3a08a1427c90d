/* hub_private.h - the hub from the inside: for hub.c and hub_feeds.c. */
#ifndef DELIVER_HUB_PRIVATE_H
#define DELIVER_HUB_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "deliver/socket/hub_visitor.h"

/* What an event of epoll is about; the first member of everything it points to. */
enum watched_kind {
    WATCHED_LISTENER,
    WATCHED_WAKE,
    WATCHED_VISITOR,
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

/* A visitor in the hub's loop. */
struct guest {
    struct watched socket_watched, pid_watched, wakeup_watched;
    struct guest *next;
    struct visitor visitor;
    int pidfd;
    int wakeup;
    bool is_gone;
};

struct hub {
    struct hub_config config;
    char *path;
    int listener, epoll, wake;
    int spare; /* given up to turn a visitor away when there are no descriptors left */
    struct watched listener_watched, wake_watched;
    pthread_t thread;
    bool is_running;
    _Atomic bool stop, is_shut;
    struct guest *guests; /* the hub's thread alone */
    uint32_t guest_count;
    int64_t next_look_ns; /* for those that are ending */

    pthread_mutex_t lock; /* of all below */
    pthread_cond_t removed;
    struct feed **feeds;
    uint32_t feed_count;
    struct feed *removing; /* its trainers are to be cut off */
    struct other *others;
};

/* Let its thread look at once. Any thread. */
void hub_wake(struct hub *hub);

/* The hub's thread, here and below. Have him leave and hang up: his seat is free at once, for his
 * successor's hello may be the next thing to be read. He himself stays until hub_drop_gone_guests,
 * because events that have been taken may still point to him. */
void hub_send_away(struct hub *hub, struct guest *guest, bool died);
void hub_drop_gone_guests(struct hub *hub);

/* End what hub_remove began. */
void hub_finish_removal(struct hub *hub);

#endif
