/* node_channel.h - how bytes get from node to node: one kind for each way.
 *
 * A message is a few bytes up to CHANNEL_MESSAGE_BYTES. Those from one node to another arrive whole
 * and in order, or not at all any more. One thread calls, the one that opened the channel, and
 * nothing here waits. Kinds stand by themselves, so that one may be loaded when it is needed.
 */
#ifndef LINK_NODE_CHANNEL_H
#define LINK_NODE_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Few enough that MPI sends them at once: with a handshake, a node that dies within it would take
 * the others with it. */
enum { CHANNEL_MESSAGE_BYTES = 32 << 10, CHANNEL_TEXT_BYTES = 256 };

struct channel_ops {
    const char *name;

    /* Join the job; waits for its other nodes. NULL: `ret_text` says why not. */
    void *(*open)(uint32_t *ret_rank, uint32_t *ret_size, char ret_text[CHANNEL_TEXT_BYTES]);

    /* Begin to send; the bytes are copied. False: too much is under way to that node; try again. */
    bool (*send)(void *state, uint32_t to, const void *bytes, size_t byte_count);

    /* The next message that has come, the channel's until the next call. 0: none. */
    size_t (*receive)(void *state, uint32_t *ret_from, const void **ret_bytes);

    /* in_order: all nodes do this now, and it may wait for them. Else leave at once. */
    void (*close)(void *state, bool in_order);
};

/* A single node, which has no other to send to. */
extern const struct channel_ops link_none;

/* A rank of an MPI job. The symbol of the loadable module that holds it. */
extern const struct channel_ops link_mpi;

#endif
