/* session_replay.h - nodes whose trainers begin in different epochs.
 *
 * Nodes that deal rows of their own need one another at the beginning and at the end of each epoch.
 * Trainers that do not step together may resume in different epochs. A node that resumes in a later
 * epoch would be missing from the earlier ones. So it deals them again, from the lowest place of
 * all nodes, without publishing. Its own rows come from its own place, as ever.
 */
#ifndef SESSION_NODES_SESSION_REPLAY_H
#define SESSION_NODES_SESSION_REPLAY_H

#include "core/status.h"

struct session;
struct start;

/* Tell the other nodes where this one's trainers begin: at the start that is about to be gone to,
 * or, without one, where the stream does. Under `control`. A node that takes part in the epochs of
 * all tells no more. */
void session_replay_tell(struct session *session, const struct start *start);

/* The dealing thread, before it goes to a start that was given: waits until all nodes have told
 * theirs. E_PLACE: they go on with another run of the stream; E_PEER_LOST: the job has failed;
 * E_TIMEOUT: the session is being stopped. */
tundish_status session_replay(struct session *session);

#endif
