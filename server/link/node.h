/* node.h - one node's part in a job, as a state machine of messages and conclusions.
 *
 * Nodes form a tree (tree.h), and each talks with those next to it: a job of thousands costs a node
 * no more than one of ten. Three things go through the tree.
 *
 * A post is bytes under a key, which every node keeps: each hands it on to its other neighbours.
 * Posts are facts about the job (a seed, an error), so they may arrive late and are never answered.
 * A later post of a node under the same key replaces the earlier.
 *
 * A tally is one value made of those of all nodes: parents merge what their children say, and the
 * root's total comes down to all. A node that needs something of all waits for the total.
 *
 * A loss: neighbours hear from each other at least every `beat_ns`. One from which nothing has come
 * for `silence_ns` is lost. The first to notice tells all, and the job has failed permanently, in
 * the same way for every node. Its other neighbours then hand on to each other. A node that leaves
 * says so, and is not missed.
 *
 * Mail goes to one node without a way over others. After mail a node must be heard from as well, so
 * one that cannot be reached is found, wherever it is in the tree. Or it goes through the tree:
 * slower, but a node to which all write has few messages.
 *
 * One thread; time comes from core/clock.h and messages from a channel, so tests run jobs of many
 * nodes through any interleaving.
 */
#ifndef LINK_NODE_H
#define LINK_NODE_H

#include "core/bytes.h"
#include "link/link.h"
#include "link/node_channel.h"

struct node;

enum { NODE_NAME_BYTES = 128 };

struct node_config {
    const struct channel_ops *channel;
    void *channel_state;
    uint32_t rank, size;
    const char *host;
    int64_t beat_ns, silence_ns;
    int64_t counters_ns; /* how often a node passes counters on, times the tree's levels */

    /* A post of another node has arrived whole, or a tally's total (`from` is 0 then). Not called
     * for this node's own posts. */
    void (*arrived)(void *user, uint32_t from, const struct link_key *key, struct byte_view bytes);

    /* So has a message, which the callee owns. */
    void (*message_came)(void *user, const struct link_message *message);
    void *user;
};

void node_open(const struct node_config *config, struct node **ret_node);
void node_close(struct node *node);

/* Receive the messages that have arrived, send those that are due, look for silent nodes. Returns
 * whether anything moved: if not, there is nothing to do for a while, at most beat_ns. */
bool node_step(struct node *node);

/* Copied. */
void node_post(struct node *node, const struct link_key *key, const void *bytes, size_t byte_count);

/* This node's value, copied. It may be replaced where the tally is running. */
void node_tally(struct node *node, const struct link_key *key, const struct link_tally *own);

/* The bytes are valid until the next call that changes the node. */
bool node_find_total(const struct node *node, const struct link_key *key,
                     struct link_total *ret_total);

/* Copied; goes to one other node, and is kept by none. Messages for a lost node are dropped. */
void node_send(struct node *node, uint32_t to, const struct link_key *key, const void *bytes,
               size_t byte_count);

/* The same, handed on through the tree. */
void node_send_by_tree(struct node *node, uint32_t to, const struct link_key *key,
                       const void *bytes, size_t byte_count);

/* Something that was sent so has not come to a node that is there. */
bool node_is_unheard(const struct node *node);

/* Bytes of messages for that node that the channel has not taken yet. */
uint64_t node_queued(const struct node *node, uint32_t to);

/* The job has failed for this node, whatever the others conclude. */
void node_fail(struct node *node, const char *text);

/* The post of `rank` under the key (this node's own posts too); false: there is none yet. Valid
 * until the next call that changes the node. */
bool node_find(const struct node *node, const struct link_key *key, uint32_t rank,
               struct byte_view *ret_bytes);

/* Drop the posts under the key, of all nodes, and the tally. */
void node_forget(struct node *node, const struct link_key *key);

/* Say that this node leaves; its earlier posts are sent first. */
void node_leave(struct node *node);
bool node_is_done(const struct node *node); /* it has left, and so have all others */

/* A node that has left, or the size if none has. */
uint32_t node_first_left(const struct node *node);
bool node_has_left(const struct node *node, uint32_t rank);

/* It has not been heard of for too long, or another node says so; this one: others say so. */
bool node_is_lost(const struct node *node, uint32_t rank);

/* Why the job has failed, or NULL. */
const char *node_failure(const struct node *node);

/* "node HOST (rank R)"; without the host until all nodes have told theirs. Returns ret_name. */
const char *node_name(const struct node *node, uint32_t rank, char ret_name[NODE_NAME_BYTES]);

void node_stats(const struct node *node, struct link_stats *ret_stats);

#endif
