/* session_seeds.h - the nodes of a job deal one order of a stream, by one root seed.
 *
 * A place brings the root seed of its run; without one a node takes the job's. Another seed is
 * another order, in which rows lie in other steps: nodes in different runs would lose some rows and
 * repeat others.
 *
 * Places that nodes have kept (serve --state) are compared before the session starts. A node may
 * have none where others have one: it had not begun, or its disk is a new one. It begins with the
 * stream, in the order that the others go on with.
 *
 * Trainers bring theirs later. A node whose trainers have brought a place tells its seed when it
 * begins. Others may have trainers that are about to load theirs, so they tell when these have
 * given more batches back than a reader takes ahead of its program.
 */
#ifndef SESSION_NODES_SESSION_SEEDS_H
#define SESSION_NODES_SESSION_SEEDS_H

#include <stdbool.h>

#include "core/bytes.h"
#include "core/status.h"

struct session;

/* Before the session starts; waits for the other nodes. `is_kept`: this node has restored its
 * place. E_PLACE: the places are of several runs; E_PEER_LOST: another node has refused its own. */
tundish_status session_seeds_agree(struct session *session, bool is_kept);

/* The dealing thread, when it begins, and before each step. */
void session_seeds_begin(struct session *session);
void session_seeds_tell(struct session *session);

/* The trainers are gone, and others may go on with another run. */
void session_seeds_withdraw(struct session *session);

/* The seeds of all nodes: fails the session if two differ. */
void session_seeds_hear(struct session *session, struct byte_view bytes);

#endif
