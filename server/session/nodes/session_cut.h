/* session_cut.h - an epoch that all trainers of all nodes leave before its end.
 *
 * Each node tells how many epochs it has left or wants to leave: those before the one that it began
 * with, and those that all of its trainers have asked to leave. An epoch that every node has left,
 * or wants to, is cut: each stops and tells its step, and the highest one is the end, since no
 * worker can take back a step that it has dealt. A node that began with a later epoch has none.
 *
 * The order of the next epoch may depend on where this one was cut. A node that resumed in the next
 * epoch publishes the order state of its place, and nodes that reach that epoch later use it. A
 * place saved between the cut and the next batch lacks that state. Another node's place may have
 * it; if none has, every such node computes the same state itself.
 */
#ifndef SESSION_NODES_SESSION_CUT_H
#define SESSION_NODES_SESSION_CUT_H

#include "link/link.h"

struct session;

/* The dealing thread, before it deals: `epoch` is the first, whose state the start that was given
 * may know. */
void session_cut_begin(struct session *session, uint64_t epoch);

/* The trainers are there, and the start is that of their places; or all are gone. */
void session_cut_tell_read(struct session *session, bool is_read);

/* The start is about to be moved: nothing is told until session_cut_begin. */
void session_cut_stop(struct session *session);

/* The dealing thread, before it goes to the start: if the start does not know the state of its own
 * epoch, waits until the trainers of all nodes are there, and takes the state from those that do.
 * E_PEER_LOST: the job has failed; E_TIMEOUT: the session is being stopped. */
tundish_status session_cut_learn(struct session *session, uint64_t epoch);

/* The dealing thread has gone to such a start: tells what the epoch's state is. */
void session_cut_tell_state(struct session *session, uint64_t epoch);

/* Every replica here has asked for the next epoch. Is `number` the step at which this one ends,
 * for all? A node that replays the epoch always asks, and ends it wherever the others do.
 * E_PEER_LOST: the epoch has no other end, and a node is lost or has left that does not want it. */
tundish_status session_cut(struct session *session, uint64_t number, bool *ret_cut);

/* Do all want the epoch's end, and is it not agreed yet where that is? */
bool session_cut_is_due(struct session *session);

/* The epoch ends before this step, cut or not. */
void session_cut_tell_end(struct session *session, uint64_t number);

/* The dealing thread has begun the epoch after one that was cut: with the state that others told of
 * it, if they did. */
tundish_status session_cut_follow(struct session *session, uint64_t epoch);

/* A total of LINK_RESTART has come. */
void session_cut_hear(struct session *session, const struct link_key *key);

#endif
