/* messages.c - take the server's messages: segments, epochs, losses, queue states. */
#include <stdlib.h>
#include <string.h>

#include "client/reader.h"
#include "core/clock.h"
#include "core/status.h"
#include "shm/place.h"

/* Keep the headers of at least EPOCHS_KEPT_MIN earlier epochs. A lane may hold batches of as many
 * epochs as it has slots, and a new server may have to begin at the oldest of them. */
enum { EPOCHS_KEPT_MIN = 2 };

static tundish_status
take_segment(struct attachment *attachment, const struct tnd_message *message, int descriptor)
{
    if (descriptor < 0 || message->head.id == TND_SEGMENT_LANE || message->head.id > UINT32_MAX)
        return tnd_fail(TUNDISH_E_CORRUPT, "the server announced an invalid segment");
    return tnd_mapping_open(attachment, (uint32_t)message->head.id, descriptor,
                            message->head.total);
}

static void
take_retirement(tundish_reader *reader, const struct tnd_message *message)
{
    uint64_t id = message->head.id;
    struct mapping *mapping;

    pthread_mutex_lock(&reader->lock);
    mapping = id == TND_SEGMENT_LANE || id > UINT32_MAX
                  ? NULL
                  : tnd_mapping_find(reader->attachments, (uint32_t)id);
    if (mapping != NULL)
        tnd_mapping_retire(reader->attachments, mapping);
    pthread_mutex_unlock(&reader->lock);
}

static const struct epoch_header *
find_epoch(const tundish_reader *reader, uint64_t epoch)
{
    for (const struct epoch_header *header = reader->epochs; header != NULL; header = header->next)
        if (header->epoch == epoch && header->have == header->total)
            return header;
    return NULL;
}

const struct epoch_header *
tnd_reader_find_header(const tundish_reader *reader, uint64_t epoch)
{
    const struct epoch_header *found = NULL;

    for (const struct epoch_header *header = reader->epochs; header != NULL; header = header->next)
        if (header->have == header->total && header->epoch <= epoch &&
            (found == NULL || header->epoch > found->epoch))
            found = header;
    return found;
}

static uint64_t
first_epoch_kept(const tundish_reader *reader)
{
    uint64_t kept =
        reader->attachments == NULL ? EPOCHS_KEPT_MIN : reader->attachments->view.slot_count;

    return reader->epoch > kept ? reader->epoch - kept : 0;
}

static void
forget_epochs(tundish_reader *reader, uint64_t same_as, uint64_t before)
{
    struct epoch_header **link = &reader->epochs;

    while (*link != NULL) {
        struct epoch_header *header = *link;

        if (header->epoch == same_as || header->epoch < before) {
            *link = header->next;
            free(header);
        } else {
            link = &header->next;
        }
    }
}

struct epoch_header *
tnd_reader_add_epoch(tundish_reader *reader, uint64_t epoch, uint64_t total)
{
    struct epoch_header *header = malloc(sizeof *header + total);

    if (header == NULL)
        return NULL;
    /* The header from a restarted server replaces the old server's. */
    forget_epochs(reader, epoch, first_epoch_kept(reader));
    header->epoch = epoch;
    header->total = total;
    header->have = 0;
    header->next = reader->epochs;
    reader->epochs = header;
    return header;
}

static tundish_status
take_epoch(tundish_reader *reader, const struct tnd_message *message)
{
    const struct tnd_message_head *head = &message->head;
    struct epoch_header *header = reader->epochs;

    if (head->total == 0 || head->total > TND_PLACE_BYTES_MAX)
        return tnd_fail(TUNDISH_E_CORRUPT, "the server sent a place of %llu bytes",
                        (unsigned long long)head->total);
    if (head->offset == 0) {
        header = tnd_reader_add_epoch(reader, head->id, head->total);
        if (header == NULL)
            return tnd_fail(TUNDISH_E_MEMORY, "no memory for a place");
    }
    if (header == NULL || header->epoch != head->id || header->total != head->total ||
        header->have != head->offset || head->bytes > header->total - header->have)
        return tnd_fail(TUNDISH_E_CORRUPT, "the server sent an incomplete place");
    /* Every bound was checked above: a hostile server's parts must come in order and fit. */
    memcpy(header->bytes + header->have, message->bytes, head->bytes);
    header->have += head->bytes;
    return TUNDISH_OK;
}

static void
take_begin(struct attachment *attachment, const struct tnd_message_head *head)
{
    attachment->has_begin = true;
    attachment->begin_epoch = head->id;
    attachment->begin_step = head->offset;
}

static void
copy_text(char copy[READER_TEXT_BYTES], const void *text, size_t byte_count)
{
    if (byte_count > READER_TEXT_BYTES - 1)
        byte_count = READER_TEXT_BYTES - 1;
    memcpy(copy, text, byte_count);
    copy[byte_count] = '\0';
}

void
tnd_reader_set_final(tundish_reader *reader, tundish_status status, const char *text,
                     size_t byte_count)
{
    copy_text(reader->final_text, text, byte_count);
    pthread_mutex_lock(&reader->lock);
    reader->final = status;
    pthread_mutex_unlock(&reader->lock);
}

tundish_status
tnd_reader_tell_final(const tundish_reader *reader)
{
    return tnd_fail(reader->final, "%s", reader->final_text);
}

static void
take_loss(tundish_reader *reader, const struct tnd_message *message)
{
    const char *text = (const char *)message->bytes;

    if (message->head.type == TND_DETACHED) {
        tnd_reader_set_final(reader, TUNDISH_E_DETACHED, text, message->head.bytes);
    } else if (message->head.status != TUNDISH_OK) {
        tnd_reader_set_final(
            reader, message->head.status == TUNDISH_E_PLACE ? TUNDISH_E_PLACE : TUNDISH_E_PEER_LOST,
            text, message->head.bytes);
    } else {
        reader->is_lost_pending = true;
        copy_text(reader->lost_text, text, message->head.bytes);
    }
}

static tundish_status
take_queue(tundish_reader *reader, const struct tnd_message *message)
{
    struct tnd_queue queue;

    if (message->head.bytes < sizeof queue)
        return tnd_fail(TUNDISH_E_CORRUPT, "the server sent an invalid queue state");
    memcpy(&queue, message->bytes, sizeof queue);
    if (queue.bit_count > sizeof queue.bits * 8)
        return tnd_fail(TUNDISH_E_CORRUPT, "the server sent an invalid queue state");
    reader->has_queue = true;
    reader->queue_status = (tundish_status)message->head.status;
    reader->queue = queue;
    return TUNDISH_OK;
}

static tundish_status
take_standing(tundish_reader *reader, const struct tnd_message *message)
{
    if (message->head.bytes < sizeof reader->standing)
        return tnd_fail(TUNDISH_E_CORRUPT, "the server sent an invalid answer about a group");
    memcpy(&reader->standing, message->bytes, sizeof reader->standing);
    reader->has_standing = true;
    reader->standing_status = (tundish_status)message->head.status;
    reader->standing_number = message->head.id;
    return TUNDISH_OK;
}

static tundish_status
take_message(tundish_reader *reader, const struct tnd_message *message,
             const struct tnd_descriptors *descriptors)
{
    switch (message->head.type) {
    case TND_SEGMENT:
        return take_segment(reader->attachments, message, descriptors->at[0]);
    case TND_RETIRE:
        take_retirement(reader, message);
        return TUNDISH_OK;
    case TND_EPOCH:
        return take_epoch(reader, message);
    case TND_BEGIN:
        take_begin(reader->attachments, &message->head);
        return TUNDISH_OK;
    case TND_FROM:
        return tnd_reader_take_from(reader, message->head.id, message->head.offset);
    case TND_LOST:
    case TND_DETACHED:
        take_loss(reader, message);
        return TUNDISH_OK;
    case TND_QUEUE:
        return take_queue(reader, message);
    case TND_STANDING:
        return take_standing(reader, message);
    default:
        return TUNDISH_OK; /* a newer server may say more */
    }
}

static void
hang_up(tundish_reader *reader)
{
    pthread_mutex_lock(&reader->lock);
    tnd_attachment_hang_up(reader->attachments);
    pthread_mutex_unlock(&reader->lock);
}

tundish_status
tnd_reader_listen(tundish_reader *reader)
{
    struct attachment *attachment = reader->attachments;

    while (!attachment->is_gone) {
        struct tnd_descriptors descriptors = { .at = { -1, -1, -1, -1 } };
        struct tnd_message message;
        tundish_status status = tnd_channel_receive(attachment->socket, &message, &descriptors);

        if (status == TUNDISH_E_TIMEOUT)
            return TUNDISH_OK;
        if (status == TUNDISH_E_SERVER_GONE) {
            hang_up(reader);
            return TUNDISH_OK;
        }
        if (status == TUNDISH_OK)
            status = take_message(reader, &message, &descriptors);
        tnd_channel_close_descriptors(&descriptors);
        if (status != TUNDISH_OK)
            return status;
    }
    return TUNDISH_OK;
}

tundish_status
tnd_reader_listen_for(tundish_reader *reader, int64_t timeout_ns)
{
    tundish_status status;

    if (reader->attachments->is_gone)
        return tnd_fail(TUNDISH_E_SERVER_GONE, "the server closed the connection");
    status = tnd_channel_wait(reader->attachments->socket, timeout_ns);
    return status == TUNDISH_OK ? tnd_reader_listen(reader) : status;
}

tundish_status
tnd_reader_await_epoch(tundish_reader *reader, uint64_t epoch)
{
    int64_t deadline_ns = tnd_clock_deadline_ns(reader->server_timeout_ns);
    tundish_status status = TUNDISH_OK;

    while (find_epoch(reader, epoch) == NULL && status == TUNDISH_OK)
        status = tnd_reader_listen_for(reader, tnd_clock_left_ns(deadline_ns));
    return status;
}
