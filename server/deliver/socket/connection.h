/* connection.h - a trainer's socket, as the server sees it.
 *
 * Any thread posts. Messages that the socket does not take at once wait here, with their
 * descriptors, until the hub's thread finds it writable. A connection that lets too many pile up is
 * cut off.
 */
#ifndef DELIVER_SOCKET_CONNECTION_H
#define DELIVER_SOCKET_CONNECTION_H

#include <stdbool.h>

#include "core/lock.h"
#include "shm/channel.h"

struct outgoing;

struct connection {
    int socket;
    int pid; /* 0: not known (another PID namespace) */
    struct tnd_lock lock;
    _Atomic bool broken; /* no more is sent, and the hub closes it: it looks without the lock */
    void (*backed_up)(struct connection *connection); /* called when messages wait; any thread */
    struct outgoing *first, *last;                    /* not sent yet */
    uint32_t outgoing_count;
};

void connection_open(struct connection *connection, int socket,
                     void (*backed_up)(struct connection *connection));
void connection_close(
    struct connection *connection); /* closes the socket; accepts a connection closed before */

/* Send a message now or later, in order. The bytes are copied; the descriptors stay the caller's,
 * duplicated if need be. */
void connection_post(struct connection *connection, struct tnd_message_head head, const void *bytes,
                     const int *descriptors, unsigned descriptor_count);

/* Send bytes of any number, as several messages. */
void connection_post_parts(struct connection *connection, struct tnd_message_head head,
                           const void *bytes, uint64_t byte_count);

/* Send with status and text. */
void connection_post_text(struct connection *connection, enum tnd_message_type type,
                          tundish_status status, const char *text);

/* The hub: send what waits. Returns true when nothing waits any more. */
bool connection_flush(struct connection *connection);

#endif
