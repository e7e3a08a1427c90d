/* session_lanes.h - a session finds out how large its lanes must be. */
#ifndef SESSION_SESSION_LANES_H
#define SESSION_SESSION_LANES_H

#include "deliver/lane.h"

struct session;

/* Measure the first step, choose codecs where that is left to the server, and give the lane its
 * size. Reopens the dealer. E_MEMORY, with the arithmetic, if there is no room for all lanes. */
tundish_status session_size_lanes(struct session *session, struct lane_config *lane);

#endif
