/* history.h - an hour of metrics, one value a second, in memory of a fixed size.
 *
 * A series is made when its figure is first seen and written once a second; a gap is NaN. When all
 * series are taken, the one longest silent gives way.
 */
#ifndef ADMIN_HISTORY_H
#define ADMIN_HISTORY_H

#include <stdint.h>

#include "shm/stats.h"

enum {
    HISTORY_SECONDS = 3600,
    HISTORY_SERIES = 512,
    HISTORY_NAME_BYTES = TND_STATS_LABEL_BYTES + 32
};

struct history_series {
    char name[HISTORY_NAME_BYTES]; /* "" : not used */
    uint64_t last;                 /* the second it was last written in */
    float values[HISTORY_SECONDS]; /* second s is at s % HISTORY_SECONDS */
};

struct history {
    uint64_t second;               /* now: seconds since 1970 */
    struct history_series *series; /* HISTORY_SERIES of them */
};

int history_open(struct history *history); /* 0, or -1 when there is no memory */
void history_close(struct history *history);

/* Go on to this second; those between are gaps. */
void history_advance(struct history *history, uint64_t second);
void history_note(struct history *history, const char *name, double value);

#endif
