/* mailbox.c - messages between two nodes, handed to their mailboxes by the link's thread. */
#include <stdlib.h>

#include "core/clock.h"
#include "core/memory.h"
#include "link/link_private.h"

void
link_message_came(void *user, const struct link_message *message)
{
    struct link *link = user;
    struct queued_message *queued;

    if (message->key.topic >= LINK_MAILBOX_COUNT) {
        free(message->bytes);
        return;
    }
    queued = tnd_zalloc(1, sizeof *queued);
    queued->message = *message;
    *link->last_message = queued;
    link->last_message = &queued->next;
    link->message_ns = tnd_clock_ns();
}

/* Take the first message whose mailbox is open. Messages for others stay queued until theirs is
 * opened. */
static struct queued_message *
take_queued(struct link *link)
{
    for (struct queued_message **at = &link->messages; *at != NULL; at = &(*at)->next) {
        struct queued_message *queued = *at;

        if (link->mailboxes[queued->message.key.topic].handler == NULL)
            continue;
        *at = queued->next;
        if (*at == NULL)
            link->last_message = at;
        return queued;
    }
    return NULL;
}

/* Hand out messages. The lock is held, but released while a handler runs. */
void
link_hand_out(struct link *link)
{
    struct queued_message *queued;

    while ((queued = take_queued(link)) != NULL) {
        struct mailbox mailbox = link->mailboxes[queued->message.key.topic];

        link->handler_runs = true;
        pthread_mutex_unlock(&link->lock);
        mailbox.handler(mailbox.user, &queued->message);
        free(queued);
        pthread_mutex_lock(&link->lock);
        link->handler_runs = false;
        link->changes++;
        pthread_cond_broadcast(&link->changed);
    }
}

static void
send_with(struct link *link, uint32_t to, const struct link_key *key, struct byte_view bytes,
          void (*send)(struct node *node, uint32_t to, const struct link_key *key,
                       const void *bytes, size_t byte_count))
{
    pthread_mutex_lock(&link->lock);
    send(link->node, to, key, bytes.data, bytes.size);
    link->message_ns = tnd_clock_ns();
    link->has_posted = true;
    pthread_cond_signal(&link->posted);
    pthread_mutex_unlock(&link->lock);
}

void
link_send(struct link *link, uint32_t to, const struct link_key *key, const void *bytes,
          size_t byte_count)
{
    send_with(link, to, key, (struct byte_view){ bytes, byte_count }, node_send);
}

void
link_send_by_tree(struct link *link, uint32_t to, const struct link_key *key, const void *bytes,
                  size_t byte_count)
{
    send_with(link, to, key, (struct byte_view){ bytes, byte_count }, node_send_by_tree);
}

uint64_t
link_queued(struct link *link, uint32_t to)
{
    uint64_t bytes;

    pthread_mutex_lock(&link->lock);
    bytes = node_queued(link->node, to);
    pthread_mutex_unlock(&link->lock);
    return bytes;
}

void
link_open_mailbox(struct link *link, enum link_mailbox mailbox, link_message_handler handler,
                  void *user)
{
    pthread_mutex_lock(&link->lock);
    link->mailboxes[mailbox] = (struct mailbox){ handler, user };
    link->has_posted = true;
    pthread_cond_signal(&link->posted);
    /* After closing, the old handler must not run any more: its caller frees `user` next. */
    while (handler == NULL && link->handler_runs)
        pthread_cond_wait(&link->changed, &link->lock);
    pthread_mutex_unlock(&link->lock);
}

void
link_drop_messages(struct link *link)
{
    while (link->messages != NULL) {
        struct queued_message *queued = link->messages;

        link->messages = queued->next;
        free(queued->message.bytes);
        free(queued);
    }
}
