/* shards.h - the shards of an evaluation: which reader has which, and which are done.
 *
 * Each shard is given whole to one reader. It is done when that reader has given back its last
 * batch. When a reader leaves, its unfinished shards go to other readers. A reader that has been
 * given all of a shard and waits for more may hold the last batch as long as it likes: the shard
 * counts as done while the reader is there.
 *
 * A reader is in an epoch once it has asked for a shard of it. It may go on to the next epoch
 * before this one is over. The next epoch begins when the readers still in this one have done the
 * rest of it. If there are none, the next begins at once and the unfinished shards are skipped.
 *
 * A reader that has a shard and does not begin it may be a while: if others want one, the shard is
 * taken back. If the reader has had nothing of the epoch, it is then as one that has not asked.
 *
 * One tracker serves all readers of a stream. In a job of several nodes rank 0 has the tracker, and
 * the others ask it. If a node is lost, its readers' unfinished shards go to other readers. If rank
 * 0 is lost, no reader gets another shard. Any thread.
 */
#ifndef SESSION_EVALUATION_SHARDS_H
#define SESSION_EVALUATION_SHARDS_H

#include <stdbool.h>

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

/* A reader joins, or leaves with its unfinished shards. Joining may take as long as rank 0 takes to
 * answer. */
tundish_status shards_join(struct shards *shards, int64_t now_ns,
                           struct shards_membership *ret_membership);
void shards_leave(struct shards *shards, uint32_t reader);

enum shards_next {
    SHARDS_TAKEN, /* this one is the reader's now */
    SHARDS_WAIT,  /* others are at the last ones, or it is not known yet how many there are */
    SHARDS_OVER,  /* every shard of the epoch is done */
    SHARDS_LOST   /* the tracker is lost; tnd_error_text says why */
};

struct shards_given {
    uint32_t shard; /* TAKEN */
    uint64_t epoch; /* OVER: that a reader begins with which comes now */
};

/* The next shard of the epoch: the lowest that no reader has. A reader that asks for a shard of a
 * later epoch has gone on to that epoch. Never waits: ask again. */
enum shards_next shards_take(struct shards *shards, uint32_t reader, uint64_t epoch, int64_t now_ns,
                             struct shards_given *ret_given);
void shards_finish(struct shards *shards, uint32_t reader, uint64_t epoch, uint32_t shard);
/* The reader has been given all of this shard and waits for more, but still holds some of it. */
void shards_wait_beside(struct shards *shards, uint32_t reader, uint64_t epoch, uint32_t shard);
/* Does another reader want a shard, and there is none? */
bool shards_are_wanted(struct shards *shards, uint32_t reader, int64_t now_ns);
/* The reader has begun nothing of this shard, and cannot any more. `is_out`: nor of the epoch. */
void shards_take_back(struct shards *shards, uint32_t reader, uint64_t epoch, uint32_t shard,
                      bool is_out);
/* The reader does not wait for a shard: if it asked for one ahead, this goes to others. */
void shards_ask_no_more(struct shards *shards, uint32_t reader);
/* The reader will not finish this shard. */
void shards_give_back(struct shards *shards, uint32_t reader, uint64_t epoch, uint32_t shard);

/* 0: not known yet. */
uint32_t shards_count(struct shards *shards);

/* Handle a message of another node for the tracker. */
void shards_hear(struct shards *shards, const struct link_message *received);

#endif
