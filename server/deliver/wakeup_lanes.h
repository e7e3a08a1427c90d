/* wakeup_lanes.h - the calls between a wakeup and its lanes. */
#ifndef DELIVER_WAKEUP_LANES_H
#define DELIVER_WAKEUP_LANES_H

#include <stdbool.h>

#include "deliver/lane.h"
#include "deliver/wakeup.h"

/* wakeup_wait looks at a lane from wakeup_add to wakeup_remove. */
void wakeup_add(struct wakeup *wakeup, struct lane *lane);
void wakeup_remove(struct wakeup *wakeup, struct lane *lane);

/* Also sleep on this eventfd. */
bool wakeup_listen(struct wakeup *wakeup, int descriptor);
void wakeup_ignore(struct wakeup *wakeup, int descriptor);

/* Ask the trainers of a lane to signal, or not to. */
void lane_set_waits(struct lane *lane, bool waits);

/* Read the trainers' releases. Has anything happened since the last call? */
bool lane_take_progress(struct lane *lane);

#endif
