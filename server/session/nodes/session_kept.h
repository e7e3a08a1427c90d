/* session_kept.h - the places that nodes keep are of one run (serve --state).
 *
 * A node may have no place where others have one: it had not begun, or its disk is a new one. It
 * begins with the stream, and gets all of its rows, but only if it draws the order that the others
 * go on with.
 */
#ifndef SESSION_KEPT_H
#define SESSION_KEPT_H

#include <stdbool.h>

#include "core/status.h"

struct session;

/* Each node's servers call it before the session starts, and wait for each other. `is_there`: this
 * node's place has been restored. E_PLACE: the places are of several runs; E_PEER_LOST: another
 * node has refused its own. */
tundish_status session_kept_agree(struct session *session, bool is_there);

#endif
