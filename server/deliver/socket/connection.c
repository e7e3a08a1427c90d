/* connection.c - send a message now, or keep it for later. */
#include "deliver/socket/connection.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/memory.h"

/* A trainer reads its socket at every tundish_next that finds a notice. The messages that it may
 * miss in between are bounded by the slots and epochs in the ring, far below this number. */
enum { OUTGOING_MAX = 65536 };

struct outgoing {
    struct outgoing *next;
    struct tnd_message_head head;
    unsigned descriptor_count;
    int descriptors[TND_DESCRIPTORS_MAX];
    uint8_t bytes[];
};

void
connection_open(struct connection *connection, int socket,
                void (*backed_up)(struct connection *connection))
{
    *connection = (struct connection){ .socket = socket, .backed_up = backed_up };
    pthread_mutex_init(&connection->lock.mutex, NULL);
}

static void
outgoing_free(struct outgoing *message)
{
    for (unsigned i = 0; i < message->descriptor_count; i++)
        close(message->descriptors[i]);
    free(message);
}

static void
drop_outgoing(struct connection *connection)
{
    while (connection->first != NULL) {
        struct outgoing *next = connection->first->next;

        outgoing_free(connection->first);
        connection->first = next;
    }
    connection->last = NULL;
    connection->outgoing_count = 0;
}

void
connection_close(struct connection *connection)
{
    if (connection->socket < 0)
        return;
    drop_outgoing(connection);
    close(connection->socket);
    connection->socket = -1;
    pthread_mutex_destroy(&connection->lock.mutex);
}

static void
queue_message(struct connection *connection, struct tnd_message_head head, const void *bytes,
              const int *descriptors, unsigned descriptor_count)
{
    struct outgoing *message = tnd_alloc(sizeof *message + head.bytes);

    message->next = NULL;
    message->head = head;
    message->descriptor_count = 0;
    if (head.bytes > 0)
        memcpy(message->bytes, bytes, head.bytes);
    for (unsigned i = 0; i < descriptor_count; i++) {
        /* The caller may close its descriptor before the message is sent. */
        int copy = fcntl(descriptors[i], F_DUPFD_CLOEXEC, 0);

        if (copy < 0)
            connection->broken = true;
        else
            message->descriptors[message->descriptor_count++] = copy;
    }
    if (connection->last == NULL)
        connection->first = message;
    else
        connection->last->next = message;
    connection->last = message;
    if (++connection->outgoing_count > OUTGOING_MAX)
        connection->broken = true;
}

void
connection_post(struct connection *connection, struct tnd_message_head head, const void *bytes,
                const int *descriptors, unsigned descriptor_count)
{
    tundish_status status = TUNDISH_E_TIMEOUT;
    bool backed_up;

    tnd_lock_take(&connection->lock);
    /* Messages that wait go first, to keep the order. */
    if (!connection->broken && connection->first == NULL)
        status = tnd_channel_send(connection->socket, head, bytes, descriptors, descriptor_count);
    if (!connection->broken && status == TUNDISH_E_TIMEOUT)
        queue_message(connection, head, bytes, descriptors, descriptor_count);
    else if (status != TUNDISH_OK)
        connection->broken = true;
    backed_up = connection->first != NULL || connection->broken;
    tnd_lock_release(&connection->lock);
    /* Without the lock: the hub's thread may flush as soon as epoll is told. */
    if (backed_up && connection->backed_up != NULL)
        connection->backed_up(connection);
}

void
connection_post_parts(struct connection *connection, struct tnd_message_head head,
                      const void *bytes, uint64_t byte_count)
{
    const uint64_t part_max = sizeof(((struct tnd_message *)NULL)->bytes);

    head.total = byte_count;
    head.offset = 0;
    do {
        uint64_t left = byte_count - head.offset;

        head.bytes = (uint32_t)(left < part_max ? left : part_max);
        connection_post(connection, head,
                        head.bytes > 0 ? (const uint8_t *)bytes + head.offset : NULL, NULL, 0);
        head.offset += head.bytes;
    } while (head.offset < byte_count);
}

void
connection_post_text(struct connection *connection, enum tnd_message_type type,
                     tundish_status status, const char *text)
{
    struct tnd_message_head head = { .type = (uint16_t)type, .status = status };
    size_t bytes = strlen(text);

    head.bytes = (uint32_t)(bytes < 2000 ? bytes : 2000);
    connection_post(connection, head, text, NULL, 0);
}

bool
connection_flush(struct connection *connection)
{
    bool empty;

    tnd_lock_take(&connection->lock);
    while (connection->first != NULL && !connection->broken) {
        struct outgoing *message = connection->first;
        tundish_status status = tnd_channel_send(connection->socket, message->head, message->bytes,
                                                 message->descriptors, message->descriptor_count);

        if (status == TUNDISH_E_TIMEOUT)
            break;
        if (status != TUNDISH_OK)
            connection->broken = true;
        connection->first = message->next;
        if (connection->first == NULL)
            connection->last = NULL;
        connection->outgoing_count--;
        outgoing_free(message);
    }
    empty = connection->first == NULL;
    tnd_lock_release(&connection->lock);
    return empty;
}
