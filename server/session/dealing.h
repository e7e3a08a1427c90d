/* dealing.h - what the dealing thread knows, and the account of its time. */
#ifndef SESSION_DEALING_H
#define SESSION_DEALING_H

#include <pthread.h>
#include <stdatomic.h>

#include "session/checkpoint/place_contents.h"
#include "session/evaluation/shard_share.h"
#include "session/session_stats.h"

/* Where to begin. */
struct start {
    bool given;           /* else at the first step of epoch 0 */
    bool after_end;       /* publish the end of the epoch before, too */
    uint64_t end_steps;   /* the number of its steps */
    uint64_t place_epoch; /* whose state this is: `epoch` or an earlier one */
    uint64_t epoch, step;
    struct place_split split; /* of the steps from there on */
    size_t state_count;
    uint64_t state[PLACE_STATE_MAX];

    /* A queue's: which of the positions from here on were visited. */
    uint64_t visited_count;
    uint8_t visited[TND_SLOTS_MAX / 8];
};

/* Used only by the dealing thread while it runs: no lock. */
struct session_dealing {
    pthread_t thread;
    bool started;
    struct start start;
    struct shard_share shard_share;
    int64_t shard;                /* of the steps being dealt */
    uint32_t flags;               /* likewise */
    _Atomic bool awaits_shards;   /* the reader asks, and others have what is left of the epoch */
    uint64_t number;              /* of the step being dealt */
    uint32_t near_steps;          /* that are dealt in any case; 0: there are no others */
    int64_t now_ns;               /* as worker.now_ns */
    int64_t deals_since_ns;       /* what was done before is counted; 0: this is not counted */
    uint64_t skipped;             /* rows that the order has left out, as of the last step */
    struct worker_stats counters; /* of stages that look at content to decide order */
};

/* Read the clock, and count what was done since it was read last as dealing. */
void dealing_count(struct session_dealing *dealing, struct tnd_stats_stream *stream,
                   uint64_t number);

/* The thread has waited, for room or for a look, since `began_ns`: read the clock, and count that.
 */
void dealing_count_wait(struct session_dealing *dealing, struct tnd_stats_stream *stream,
                        int64_t began_ns);

#endif
