/* session_ahead.h - replicas of a group on several nodes, some at places and some without.
 *
 * A node tells the others of a replica that is ahead (deliver/feed.h), while its trainer is there.
 * They tell replicas of the same group without places, those to come and those that are open
 * already, as they do beside a replica of their own.
 */
#ifndef SESSION_NODES_SESSION_AHEAD_H
#define SESSION_NODES_SESSION_AHEAD_H

#include <stdbool.h>
#include <stdint.h>

#include "core/bytes.h"

struct feed_elsewhere;
struct session;

/* A trainer of the group has come or gone. */
void session_ahead_tell(struct session *session, const char *group);

/* The values of all nodes for a group. */
void session_ahead_hear(struct session *session, struct byte_view bytes);

/* A trainer opens without a place: is a replica of another node ahead of it? */
bool session_ahead_find(struct session *session, const char *group, uint32_t replica,
                        struct feed_elsewhere *ret_ahead);

#endif
