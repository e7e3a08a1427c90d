/* session_marks.h - nodes that deal one order compare it: a hash every few steps, and one of the
 * epoch at its end.
 *
 * Each gives its own, and is told which there are, off the dealing thread's way. Only where nothing
 * else has told that the nodes have the same rows (a program writes them, or they lie in a cache)
 * does an epoch's end wait until all have given theirs: an epoch may be over before the first hash.
 */
#ifndef SESSION_NODES_SESSION_MARKS_H
#define SESSION_NODES_SESSION_MARKS_H

#include "link/link.h"

struct session;

enum { SESSION_MARK_STEPS = 1024 };

/* The dealing thread, after each step: give the dealer's notes since then. */
void session_marks_post(struct session *session);

/* The dealing thread: the epoch ends. E_DATA: two nodes had other rows; E_PEER_LOST, or E_TIMEOUT
 * if the session is stopped: a node did not say. */
tundish_status session_marks_end(struct session *session);

/* Does it wait for the other nodes, since only their rows show whether they are the same? */
bool session_marks_end_waits(const struct session *session);

/* An epoch that is long past. */
void session_marks_forget(struct session *session, uint64_t epoch);

/* The marks of all nodes, a total of LINK_ORDER. If some differ, the stream ends with an error. */
void session_marks_hear(struct session *session, const struct link_key *key,
                        struct byte_view bytes);

#endif
