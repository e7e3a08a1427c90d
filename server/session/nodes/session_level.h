/* session_level.h - the trainers of all nodes have ended, and begin again at one step.
 *
 * Each node's server tells the others where its own trainers stood: the first step that one of them
 * has not given back. If these differ, all begin at the lowest, as at a place, and deal again what
 * some have dealt since.
 */
#ifndef SESSION_NODES_SESSION_LEVEL_H
#define SESSION_NODES_SESSION_LEVEL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/bytes.h"
#include "core/status.h"
#include "shm/place.h"

struct session;

/* The lowest place. Without bytes: the stream's beginning. */
struct session_standing {
    uint8_t *bytes;
    size_t byte_count;
    struct tnd_place place;
};

/* Tell the other nodes where this one's trainers stand. Never waits. */
tundish_status session_level_tell_place(struct session *session, uint64_t number,
                                        struct byte_view bytes);

/* Wait for the lowest of all nodes' places, whose bytes the caller frees. */
tundish_status session_level_find(struct session *session, uint64_t number, const _Atomic int *stop,
                                  struct session_standing *ret_lowest);

/* Have all nodes told? */
bool session_level_is_known(struct session *session, uint64_t number);

/* Where nodes do not deal steps together these do nothing. `number` counts from 1, on all nodes.
 * session_level_tell waits until the hub has noticed that the trainers' processes are gone, and
 * posts their place. session_level_reach waits for the other nodes and goes to the lowest place.
 * E_TIMEOUT: a trainer still reads, or *stop is not 0; E_PEER_LOST: the job has failed. */
tundish_status session_level_tell(struct session *session, uint64_t number,
                                  const _Atomic int *stop);
tundish_status session_level_reach(struct session *session, uint64_t number,
                                   const _Atomic int *stop);

#endif
