/* session_level.h - the trainers of all nodes have ended, and begin again at one step.
 *
 * Each node's server tells the others where its own trainers stood: the first step that one of them
 * has not given back. If these differ, all begin at the lowest, as at a place, and deal again what
 * some have dealt since.
 */
#ifndef SESSION_LEVEL_H
#define SESSION_LEVEL_H

#include <stdatomic.h>
#include <stdint.h>

#include "core/status.h"

struct session;

/* Where nodes do not deal steps together these do nothing. `number` counts from 1, on all nodes.
 * session_level_tell waits until the hub has noticed that the trainers' processes are gone, and
 * posts their place. session_level_reach waits for the other nodes and goes to the lowest place.
 * E_TIMEOUT: a trainer still reads, or *stop is not 0; E_PEER_LOST: the job has failed. */
tundish_status session_level_tell(struct session *session, uint64_t number,
                                  const _Atomic int *stop);
tundish_status session_level_reach(struct session *session, uint64_t number,
                                   const _Atomic int *stop);

#endif
