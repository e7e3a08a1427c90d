/* wakeup_lanes.h - what a wakeup and its lanes know of each other. */
#ifndef DELIVER_WAKEUP_LANES_H
#define DELIVER_WAKEUP_LANES_H

#include <stdbool.h>

#include "deliver/lane.h"
#include "deliver/wakeup.h"

/* A lane is looked at by wakeup_wait between these. */
void wakeup_add(struct wakeup *wakeup, struct lane *lane);
void wakeup_remove(struct wakeup *wakeup, struct lane *lane);

/* Sleep on this eventfd, too. */
bool wakeup_listen(struct wakeup *wakeup, int descriptor);
void wakeup_ignore(struct wakeup *wakeup, int descriptor);

/* Ask the trainers of a lane to signal, or not to. */
void lane_set_waits(struct lane *lane, bool waits);

/* Look at what trainers have released; has anything happened since the last call of this? */
bool lane_take_progress(struct lane *lane);

#endif
