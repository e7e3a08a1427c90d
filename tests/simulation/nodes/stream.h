/* stream.h - a session without rows: what a dealing thread says to the other nodes, step by step.
 *
 * The functions of session/nodes are the server's; the dealer and the trainers are left out. A node
 * has so many steps in each epoch, and others have more or fewer.
 */
#ifndef SIMULATION_STREAM_H
#define SIMULATION_STREAM_H

#include "link/link.h"

struct session;

struct stream_options {
    bool are_known;       /* under DATA: nobody is asked */
    bool ends_with_first; /* an epoch is over where the first node has no more */
    bool places_differ;   /* the random stages of each node stand elsewhere */
};

struct session *stream_open(struct link *link, const struct stream_options *options);
void stream_close(struct session *session); /* accepts NULL */

/* From here on it deals other rows than the other nodes do. */
void stream_err(struct session *session);

/* E_DATA: the place is not that of all nodes. */
tundish_status stream_begin_epoch(struct session *session, uint64_t epoch);

/* This node's trainers want the next epoch before step `number`. ret_cut: so do all, and this one
 * is over. */
tundish_status stream_cut(struct session *session, uint64_t number, bool *ret_cut);

/* Deal this step, of which this node has rows or not. ret_more: it is not the end for all. */
tundish_status stream_deal(struct session *session, uint64_t number, bool has, bool *ret_more);

void stream_tell_error(struct session *session, const char *text);
void stream_hear(struct session *session, uint32_t from, const struct link_key *key,
                 struct byte_view bytes);

/* The error that has ended it, or NULL. */
const char *stream_error(const struct session *session);

#endif
