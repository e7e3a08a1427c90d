/* hub_visitor.h - one connection to the server's socket: what it says, and what becomes of it. */
#ifndef DELIVER_HUB_VISITOR_H
#define DELIVER_HUB_VISITOR_H

#include <stdio.h>

#include "deliver/feed_hub.h"
#include "deliver/socket/client.h"
#include "deliver/socket/hub.h"

enum visitor_result {
    VISITOR_STAYS,
    VISITOR_SAT_DOWN, /* it has a seat from now on */
    VISITOR_LEFT,     /* in good order */
    VISITOR_DIED      /* hung up, or broke the rules */
};

struct visitor {
    struct client client;
    struct hub *hub;
    int64_t hello_deadline_ns;
    struct tnd_hello hello;
    bool has_hello;
    uint8_t *place;
    uint64_t place_bytes; /* received so far */
    struct feed *feed;    /* with a seat only */
    struct seat *seat;
    bool refused; /* it has been told why; it is to hang up now */
};

void visitor_open(struct visitor *visitor, struct hub *hub, int socket, int64_t hello_deadline_ns,
                  void (*backed_up)(struct client *client));

/* Leave the seat, if it has one, and hang up. */
void visitor_leave(struct visitor *visitor, bool died);

/* Take what it has said. */
enum visitor_result visitor_read(struct visitor *visitor);

/* The feed that is asked for, or NULL; and those there are, as a list. */
struct feed *hub_find(struct hub *hub, const char *stream, const char *session);
/* Have it made. OK and NULL: there is no such thing, and nobody who could make it. E_SERVER_GONE:
 * the hub is shut. */
tundish_status hub_make(struct hub *hub, const struct hub_wish *wish, struct feed **ret_feed);
tundish_status hub_control(struct hub *hub, enum tnd_control what, char *text, size_t text_bytes);
void hub_describe(struct hub *hub, char *text, size_t text_bytes);

#endif
