/* client.h - a trainer's socket, as the server sees it.
 *
 * Any thread posts; what the socket does not take at once waits here, with its descriptor, until
 * the hub's thread finds it writable. A client that lets more pile up than it could ever need is
 * cut off.
 */
#ifndef DELIVER_CLIENT_H
#define DELIVER_CLIENT_H

#include <pthread.h>
#include <stdbool.h>

#include "shm/channel.h"

struct client_letter;

struct client {
    int socket;
    int pid; /* 0: not known (another PID namespace) */
    pthread_mutex_t lock;
    bool broken;                              /* nothing is sent any more; the hub will close it */
    void (*backed_up)(struct client *client); /* called when letters wait; any thread */
    struct client_letter *first, *last;       /* not sent yet */
    uint32_t letter_count;
};

void client_open(struct client *client, int socket, void (*backed_up)(struct client *client));
void client_close(struct client *client); /* closes the socket; accepts a client closed before */

/* Send a message now or later, in order. The bytes are copied; the descriptors stay the caller's,
 * duplicated if need be. */
void client_post(struct client *client, struct tnd_message_head head, const void *bytes,
                 const int *descriptors, unsigned descriptor_count);

/* Send bytes of any number, as several messages. */
void client_post_parts(struct client *client, struct tnd_message_head head, const void *bytes,
                       uint64_t byte_count);

/* Send with status and text. */
void client_post_text(struct client *client, enum tnd_message_type type, tundish_status status,
                      const char *text);

/* The hub: send what waits. Returns true when nothing waits any more. */
bool client_flush(struct client *client);

#endif
