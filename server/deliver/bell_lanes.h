/* bell_lanes.h - what bell and lanes know of each other. */
#ifndef DELIVER_BELL_LANES_H
#define DELIVER_BELL_LANES_H

#include <stdbool.h>

#include "deliver/bell.h"
#include "deliver/lane.h"

/* A lane is looked at by bell_wait between these. */
void bell_add(struct bell *bell, struct lane *lane);
void bell_remove(struct bell *bell, struct lane *lane);

/* Sleep on this eventfd, too. */
bool bell_listen(struct bell *bell, int descriptor);
void bell_ignore(struct bell *bell, int descriptor);

/* Ask the trainers of a lane to ring, or not to. */
void lane_set_waits(struct lane *lane, bool waits);

/* Look at what trainers have released; has anything happened since the last call of this? */
bool lane_take_progress(struct lane *lane);

#endif
