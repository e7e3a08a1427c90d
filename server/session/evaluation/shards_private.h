/* shards_private.h - a tracker's internals: shards.c keeps it, shards_peer.c asks another node's.
 */
#ifndef SESSION_EVALUATION_SHARDS_PRIVATE_H
#define SESSION_EVALUATION_SHARDS_PRIVATE_H

#include <stdbool.h>

#include "core/lock.h"
#include "session/evaluation/shards.h"

/* A reader's number says which node it is of. */
enum { SHARDS_NODE_SHIFT = 20 };

enum shards_message_kind {
    SHARDS_JOIN = 1,
    SHARDS_JOINED,
    SHARDS_TAKE,
    SHARDS_ANSWER,
    SHARDS_FINISH,
    SHARDS_LEAVE,
    SHARDS_GIVE_BACK,
    SHARDS_WAIT_BESIDE,
    SHARDS_TAKE_BACK,
    SHARDS_WANTED
};

/* The message that nodes send each other. */
struct shards_message {
    uint32_t kind, reader, shard, count;
    uint64_t epoch;
    uint64_t begin;  /* ANSWER, with OVER: the epoch that a reader begins with which comes now */
    uint32_t answer; /* enum shards_next; JOINED: how many shards are done; TAKE_BACK: is_out */
    uint32_t ask;    /* TAKE, ANSWER: which of the reader's */
};

/* A reader of any node, on the tracker's node. */
struct shards_reader {
    uint32_t number;
    uint64_t epoch;  /* that it asked for last */
    bool has_asked;  /* for a shard of that */
    bool wants;      /* one, and there was none */
    uint32_t ask;    /* the last that came, of a reader of another node */
    bool is_waiting; /* for the answer */
};

/* A reader here, which is known to the tracker there. */
struct peer_reader {
    struct peer_reader *next;
    uint32_t reader;
    bool has_joined, is_asking, is_answered;
    uint64_t epoch; /* that was on when it came; then that of which it asked for a shard */
    uint32_t done;  /* shards of the former */
    uint32_t ask;   /* counted */
    int64_t asked_ns, again_ns;
    enum shards_next answer;
    uint32_t shard;
    uint64_t begin;
};

struct shards {
    struct tnd_lock lock;
    struct link *link; /* NULL: there is one node */
    uint32_t stream;
    uint32_t count;      /* 0: not known yet */
    uint32_t *owner;     /* a reader's number, FREE or DONE */
    uint32_t first_free; /* none below it is */
    int64_t looked_ns;   /* for nodes that are gone */
    bool *is_held;       /* its owner waits beside it */
    uint32_t done;       /* or held */
    uint64_t epoch;
    uint32_t last_reader, reader_count;
    uint32_t waiting_count, in_count; /* readers that wait for answers; that are in the epoch */
    uint32_t wants_count;             /* that want a shard, and there is none */
    int64_t told_wanted_ns;           /* when other nodes were told that last */
    int64_t wanted_ns;                /* on those: when they heard it last; 0: never */
    struct shards_reader *readers;    /* in the order of their numbers */
    int64_t gather_ns, counted_at_ns; /* -1: no reader has come yet */
    struct peer_reader *peer_readers; /* where the tracker is another node's */
};

static inline bool
shards_are_of_peer(const struct shards *shards)
{
    return shards->link != NULL && link_rank(shards->link) != 0;
}

tundish_status shards_peer_join(struct shards *shards, struct shards_membership *membership);
enum shards_next shards_peer_take(struct shards *shards, uint32_t reader, uint64_t epoch,
                                  int64_t now_ns, struct shards_given *ret_given);
void shards_peer_finish(struct shards *shards, uint32_t reader, uint64_t epoch, uint32_t shard);
void shards_peer_wait_beside(struct shards *shards, uint32_t reader, uint64_t epoch,
                             uint32_t shard);
void shards_peer_take_back(struct shards *shards, uint32_t reader, uint64_t epoch, uint32_t shard,
                           bool is_out);
void shards_peer_ask_no_more(struct shards *shards, uint32_t reader);
void shards_peer_give_back(struct shards *shards, uint32_t reader, uint64_t epoch, uint32_t shard);
void shards_peer_leave(struct shards *shards, uint32_t reader);
void shards_peer_hear(struct shards *shards, const struct shards_message *message);
void shards_peer_close(struct shards *shards);

void shards_send(struct shards *shards, uint32_t to, const struct shards_message *message);

#endif
