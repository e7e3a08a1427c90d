/* siblings.h - nodes that do the same work, compared: which of them is slow. */
#ifndef TND_WATCH_SIBLINGS_H
#define TND_WATCH_SIBLINGS_H

#include "watch/diagnosis.h"

struct watch_sibling {
    const struct watch_snapshot *before, *now;
    struct watch_diagnosis *diagnosis;
    double slowness; /* filled in: its time for a row, of the median of the others'; 0: not known */
};

/* Compare the nodes' times for a row of the stream that each verdict is about. Where the trainers
 * of a node that is far slower than the others wait, its verdict says so: what all nodes do is then
 * not the reason. */
void watch_compare(struct watch_sibling *siblings, uint32_t count);

#endif
