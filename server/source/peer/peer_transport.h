/* peer_transport.h - how messages get to other nodes and back: by the link of the job
 * (peer_link.h), or as a test likes. */
#ifndef SOURCE_PEER_PEER_TRANSPORT_H
#define SOURCE_PEER_PEER_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/status.h"

struct peer_message {
    uint32_t from;
    uint64_t kind, number; /* the sender's own */
    uint8_t *bytes;
    size_t byte_count;
    int64_t took_ns; /* that the last timed_bytes of them took to come */
    size_t timed_bytes;
};

/* Given a message, whose bytes it frees. It must not wait, but may send. */
typedef void peer_hear(void *user, const struct peer_message *message);

/* Messages from one node to another arrive in order; those to a lost node are dropped. Any thread
 * calls. */
struct peer_transport {
    void *context; /* given to each of these */
    uint32_t node_count;

    /* Hear all that comes, also what came before. NULL ends it, and returns when `hear` is not
     * being called. */
    void (*listen)(void *context, peer_hear *hear, void *user);

    /* The bytes are copied. Never waits. */
    void (*send)(void *context, uint32_t to, uint64_t kind, uint64_t number, const void *bytes,
                 size_t byte_count);

    /* Bytes for that node that have not been sent yet. */
    uint64_t (*queued)(void *context, uint32_t to);

    /* Wait until `is_here` says so of `waited`, which only a message of `from` makes it say.
     * E_PEER_LOST: there will be none. */
    tundish_status (*wait)(void *context, uint32_t from, bool (*is_here)(const void *waited),
                           const void *waited);

    /* The node's name, for messages to users. */
    void (*name)(void *context, uint32_t node, char *ret_name, size_t name_bytes);
};

#endif
