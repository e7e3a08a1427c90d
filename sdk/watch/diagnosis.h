/* diagnosis.h - the bottleneck of a job and its cause, in one sentence.
 *
 * The diagnosis compares two snapshots some seconds apart. It looks at the trainers first: while
 * none waits, the server is fast enough. If one waits, the cause is one of these: the content
 * (named by its most expensive stage), the order, another trainer that has not freed its slots, the
 * store that files at URLs come from, or the machine, which has no processor or no memory for the
 * server. Data that have become worse (many bad rows, terms that no vocabulary has) are reported in
 * either case.
 */
#ifndef TND_WATCH_DIAGNOSIS_H
#define TND_WATCH_DIAGNOSIS_H

#include "watch/snapshot.h"

/* The worse, the higher. */
enum watch_level {
    WATCH_IDLE,     /* no trainer reads, or nothing has happened yet */
    WATCH_FINE,     /* trainers are the limit */
    WATCH_WARNING,  /* trainers are fed, with data that have become worse */
    WATCH_STOPPING, /* the server drains */
    WATCH_WAITING,  /* trainers wait for the server, or for each other */
    WATCH_STUCK,    /* a trainer holds up the others */
    WATCH_FAILED,   /* a stream ended with an error */
    WATCH_GONE      /* the server hangs or has died */
};

/* The cause, and so the place to look at. */
enum watch_cause {
    WATCH_CAUSE_NONE,
    WATCH_CAUSE_TRAINER,
    WATCH_CAUSE_SOURCE,
    WATCH_CAUSE_STAGE,
    WATCH_CAUSE_ORDER,
    WATCH_CAUSE_SLOTS,
    WATCH_CAUSE_DISK,
    WATCH_CAUSE_ERROR,
    WATCH_CAUSE_SERVER,
    WATCH_CAUSE_PROCESSORS,
    WATCH_CAUSE_DATA,
    WATCH_CAUSE_STORE,
    WATCH_CAUSE_MEMORY,
    WATCH_CAUSE_NODE
};

struct watch_diagnosis {
    enum watch_level level;
    enum watch_cause cause;
    char stream[TND_STATS_VALUE_BYTES];
    char culprit[64];  /* the stage's name, the replica, or the store */
    double wait_share; /* of the trainer that waits most, 0 .. 1 */
    double share;      /* how busy the culprit is, of its threads, 0 .. 1 */
    double file_share; /* of the time in which threads work, they wait for files, 0 .. 1 */
    char sentence[640];
    char advice[480]; /* what to change, or "" */
};

/* The worst of all streams. `before` is an earlier snapshot of the same server. */
void watch_diagnose(const struct watch_snapshot *before, const struct watch_snapshot *now,
                    struct watch_diagnosis *ret_diagnosis);

/* Diagnose one stream, by its set of kind "stream". */
void watch_diagnose_stream(const struct watch_snapshot *before, const struct watch_snapshot *now,
                           const struct watch_set *stream, struct watch_diagnosis *ret_diagnosis);

/* At a higher level, or at the same with more waiting. */
bool watch_is_worse(const struct watch_diagnosis *one, const struct watch_diagnosis *other);

const char *watch_level_name(enum watch_level level);
const char *watch_cause_name(enum watch_cause cause);

#endif
