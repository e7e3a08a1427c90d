/* session_marks.h - nodes that deal one order compare it: a hash every so many steps, and of the
 * epoch at its end.
 *
 * Each posts its own and compares what it hears, off the dealing thread's way. Only where nothing
 * else has told that the nodes have the same rows (a program writes them, or they lie in a cache)
 * does an epoch's end wait until all have compared: an epoch may be over before the first hash.
 */
#ifndef SESSION_MARKS_H
#define SESSION_MARKS_H

#include "link/link.h"

struct session;

enum { SESSION_MARK_STEPS = 1024 };

/* The dealing thread, after each step: post the dealer's notes since then. */
void session_marks_post(struct session *session);

/* The dealing thread: tell the others that the epoch ends before `step`. E_DATA: another node had
 * other rows; E_PEER_LOST, or E_TIMEOUT if the session is stopped: it did not say. */
tundish_status session_marks_end(struct session *session, uint64_t step);

/* What another node posted as LINK_ORDER or LINK_RESTART. If it differs, the stream ends with an
 * error. */
void session_marks_hear(struct session *session, const char *who, const struct link_key *key,
                        struct byte_view bytes);

#endif
