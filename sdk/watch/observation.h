/* observation.h - the work and the waiting in a stream between two snapshots.
 *
 * diagnosis.c puts it into words.
 */
#ifndef TND_WATCH_OBSERVATION_H
#define TND_WATCH_OBSERVATION_H

#include "watch/snapshot.h"

/* Values that make data worse where their share grows: fields of a kind of sets, and the words for
 * "30% of the values `where` 'name' are `such_word`". */
struct watch_worse {
    const char *kind, *all, *such;
    const char *where, *such_word, *remedy;
};

struct watch_observation {
    const struct watch_snapshot *before, *now;
    const struct watch_set *session; /* its set of kind "stream" */
    const char *stream;
    double passed_ns;

    uint32_t attached;
    const struct watch_set *waits_most; /* the reader that waits most, and how much of the time */
    double wait_share;
    bool waits_in_vain;             /* nothing lies in its lane */
    const struct watch_set *holder; /* silent for longest of those whose lane is full while another
                                     * waits for nothing but that, or it waits itself */
    uint64_t holder_slots;          /* of its lane */
    const struct watch_set *deserted; /* the absent reader of a full lane, or that lane */
    const struct watch_set *slowest;  /* attached, waits least */
    double least_share;

    uint32_t threads;
    double busy, slot_wait, order_wait; /* shares of the threads' time */
    double room_wait;                   /* of the threads' counted time, the share of slot_wait */
    const struct watch_set *blocker;    /* the reader whose lane was full when room was wanted: the
                                         * holder, or the one that waits far less; or NULL */
    const struct watch_set *pauser; /* the reader that paused most, beside waits_most; or NULL */
    double pause_share;             /* of the time, it paused */
    double run_delay, throttled;    /* seconds a second: without a processor, stopped by a quota */
    double memory_stalled;          /* ... in which a program waited for memory */
    uint32_t helpers, helpers_lost;
    double helper_rows; /* of the rows of late, the share that helpers made */
    double helper_busy; /* share of the time of those that are connected */
    double cpu;
    double
        off_processor; /* of the time in which threads work, the share that they wait for files */
    double deal_busy, program_wait;
    double node_wait;               /* seconds a second that threads wait for other nodes */
    double store_wait;              /* ... for files at URLs */
    const struct watch_set *store;  /* waited for most of these */
    const struct watch_set *delay;  /* an object that is waited for longest now, for a while */
    double python_wait;             /* ... for interpreters, their work included */
    const struct watch_set *python; /* worked most of these, and how busy they are */
    double python_share;
    const struct watch_set *stage;     /* the most expensive */
    double stage_share;                /* of the threads' time */
    const struct watch_set *long_call; /* a stage that one call has kept busy all the time */
    bool deals_long;                   /* the dealing thread has been at one step all the time */
    const struct watch_set *order;     /* of the order's stages the one that takes most */
    double order_share;                /* of the dealing thread's time */
    const struct watch_set *filling;   /* a shuffle that has given nothing yet */
    double skipped_share;              /* of the rows of late, those that were bad */
    const struct watch_worse *worse;   /* what is far more frequent than it used to be; or NULL */
    const struct watch_set *worse_set; /* ... where, */
    double worse_share, worse_before;  /* and its share of the values, of late and before */
};

/* Fill in the rest from before, now, session and passed_ns. */
void watch_observation_make(struct watch_observation *observation);

#endif
