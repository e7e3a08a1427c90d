/* link_private.h - the state of a link, for its files: link.c exchanges messages, mailbox.c hands
 * them out, wait.c posts and waits. */
#ifndef LINK_LINK_PRIVATE_H
#define LINK_LINK_PRIVATE_H

#include <limits.h>
#include <pthread.h>

#include "link/link.h"
#include "link/node.h"
#include "link/node_channel.h"

/* An event that the subscriber has not been told yet. */
struct link_event {
    struct link_event *next;
    uint32_t from;
    bool is_failure;
    struct link_key key;
    size_t byte_count;
    uint8_t bytes[];
};

/* A message that has not been given to its mailbox yet. */
struct queued_message {
    struct queued_message *next;
    struct link_message message;
};

struct mailbox {
    link_message_handler handler;
    void *user;
};

enum link_state { LINK_JOINING, LINK_JOINED, LINK_REFUSED, LINK_LEAVING, LINK_CUT, LINK_LEFT };

struct link {
    uint32_t rank, size;
    const struct channel_ops *channel;
    void *channel_state, *module;
    char host[HOST_NAME_MAX + 1];
    char refusal[CHANNEL_TEXT_BYTES];

    pthread_t thread, notifier;
    bool thread_started, notifier_started;
    bool hangs; /* the thread is stuck inside MPI */

    /* Everything below is under the lock. */
    pthread_mutex_t lock;
    pthread_cond_t changed;   /* for waiting threads */
    pthread_cond_t posted;    /* for the thread */
    pthread_cond_t has_event; /* for the thread that tells the subscriber */
    enum link_state state;
    struct node *node;
    uint64_t turns;          /* of the thread, which MPI may keep */
    uint32_t sending_to;     /* to whom it sends just now; the link's size: to nobody */
    struct link_stats stats; /* waits that are over */
    uint32_t waiting;
    int64_t waiting_since_ns; /* the sum of when these began */
    uint64_t changes;         /* counts what may make a wait ready */
    bool has_posted, told_failure;
    struct link_event *events, **last_event;
    link_subscriber subscriber;
    void *subscriber_user;
    bool subscriber_runs, notifier_ends;
    struct queued_message *messages, **last_message;
    struct mailbox mailboxes[LINK_MAILBOX_COUNT];
    bool handler_runs;
    int64_t message_ns; /* when the last message came or went */
};

/* With the lock held, as for all below. */
void link_wait_until(pthread_cond_t *condition, pthread_mutex_t *lock, int64_t pause_ns);

/* node_config.message_came. */
void link_message_came(void *user, const struct link_message *message);

/* Give the mailboxes what came for them; the lock is given up meanwhile. */
void link_hand_out(struct link *link);
void link_drop_messages(struct link *link);

#endif
