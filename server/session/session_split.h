/* session_split.h - trainers may go on at different steps only if the rows of a step still go to
 * the same trainers.
 *
 * The rows of a global batch do not depend on the numbers of workers and replicas, but which
 * trainer receives which does. So where either number has changed, trainers that open at places of
 * different steps would receive some rows twice and others never. A place says from which step on
 * its numbers have held, and all trainers' places must agree on it: those of other numbers change
 * at their own step.
 */
#ifndef SESSION_SESSION_SPLIT_H
#define SESSION_SESSION_SPLIT_H

#include "core/bytes.h"
#include "deliver/feed.h"
#include "link/link.h"
#include "session/checkpoint/place_contents.h"

struct session;

/* As here, from a step on. */
struct place_split session_split_from(const struct session *session, uint64_t epoch, uint64_t step);

/* From which step on the rows are split as here, for a trainer that opens at this place. */
struct place_split session_split_of(const struct session *session, const struct place *place,
                                    const struct feed_start *start);

/* E_PLACE if the two differ. Either may be unknown. */
tundish_status session_split_check(const struct session *session, const struct place_split *one,
                                   const struct place_split *other);

/* Tell the other nodes where this one's trainers have begun, or that none do any more; and hear it
 * of all, which fails the session where two differ. The dealing thread asks too, before its first
 * step: E_PLACE. */
void session_split_tell(struct session *session, bool is_read);
void session_split_hear(struct session *session, struct byte_view bytes);
tundish_status session_split_agrees(const struct session *session);

#endif
