/* hub.h - the server's socket: trainers attach here, and the hub notices when they are gone.
 *
 * One thread, asleep unless something happens. It listens, shakes hands, watches sockets and
 * pidfds, announces segments, and keeps the heartbeat. All that a connection sends is hostile:
 * bounded, checked, and a connection that breaks the rules is cut off.
 */
#ifndef DELIVER_SOCKET_HUB_H
#define DELIVER_SOCKET_HUB_H

#include <sys/types.h>

#include "deliver/feed.h"
#include "shm/channel.h"

struct hub;

/* Which feed a trainer wants. Empty names: the default. */
struct hub_request {
    const char *stream, *session, *group;
    uint32_t replica;
};

struct hub_config {
    const char *socket_path; /* its folder is made with mode 0700 if it is not there */
    const gid_t *group;      /* whose members' trainers may come, too; NULL: none */
    uint32_t client_limit;   /* sockets at a time; 0: 256 */
    int64_t hello_ns;        /* time a connection has to send HELLO; 0: 5 s */

    /* Make the session that a trainer asks for. OK with a feed that has been added, or with
     * NULL; else the reason for the refusal. In the hub's thread. NULL: only the added feeds are
     * served. */
    tundish_status (*make)(void *user, const struct hub_request *request, struct feed **ret_feed);
    /* An operator's request; the result is described in `text`. In the hub's thread. NULL:
     * operators' requests are refused. */
    tundish_status (*control)(void *user, enum tnd_control what, char *text, size_t text_bytes);
    void *user;
};

/* Listen. E_ARGUMENT: path too long; another server is alive there (named). The socket of a dead
 * server is replaced. */
tundish_status hub_open(const struct hub_config *config, struct hub **ret_hub);

/* Start and stop its thread. Between them, feeds may be added and taken away at any time. */
tundish_status hub_start(struct hub *hub);
void hub_stop(struct hub *hub);
void hub_close(struct hub *hub); /* stops first; accepts NULL */

/* Streams are found by name; the feed outlives its stay here. Trainers that ask for another session
 * than the stream's name get the feed of that session, or a refusal that names those there are. */
tundish_status hub_add(struct hub *hub, struct feed *feed);

/* Cut off its trainers and forget it. Waits for a callback that is running, so not to be called
 * from one. */
void hub_remove(struct hub *hub, struct feed *feed);

/* The server is ending: trainers that come from now on are told E_SERVER_GONE. Otherwise they would
 * be told that a removed stream does not exist. Any thread. */
void hub_shut(struct hub *hub);

/* Other descriptors of the server may live in this loop (signals, control socket): `ready` is
 * called in the hub's thread when the descriptor polls readable. */
tundish_status hub_add_descriptor(struct hub *hub, int descriptor, void (*ready)(void *user),
                                  void *user);

#endif
