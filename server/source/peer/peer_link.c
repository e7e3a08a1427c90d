/* peer_link.c - see peer_link.h. The key of a message has a message's kind as its epoch, and the
 * number as its part. */
#include "source/peer/peer_link.h"

#include "link/link.h"
#include "link/node_channel.h"

/* The clock starts when the first piece arrives, so its bytes are not counted. */
static void
hear_message(void *user, const struct link_message *received)
{
    const struct peer_link *link = user;
    struct peer_message message = {
        .from = received->from,
        .kind = received->key.epoch,
        .number = received->key.part,
        .bytes = received->bytes,
        .byte_count = received->byte_count,
        .took_ns = received->took_ns,
        .timed_bytes = received->byte_count > CHANNEL_MESSAGE_BYTES
                           ? received->byte_count - CHANNEL_MESSAGE_BYTES
                           : 0,
    };

    link->hear(link->user, &message);
}

static void
listen_to_link(void *context, peer_hear *heard_by, void *user)
{
    struct peer_link *link = context;

    /* Closing the mailbox waits until hear_message has returned. */
    if (heard_by == NULL) {
        link_open_mailbox(link->link, LINK_ROWS, NULL, NULL);
        return;
    }
    link->hear = heard_by;
    link->user = user;
    link_open_mailbox(link->link, LINK_ROWS, hear_message, link);
}

static void
send_by_link(void *context, uint32_t to, uint64_t kind, uint64_t number, const void *bytes,
             size_t byte_count)
{
    const struct peer_link *link = context;
    struct link_key key = { .topic = LINK_ROWS, .epoch = kind, .part = number };

    link_send(link->link, to, &key, bytes, byte_count);
}

static uint64_t
queued_in_link(void *context, uint32_t to)
{
    const struct peer_link *link = context;

    return link_queued(link->link, to);
}

struct waiting {
    bool (*is_here)(const void *waited);
    const void *waited;
};

static bool
is_ready(struct link *link, void *context)
{
    const struct waiting *waiting = context;

    (void)link;
    return waiting->is_here(waiting->waited);
}

/* No time limit: the link reports a node that is lost. */
static tundish_status
wait_for(void *context, uint32_t from, bool (*is_here)(const void *waited), const void *waited)
{
    const struct peer_link *link = context;
    struct waiting waiting = { is_here, waited };

    return link_wait_for_one(link->link, from, is_ready, &waiting, -1, NULL);
}

static void
name_node(void *context, uint32_t node, char *ret_name, size_t name_bytes)
{
    const struct peer_link *link = context;

    link_name(link->link, node, ret_name, name_bytes);
}

struct peer_transport
peer_link_transport(struct link *link, struct peer_link *ret_link)
{
    *ret_link = (struct peer_link){ .link = link };
    return (struct peer_transport){
        .context = ret_link,
        .node_count = link_size(link),
        .listen = listen_to_link,
        .send = send_by_link,
        .queued = queued_in_link,
        .wait = wait_for,
        .name = name_node,
    };
}
