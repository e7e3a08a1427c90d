/* shards.h - the shards of an evaluation: who has which, and which are done.
 *
 * Each shard is given whole to one reader. It is done when that reader has given back its last
 * batch; what a reader had not done when it left is given to another. One that has been returned
 * all of a shard and waits for more may hold the last batch for as long as it likes: its shard
 * counts as done while it is there. A reader may also go on to the next epoch before this one is
 * over. That begins when those who are still in this one have done the rest of it, or at once if
 * nobody is: then what nobody did is passed over. One tracker serves all readers of a stream; of
 * several nodes that of rank 0 serves all, and the others ask it. What readers of a node that is
 * gone had not done is given to others; without rank 0 no reader gets another shard. Any thread.
 */
#ifndef SESSION_SHARDS_H
#define SESSION_SHARDS_H

#include "link/link.h"

struct shards;

/* `count` 0: five for each reader that has come within `gather_ns` of the first. `stream` tells the
 * trackers of a job apart. */
struct shards *shards_open(uint32_t count, int64_t gather_ns, struct link *link, uint32_t stream);
void shards_close(struct shards *shards); /* accepts NULL */

/* A reader that has come, and what it finds. */
struct shards_membership {
    uint32_t reader;
    uint32_t done;  /* shards of the epoch that are done already */
    uint64_t epoch; /* the one that is on */
};

/* A reader comes, and leaves with all it has not done. Coming may take as long as rank 0 takes to
 * answer. */
tundish_status shards_join(struct shards *shards, int64_t now_ns,
                           struct shards_membership *ret_membership);
void shards_leave(struct shards *shards, uint32_t reader);

enum shards_next {
    SHARDS_TAKEN, /* this one is the reader's now */
    SHARDS_WAIT,  /* others are at the last ones, or it is not known yet how many there are */
    SHARDS_OVER,  /* every shard of the epoch is done */
    SHARDS_LOST   /* nobody gives out shards any more; tnd_error_text says why */
};

/* The next shard of the epoch: the lowest that nobody has. Who asks for one of a later epoch has
 * gone on to that. Never waits: ask again. */
enum shards_next shards_take(struct shards *shards, uint32_t reader, uint64_t epoch, int64_t now_ns,
                             uint32_t *ret_shard);
void shards_finish(struct shards *shards, uint32_t reader, uint64_t epoch, uint32_t shard);
/* It has been returned all of this one and waits for more, but still holds some of it. */
void shards_wait_beside(struct shards *shards, uint32_t reader, uint64_t epoch, uint32_t shard);
/* It will not do this one. */
void shards_give_back(struct shards *shards, uint32_t reader, uint64_t epoch, uint32_t shard);

/* 0: not known yet. */
uint32_t shards_count(struct shards *shards);

/* Handle a message of another node for the tracker. */
void shards_hear(struct shards *shards, const struct link_message *received);

#endif
