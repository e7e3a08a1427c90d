/* shard_share.h - the shards of an epoch that an evaluation's reader has taken. */
#ifndef SESSION_EVALUATION_SHARD_SHARE_H
#define SESSION_EVALUATION_SHARD_SHARE_H

#include <stdbool.h>
#include <stdint.h>

enum { SHARDS_AT_A_TIME = 2 };

/* A shard that an evaluation's reader has taken and not done. It lies from the position `begin` to
 * before `end`, and begins with the step `number` of the reader's. While it is dealt, and if it was
 * cut off, `end` is UINT64_MAX. */
struct taken_shard {
    uint64_t epoch, begin, end, number;
    uint64_t epoch_begin; /* where its epoch begins in the lane */
    uint32_t shard;
    bool is_held; /* its reader has all its batches, holds some, and waits for more */
};

struct shard_share {
    uint32_t reader;           /* on the tracker; 0: none (any more) */
    uint64_t epoch;            /* that was on when it came */
    uint64_t epoch_begin;      /* where the one that is dealt begins in the lane */
    uint32_t last_shard;       /* that was taken */
    uint64_t ready_from;       /* where a shard lies ready of which the reader has begun nothing */
    int64_t ready_since_ns;    /* 0: there is none */
    uint64_t told_of_epoch;    /* in the log, when one was taken back, and 1; 0: never */
    uint32_t count;            /* no more than two that are not held, and slots that are */
    struct taken_shard *taken; /* freed with the session */
};

#endif
