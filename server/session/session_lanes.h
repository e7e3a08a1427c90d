/* session_lanes.h - the lanes of a session: how they are, and how large. */
#ifndef SESSION_SESSION_LANES_H
#define SESSION_SESSION_LANES_H

#include "deliver/lane.h"
#include "plan/plan.h"

struct session;

/* What the plan says of a lane, all but its size. */
void session_lane_config(const struct plan *plan, const tundish_spec *spec,
                         struct lane_config *ret_config);

/* Measure the first step, choose codecs where that is left to the server, and give the lane its
 * size. Opens the dealer anew. E_MEMORY, with the arithmetic, if there is no room for all lanes. */
tundish_status session_size_lanes(struct session *session, struct lane_config *lane);

#endif
