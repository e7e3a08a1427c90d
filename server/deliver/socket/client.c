/* client.c - send now, or keep for later. */
#include "deliver/socket/client.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/memory.h"

/* A trainer reads its socket at every tundish_next that finds a notice; what it may miss is bounded
 * by slots and epochs in the ring. */
enum { LETTERS_MAX = 65536 };

struct client_letter {
    struct client_letter *next;
    struct tnd_message_head head;
    unsigned descriptor_count;
    int descriptors[TND_DESCRIPTORS_MAX];
    uint8_t bytes[];
};

void
client_open(struct client *client, int socket, void (*backed_up)(struct client *client))
{
    *client = (struct client){ .socket = socket, .backed_up = backed_up };
    pthread_mutex_init(&client->lock, NULL);
}

static void
letter_free(struct client_letter *letter)
{
    for (unsigned i = 0; i < letter->descriptor_count; i++)
        close(letter->descriptors[i]);
    free(letter);
}

static void
drop_letters(struct client *client)
{
    while (client->first != NULL) {
        struct client_letter *next = client->first->next;

        letter_free(client->first);
        client->first = next;
    }
    client->last = NULL;
    client->letter_count = 0;
}

void
client_close(struct client *client)
{
    if (client->socket < 0)
        return;
    drop_letters(client);
    close(client->socket);
    client->socket = -1;
    pthread_mutex_destroy(&client->lock);
}

static void
keep(struct client *client, struct tnd_message_head head, const void *bytes, const int *descriptors,
     unsigned descriptor_count)
{
    struct client_letter *letter = tnd_alloc(sizeof *letter + head.bytes);

    letter->next = NULL;
    letter->head = head;
    letter->descriptor_count = 0;
    if (head.bytes > 0)
        memcpy(letter->bytes, bytes, head.bytes);
    for (unsigned i = 0; i < descriptor_count; i++) {
        int copy = fcntl(descriptors[i], F_DUPFD_CLOEXEC, 0);

        if (copy < 0)
            client->broken = true;
        else
            letter->descriptors[letter->descriptor_count++] = copy;
    }
    if (client->last == NULL)
        client->first = letter;
    else
        client->last->next = letter;
    client->last = letter;
    if (++client->letter_count > LETTERS_MAX)
        client->broken = true;
}

void
client_post(struct client *client, struct tnd_message_head head, const void *bytes,
            const int *descriptors, unsigned descriptor_count)
{
    tundish_status status = TUNDISH_E_TIMEOUT;
    bool backed_up;

    pthread_mutex_lock(&client->lock);
    if (!client->broken && client->first == NULL)
        status = tnd_channel_send(client->socket, head, bytes, descriptors, descriptor_count);
    if (!client->broken && status == TUNDISH_E_TIMEOUT)
        keep(client, head, bytes, descriptors, descriptor_count);
    else if (status != TUNDISH_OK)
        client->broken = true;
    backed_up = client->first != NULL || client->broken;
    pthread_mutex_unlock(&client->lock);
    if (backed_up && client->backed_up != NULL)
        client->backed_up(client);
}

void
client_post_parts(struct client *client, struct tnd_message_head head, const void *bytes,
                  uint64_t byte_count)
{
    const uint64_t part_max = sizeof(((struct tnd_message *)NULL)->bytes);

    head.total = byte_count;
    head.offset = 0;
    do {
        uint64_t left = byte_count - head.offset;

        head.bytes = (uint32_t)(left < part_max ? left : part_max);
        client_post(client, head, head.bytes > 0 ? (const uint8_t *)bytes + head.offset : NULL,
                    NULL, 0);
        head.offset += head.bytes;
    } while (head.offset < byte_count);
}

void
client_post_text(struct client *client, enum tnd_message_type type, tundish_status status,
                 const char *text)
{
    struct tnd_message_head head = { .type = (uint16_t)type, .status = status };
    size_t bytes = strlen(text);

    head.bytes = (uint32_t)(bytes < 2000 ? bytes : 2000);
    client_post(client, head, text, NULL, 0);
}

bool
client_flush(struct client *client)
{
    bool empty;

    pthread_mutex_lock(&client->lock);
    while (client->first != NULL && !client->broken) {
        struct client_letter *letter = client->first;
        tundish_status status = tnd_channel_send(client->socket, letter->head, letter->bytes,
                                                 letter->descriptors, letter->descriptor_count);

        if (status == TUNDISH_E_TIMEOUT)
            break;
        if (status != TUNDISH_OK)
            client->broken = true;
        client->first = letter->next;
        if (client->first == NULL)
            client->last = NULL;
        client->letter_count--;
        letter_free(letter);
    }
    empty = client->first == NULL;
    pthread_mutex_unlock(&client->lock);
    return empty;
}
