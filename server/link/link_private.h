/* link_private.h - a link's insides, for the files that are it: link.c talks, mail.c hands letters
 * out, wait.c posts and waits. */
#ifndef LINK_LINK_PRIVATE_H
#define LINK_LINK_PRIVATE_H

#include <limits.h>
#include <pthread.h>

#include "link/link.h"
#include "link/node.h"
#include "link/node_channel.h"

/* Something that the watcher has not been told yet. */
struct news {
    struct news *next;
    uint32_t from;
    bool is_failure;
    struct link_key key;
    size_t byte_count;
    uint8_t bytes[];
};

/* Mail that has not been given to its box yet. */
struct letter {
    struct letter *next;
    struct link_mail mail;
};

struct box {
    link_mail_handler handler;
    void *user;
};

enum link_state { LINK_JOINING, LINK_JOINED, LINK_REFUSED, LINK_LEAVING, LINK_CUT, LINK_LEFT };

struct link {
    uint32_t rank, size;
    const struct channel_ops *channel;
    void *channel_state, *module;
    char host[HOST_NAME_MAX + 1];
    char refusal[CHANNEL_TEXT_BYTES];

    pthread_t thread, teller;
    bool thread_started, teller_started;
    bool hangs; /* the thread, inside MPI */

    /* Everything below is under the lock. */
    pthread_mutex_t lock;
    pthread_cond_t changed;  /* for those who wait */
    pthread_cond_t posted;   /* for the thread */
    pthread_cond_t has_news; /* for the one that tells the watcher */
    enum link_state state;
    struct node *node;
    uint64_t turns;          /* of the thread, which MPI may keep */
    struct link_stats stats; /* waits */
    uint32_t waiting;
    uint64_t changes; /* counts what may make a wait ready */
    bool has_posted, told_failure;
    struct news *news, **last_news;
    link_watcher watcher;
    void *watcher_user;
    bool watcher_runs, telling_ends;
    struct letter *letters, **last_letter;
    struct box boxes[LINK_BOX_COUNT];
    bool handler_runs;
    int64_t mail_ns; /* when there was any last */
};

/* With the lock held, as for all below. */
void link_wait_until(pthread_cond_t *condition, pthread_mutex_t *lock, int64_t pause_ns);

/* node_config.mail_came. */
void link_mail_came(void *user, const struct link_mail *mail);

/* Give the boxes what came for them; the lock is given up meanwhile. */
void link_hand_out(struct link *link);
void link_drop_letters(struct link *link);

#endif
