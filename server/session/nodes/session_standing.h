/* session_standing.h - where the replicas of a group stand, on several nodes.
 *
 * A node whose trainer asks gives the question a number and tells the others. Each answers once:
 * of the batches that its replicas want next, the first and the last.
 */
#ifndef SESSION_NODES_SESSION_STANDING_H
#define SESSION_NODES_SESSION_STANDING_H

#include <stdbool.h>
#include <stdint.h>

#include "core/bytes.h"

struct feed_standing;
struct link_key;
struct session;

/* As feed_ops.find_standing. Known only where nodes take steps together. */
bool session_standing_find(struct session *session, const char *group, uint64_t *number,
                           struct feed_standing *ret_standing);

/* A total of LINK_STANDING has come. */
void session_standing_hear(struct session *session, const struct link_key *key,
                           struct byte_view bytes);

#endif
