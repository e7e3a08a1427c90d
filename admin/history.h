/* history.h - an hour of metrics, one value a second, in memory that is bounded.
 *
 * A series is made when its figure is first seen and written once a second; a gap is NaN. When
 * HISTORY_SERIES are there, the one longest silent gives way: a job of 4,096 trainers on 512 nodes
 * has fewer.
 */
#ifndef ADMIN_HISTORY_H
#define ADMIN_HISTORY_H

#include <stdint.h>

#include "shm/stats.h"

enum {
    HISTORY_SECONDS = 3600,
    HISTORY_SERIES = 16384,
    HISTORY_CHAINS = 16384,
    HISTORY_NAME_BYTES = TND_STATS_LABEL_BYTES + 32
};

struct history_series {
    char name[HISTORY_NAME_BYTES];
    uint64_t last;                 /* the second it was last written in */
    struct history_series *next;   /* in its chain */
    float values[HISTORY_SECONDS]; /* second s is at s % HISTORY_SECONDS */
};

struct history {
    uint64_t second;                /* now: seconds since 1970 */
    uint64_t searched;              /* the last second in which no series could give way */
    uint32_t count;                 /* of series */
    struct history_series **series; /* in the order in which they were made */
    struct history_series **chains; /* by a hash of the name */
};

int history_open(struct history *history); /* 0, or -1 when there is no memory */
void history_close(struct history *history);

/* A second has passed since the last call, and the clock, which is not as even, shows this one. Go
 * on to the next; to the clock's, with gaps between, if the machine has slept; and begin again if
 * the clock has been set back. */
void history_advance(struct history *history, uint64_t clock);

/* This second's value; history_add adds to it. */
void history_note(struct history *history, const char *name, double value);
void history_add(struct history *history, const char *name, double value);

/* NULL: there is no such series. */
const struct history_series *history_find(const struct history *history, const char *name);

/* The mean of what is known of the last seconds; 0: nothing. */
double history_mean(const struct history *history, const struct history_series *series,
                    unsigned seconds);

#endif
