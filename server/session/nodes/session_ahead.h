/* session_ahead.h - replicas of a group on several nodes, some at places and some without.
 *
 * A node tells the others of a replica that is ahead (deliver/feed.h), while its trainer is there.
 * They refuse replicas of the same group without places, and tell those that are open already, as
 * they do beside a replica of their own.
 */
#ifndef SESSION_AHEAD_H
#define SESSION_AHEAD_H

#include "core/bytes.h"
#include "core/status.h"

struct session;

/* A trainer of the group has come or gone. */
void session_ahead_tell(struct session *session, const char *group);

/* What all have told of a group. */
void session_ahead_hear(struct session *session, struct byte_view bytes);

/* A trainer opens without a place. E_PLACE: a replica of another node is ahead of it. */
tundish_status session_ahead_check(struct session *session, const char *group, uint32_t replica);

#endif
