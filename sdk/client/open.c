/* open.c - open a reader from its options, and close it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "client/reader.h"
#include "core/clock.h"
#include "core/status.h"
#include "shm/place.h"

#define SERVER_TIMEOUT_DEFAULT_NS INT64_C(30000000000)

/* Copy the members that the caller's header has. Later members are zero. */
static tundish_status
read_options(const tundish_options *options, tundish_options *ret_options)
{
    tundish_options known = TUNDISH_OPTIONS_INIT;

    if (options != NULL && options->size < offsetof(tundish_options, stream))
        return tnd_fail(TUNDISH_E_ARGUMENT, "options.size is %zu: begin with TUNDISH_OPTIONS_INIT",
                        options->size);
    if (options != NULL)
        memcpy(&known, options, options->size < sizeof known ? options->size : sizeof known);
    *ret_options = known;
    return TUNDISH_OK;
}

static tundish_status
copy_name(const char *what, const char *wanted, const char *variable, char name[TND_NAME_BYTES])
{
    if (wanted == NULL || wanted[0] == '\0')
        wanted = variable == NULL ? NULL : getenv(variable);
    if (wanted == NULL)
        wanted = "";
    if (strlen(wanted) >= TND_NAME_BYTES)
        return tnd_fail(TUNDISH_E_ARGUMENT, "the %s's name is longer than %d bytes", what,
                        TND_NAME_BYTES - 1);
    memset(name, 0, TND_NAME_BYTES);
    memcpy(name, wanted, strlen(wanted));
    return TUNDISH_OK;
}

/* torchrun and its like number the trainers of a node, too. Those that name a session or a group
 * may have one each, and a replica 0 in each. */
static tundish_status
choose_replica(const tundish_reader *reader, int32_t wanted, uint32_t *ret_replica)
{
    bool is_apart = reader->session[0] != '\0' || reader->group[0] != '\0';
    const char *variable = "TUNDISH_REPLICA";
    const char *text = getenv(variable);
    char *end;
    long number;

    if ((text == NULL || text[0] == '\0') && !is_apart) {
        variable = "LOCAL_RANK";
        text = getenv(variable);
    }
    if (wanted >= 0 || text == NULL || text[0] == '\0') {
        *ret_replica = wanted > 0 ? (uint32_t)wanted : 0;
        return TUNDISH_OK;
    }
    errno = 0;
    number = strtol(text, &end, 10);
    if (errno != 0 || *end != '\0' || number < 0 || number > INT32_MAX)
        return tnd_fail(TUNDISH_E_ARGUMENT, "%s is \"%.40s\", not a number from 0", variable, text);
    *ret_replica = (uint32_t)number;
    return TUNDISH_OK;
}

/* Stand where the bytes say. */
static tundish_status
take_place(tundish_reader *reader, const uint8_t *bytes, uint64_t byte_count)
{
    struct tnd_place place;
    struct epoch_header *header;
    tundish_status status = tnd_place_read(bytes, byte_count, &place);

    if (status != TUNDISH_OK)
        return status;
    /* A place is a file of the user's, so its counts are not trusted. */
    if (place.bit_count > sizeof reader->queue.bits * 8)
        return tnd_fail(TUNDISH_E_PLACE,
                        "the place contains more visited batches than any server sends");
    header = tnd_reader_add_epoch(reader, place.header_epoch, place.header_bytes);
    if (header == NULL)
        return tnd_fail(TUNDISH_E_MEMORY, "no memory for a place");
    if (place.header_bytes > 0)
        memcpy(header->bytes, place.header, place.header_bytes);
    /* It came with the place: nothing is to follow. */
    header->have = header->total;
    reader->has_started = true;
    reader->epoch = place.epoch;
    reader->step = place.step;
    reader->in_epoch = place.step > 0;
    reader->has_queue = place.bit_count > 0;
    reader->queue.epoch = place.epoch;
    reader->queue.step = place.step;
    reader->queue.bit_count = place.bit_count;
    if (place.bit_count > 0)
        memcpy(reader->queue.bits, place.bits, (place.bit_count + 7) / 8);
    return TUNDISH_OK;
}

static tundish_status
take_token(tundish_reader *reader, const char *token)
{
    uint8_t *bytes = malloc(tnd_place_token_decoded_bytes(token) + 1);
    uint64_t byte_count = 0;
    tundish_status status;

    if (bytes == NULL)
        return tnd_fail(TUNDISH_E_MEMORY, "no memory for a place");
    status = tnd_place_token_read(token, bytes, &byte_count);
    if (status == TUNDISH_OK)
        status = take_place(reader, bytes, byte_count);
    free(bytes);
    return status;
}

static tundish_status
take_options(tundish_reader *reader, const tundish_options *options)
{
    tundish_status status = tnd_channel_path(options->server, reader->path);

    if (status == TUNDISH_OK)
        status = copy_name("stream", options->stream, "TUNDISH_STREAM", reader->stream);
    if (status == TUNDISH_OK)
        status = copy_name("session", options->session, "TUNDISH_SESSION", reader->session);
    if (status == TUNDISH_OK)
        status = copy_name("group", options->group, "TUNDISH_GROUP", reader->group);
    if (status == TUNDISH_OK)
        status = choose_replica(reader, options->replica, &reader->replica);
    if (status == TUNDISH_OK && options->place != NULL)
        status = take_place(reader, options->place, options->place_bytes);
    else if (status == TUNDISH_OK && options->place_token != NULL)
        status = take_token(reader, options->place_token);
    reader->checks = options->check != 0;
    reader->server_timeout_ns =
        options->server_timeout_ns > 0 ? options->server_timeout_ns : SERVER_TIMEOUT_DEFAULT_NS;
    reader->spin_ns = options->spin_ns;
    return status;
}

tundish_status
tundish_open(const tundish_options *options, tundish_reader **ret_reader)
{
    tundish_options known = TUNDISH_OPTIONS_INIT;
    tundish_reader *reader;
    tundish_status status = read_options(options, &known);

    if (status == TUNDISH_OK && ret_reader == NULL)
        status = tnd_fail(TUNDISH_E_ARGUMENT, "ret_reader is NULL");
    if (status != TUNDISH_OK)
        return status;
    reader = calloc(1, sizeof *reader);
    if (reader == NULL)
        return tnd_fail(TUNDISH_E_MEMORY, "no memory for a reader");
    pthread_mutex_init(&reader->lock, NULL);
    reader->descriptor = -1;
    status = tnd_reader_register(reader);
    if (status == TUNDISH_OK)
        status = take_options(reader, &known);
    if (status == TUNDISH_OK)
        status = tnd_reader_attach(reader, false,
                                   tnd_clock_deadline_ns(known.open_timeout_ns > 0
                                                             ? known.open_timeout_ns
                                                             : reader->server_timeout_ns));
    if (status != TUNDISH_OK) {
        tundish_close(reader);
        return status;
    }
    *ret_reader = reader;
    return TUNDISH_OK;
}

void
tnd_reader_free(tundish_reader *reader)
{
    tnd_spec_close(&reader->spec);
    free(reader);
}

void
tundish_close(tundish_reader *reader)
{
    const struct tnd_message_head bye = { .type = TND_BYE };
    bool is_ours, is_last;

    if (reader == NULL)
        return;
    is_ours = tnd_reader_is_ours(reader);
    if (is_ours) {
        tnd_reader_unregister(reader);
        if (reader->attachments != NULL && !reader->attachments->is_gone)
            tnd_channel_send(reader->attachments->socket, bye, NULL, NULL, 0);
        if (reader->descriptor >= 0)
            close(reader->descriptor);
    } else {
        /* A child did not inherit the returns page (attachment.c): unmapping its address could hit
         * another mapping. The descriptors are closed already. */
        for (struct attachment *at = reader->attachments; at != NULL; at = at->next)
            at->returns = NULL;
    }
    while (reader->attachments != NULL) {
        struct attachment *next = reader->attachments->next;

        tnd_attachment_close(reader->attachments);
        reader->attachments = next;
    }
    while (reader->epochs != NULL) {
        struct epoch_header *next = reader->epochs->next;

        free(reader->epochs);
        reader->epochs = next;
    }
    /* Kept batches need its columns and its lock: the last of them frees it. In a child another
     * thread of the parent may have held the lock, and nobody else is there. */
    if (is_ours)
        pthread_mutex_lock(&reader->lock);
    reader->is_closed = true;
    is_last = reader->kept_count == 0;
    if (is_ours)
        pthread_mutex_unlock(&reader->lock);
    if (is_last)
        tnd_reader_free(reader);
}

tundish_status
tundish_element_spec(tundish_reader *reader, const tundish_spec **ret_spec)
{
    tundish_status status = tnd_reader_check(reader);

    if (status == TUNDISH_OK)
        *ret_spec = &reader->spec.spec;
    return status;
}

tundish_status
tundish_get_info(tundish_reader *reader, tundish_info *ret_info)
{
    tundish_status status = tnd_reader_check(reader);
    tundish_info info = { 0 };

    if (status != TUNDISH_OK)
        return status;
    if (ret_info->size < offsetof(tundish_info, replica_count))
        return tnd_fail(TUNDISH_E_ARGUMENT, "info.size is %zu: set it to sizeof(tundish_info)",
                        ret_info->size);
    info.size = ret_info->size < sizeof info ? ret_info->size : sizeof info;
    info.replica = reader->replica;
    info.replica_count = reader->attachments->welcome.replica_count;
    info.first_replica = reader->attachments->welcome.first_replica;
    info.total_replica_count = reader->attachments->welcome.total_replica_count;
    info.slot_count = reader->attachments->view.slot_count;
    info.stream = reader->attachments->welcome.stream;
    tnd_reader_first(reader, &info.first_epoch, &info.first_step);
    info.epoch_steps = reader->attachments->welcome.epoch_steps;
    info.ahead_count = tnd_reader_ahead_count(reader);
    pthread_mutex_lock(&reader->lock);
    for (const struct attachment *at = reader->attachments; at != NULL; at = at->next)
        info.held_count += at->held_count;
    pthread_mutex_unlock(&reader->lock);
    memcpy(ret_info, &info, info.size);
    return TUNDISH_OK;
}

tundish_status
tundish_descriptor(tundish_reader *reader, int *ret_descriptor)
{
    tundish_status status = tnd_reader_check(reader);
    struct epoll_event event = { .events = EPOLLIN };
    struct attachment *attachment;
    int descriptor;

    if (status != TUNDISH_OK)
        return status;
    attachment = reader->attachments;
    if (reader->descriptor < 0) {
        descriptor = epoll_create1(EPOLL_CLOEXEC);
        if (descriptor < 0)
            return tnd_fail_errno(errno, "cannot make a descriptor to poll");
        if (!attachment->is_gone &&
            (epoll_ctl(descriptor, EPOLL_CTL_ADD, attachment->socket, &event) != 0 ||
             epoll_ctl(descriptor, EPOLL_CTL_ADD, attachment->event, &event) != 0)) {
            int error = errno;

            close(descriptor);
            return tnd_fail_errno(error, "cannot make a descriptor to poll");
        }
        reader->descriptor = descriptor;
        atomic_store(&attachment->returns->polling, 1);
        /* Batches published before now raised no event. */
        if (!attachment->is_gone)
            tnd_ring_event_raise(attachment->event);
    }
    *ret_descriptor = reader->descriptor;
    return TUNDISH_OK;
}
