/* hub_protocol.h - the protocol of one connection to the server's socket. */
#ifndef DELIVER_SOCKET_HUB_PROTOCOL_H
#define DELIVER_SOCKET_HUB_PROTOCOL_H

#include <stdio.h>

#include "deliver/feed_hub.h"
#include "deliver/socket/connection.h"
#include "deliver/socket/hub.h"

enum protocol_result {
    PROTOCOL_CONTINUES,
    PROTOCOL_JOINED, /* it is a member of a group from now on */
    PROTOCOL_LEFT,   /* in good order */
    PROTOCOL_BROKEN  /* hung up, or broke the rules */
};

struct protocol {
    struct connection connection;
    struct hub *hub;
    int64_t hello_deadline_ns;
    struct tnd_hello hello;
    bool has_hello;
    uint8_t *place;
    uint64_t place_bytes; /* received so far */
    struct feed *feed;    /* members only */
    struct member *member;
    bool may_control;
    bool refused; /* it has been told why, and is to be closed now */
};

void protocol_open(struct protocol *protocol, struct hub *hub, int socket,
                   int64_t hello_deadline_ns, void (*backed_up)(struct connection *connection));

/* Leave the group, if it is a member of one, and close the socket. */
void protocol_close(struct protocol *protocol, bool died);

/* Handle the messages that it has sent. */
enum protocol_result protocol_read(struct protocol *protocol);

/* The requested feed, or NULL; and a list of the feeds that exist. */
struct feed *hub_find(struct hub *hub, const char *stream, const char *session);
/* Have it made. OK and NULL: no such stream exists, or nothing makes sessions. E_SERVER_GONE: the
 * hub is shut. */
tundish_status hub_make(struct hub *hub, const struct hub_request *request, struct feed **ret_feed);
tundish_status hub_control(struct hub *hub, enum tnd_control what, char *text, size_t text_bytes);
void hub_describe(struct hub *hub, char *text, size_t text_bytes);

#endif
