/* peer_link.h - messages to other nodes by the link of the job. */
#ifndef SOURCE_PEER_PEER_LINK_H
#define SOURCE_PEER_PEER_LINK_H

#include "source/peer/peer_transport.h"

struct link;

struct peer_link {
    struct link *link;
    peer_hear *hear;
    void *user;
};

/* `ret_link` is the transport's context, and must stay where it is. */
struct peer_transport peer_link_transport(struct link *link, struct peer_link *ret_link);

#endif
