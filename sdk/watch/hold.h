/* hold.h - keep a verdict long enough to be read.
 *
 * Two causes of about the same weight would otherwise take turns at each look.
 */
#ifndef TND_WATCH_HOLD_H
#define TND_WATCH_HOLD_H

#include "watch/diagnosis.h"

/* The verdict that is shown, and since when; zeros at first. */
struct watch_held {
    struct watch_diagnosis shown;
    int64_t since_ns;
};

/* Choose the diagnosis to show. The present one stays for three seconds, unless the new one has the
 * same cause (its figures are newer), or either says more than that trainers wait or do not: such
 * news is shown at once. */
void watch_hold(struct watch_held *held, int64_t now_ns, struct watch_diagnosis *diagnosis);

#endif
