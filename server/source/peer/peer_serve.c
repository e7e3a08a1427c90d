/* peer_serve.c - what other nodes ask for, read and sent. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#include "content/records/whole_file.h"
#include "core/clock.h"
#include "core/memory.h"
#include "order/failure.h"
#include "source/files/files_private.h"
#include "source/peer/peer_private.h"
#include "source/scan/scan.h"

enum {
    PACK_LEVEL = 1,
    PACK_BYTES_MIN = 4 << 10,
    PLAIN_EVERY = 64, /* answers, to measure the wire again */
    TRY_EVERY = 16,   /* answers, to measure packing again */
    ANSWER_BYTES_MAX = 1 << 30,
    QUEUED_BYTES_MAX = 1 << 20, /* to one node; nothing more is read until these have been sent */
    KEPT_BYTES_MAX = 4 << 20    /* of a buffer, for the next answer */
};

static const uint64_t MIB = 1 << 20;
static const int64_t PAUSE_NS = 2000000;

static tundish_status
makes_no_sense(void)
{
    return tnd_fail(TUNDISH_E_CORRUPT, "malformed request");
}

/* Only files of the catalogue may be asked for, so a peer cannot read any other file of this
 * machine. */
static tundish_status
check_name(const struct peers *peers, const char *name)
{
    const struct catalogue_file *known = catalogue_find(peers->options.catalogue, name);

    if (known == NULL || !known->is_here)
        return tnd_fail(TUNDISH_E_DATA, "%s: this node does not have the file", name);
    return TUNDISH_OK;
}

/* The description of the file, and with it the file; frees the name. */
static tundish_status
open_wanted(struct peers *peers, struct byte_view *from, struct peer_wanted *ret_wanted,
            struct source_file **ret_file)
{
    tundish_status status;

    if (!peer_take_file(peers, from, ret_wanted))
        return makes_no_sense();
    status = check_name(peers, ret_wanted->name);
    if (status == TUNDISH_OK)
        *ret_file = files_enter(peers->files, ret_wanted->name, strlen(ret_wanted->name),
                                &ret_wanted->format);
    free(ret_wanted->name);
    ret_wanted->name = NULL;
    return status;
}

/* A packed file can be read only after it has been scanned. The node that asks has seen it scanned,
 * but this server may have been restarted since. */
static tundish_status
make_readable(struct peers *peers, struct source_file *file)
{
    const struct record_list *list;

    if (file->packing == PACKING_NONE || atomic_load(&file->unpacked) != 0)
        return TUNDISH_OK;
    return scan_complete(file, &peers->stop_scans, &list);
}

static tundish_status
read_rows(struct peers *peers, struct byte_view from, struct peer_buffer *to)
{
    tundish_status status = TUNDISH_OK;

    while (from.size > 0 && status == TUNDISH_OK) {
        struct source_file *file = NULL;
        struct peer_wanted wanted;

        status = open_wanted(peers, &from, &wanted, &file);
        if (status == TUNDISH_OK)
            status = make_readable(peers, file);
        for (uint32_t i = 0; status == TUNDISH_OK && i < wanted.count; i++) {
            uint64_t offset;
            uint32_t bytes;

            if (!peer_take(&from, &offset, sizeof offset) ||
                !peer_take(&from, &bytes, sizeof bytes) || bytes > ANSWER_BYTES_MAX - to->used)
                return makes_no_sense();
            /* Doubled, so that many small rows do not copy the answer again and again. */
            if (to->room - to->used < bytes) {
                to->room = 2 * to->room + bytes;
                to->bytes = tnd_realloc(to->bytes, to->room, 1);
            }
            status = file_read(file, to->bytes + to->used, bytes, offset);
            to->used += bytes;
        }
    }
    return status;
}

/* Answer with some of the records from `first` on: usually those that have been scanned already. */
static tundish_status
read_records(struct peers *peers, struct byte_view from, struct peer_buffer *to,
             bool *ret_is_damaged)
{
    uint64_t *words;
    struct source_file *file = NULL;
    struct scan_cursor cursor;
    struct peer_wanted wanted;
    uint64_t first, passed = 0, total = 0;
    enum order_result result;
    uint8_t is_over;
    size_t count = 0;
    tundish_status status = open_wanted(peers, &from, &wanted, &file);

    /* Who wants rows of a file that says them itself reads it. */
    if (status == TUNDISH_OK &&
        (file->format.scanner->contents != NULL || !peer_take(&from, &first, sizeof first)))
        status = makes_no_sense();
    if (status != TUNDISH_OK)
        return status;
    words = tnd_alloc(PEER_RECORDS * 2 * sizeof *words);
    scan_cursor_open(&cursor, file, &peers->stop_scans);
    /* A cursor per request keeps no state for a node that may never ask again. Passing over records
     * costs little, since groups are skipped. */
    result = scan_cursor_pass_over(&cursor, first, &passed);
    if (result == ORDER_OK)
        result = scan_cursor_next(&cursor, words, PEER_RECORDS, &count);
    scan_cursor_close(&cursor);
    is_over = result == ORDER_END;
    total = count;
    peer_buffer_add(to, &is_over, 1);
    peer_buffer_add(to, &total, sizeof total);
    for (size_t i = 0; i < count; i++) {
        uint32_t length = reference_length(&words[2 * i]);

        peer_buffer_add(to, &words[2 * i], sizeof *words);
        peer_buffer_add(to, &length, sizeof length);
    }
    free(words);
    *ret_is_damaged = result == ORDER_FAILED && scan_is_damaged(file->scan);
    return order_status(result);
}

/* The size of a file that is read in ranges. */
static tundish_status
read_size(struct peers *peers, struct byte_view from, struct peer_buffer *to)
{
    struct source_file *file = NULL;
    struct peer_wanted wanted;
    int descriptor = -1;
    tundish_status status = open_wanted(peers, &from, &wanted, &file);

    if (status == TUNDISH_OK)
        status = file_open(file, &descriptor);
    if (status != TUNDISH_OK)
        return status;
    if (descriptor >= 0)
        close(descriptor);
    peer_buffer_add(to, &file->identity.size, sizeof file->identity.size);
    return TUNDISH_OK;
}

/* A whole file, by its name. */
static tundish_status
read_file(struct peer_responder *responder, struct byte_view name, struct peer_buffer *to)
{
    struct peers *peers = responder->peers;
    char *text = tnd_strndup((const char *)name.data, name.size);
    struct byte_view bytes;
    tundish_status status = check_name(peers, text);

    free(text);
    if (status == TUNDISH_OK)
        status = whole_file_read(files_root(peers->files), name, responder->scratch, &bytes);
    if (status == TUNDISH_OK)
        peer_buffer_add(to, bytes.data, bytes.size);
    scratch_reset(responder->scratch);
    return status;
}

static tundish_status
read_asked(struct peer_responder *responder, const struct peer_message *message,
           struct peer_buffer *to, bool *ret_is_damaged)
{
    struct byte_view from = { message->bytes, message->byte_count };

    if (message->kind == PEER_ASK_ROWS)
        return read_rows(responder->peers, from, to);
    if (message->kind == PEER_ASK_RECORDS)
        return read_records(responder->peers, from, to, ret_is_damaged);
    if (message->kind == PEER_ASK_SIZE)
        return read_size(responder->peers, from, to);
    return read_file(responder, from, to);
}

/* The average is at least 1, because 0 means that it is not known. */
static void
learn_rate(uint64_t *value, uint64_t now)
{
    *value = *value == 0 ? now + 1 : (*value * 7 + now + 1) / 8;
}

/* Does packing cost less time, on both nodes, than it saves on the wire? All values are for a
 * MiB. */
static bool
is_worth_packing(const struct peer_responder *responder, const struct peer_rates *asker)
{
    uint64_t ratio = responder->ratio < 1024 ? responder->ratio : 1024;

    return responder->pack_ns + asker->unpack_ns < asker->wire_ns / 1024 * (1024 - ratio);
}

/* Pack the rows. Returns NULL if they are better sent as they are. Every 64th answer is sent
 * unpacked to measure the wire, and every 16th is packed to measure zstd. */
static uint8_t *
pack_rows(struct peer_responder *responder, const struct peer_rates *asker,
          const struct peer_buffer *raw, size_t head_bytes, size_t *ret_bytes)
{
    size_t raw_bytes = raw->used - head_bytes, bound = ZSTD_compressBound(raw_bytes);
    int64_t began_ns = tnd_clock_ns();
    uint64_t number = responder->answers++;
    uint8_t *packed;
    size_t bytes;

    if (raw_bytes < PACK_BYTES_MIN || asker->wire_ns == 0 || number % PLAIN_EVERY == 0 ||
        (number % TRY_EVERY != 1 && !is_worth_packing(responder, asker)))
        return NULL;
    packed = tnd_alloc(head_bytes + bound);
    bytes =
        ZSTD_compress(packed + head_bytes, bound, raw->bytes + head_bytes, raw_bytes, PACK_LEVEL);
    if (!ZSTD_isError(bytes)) {
        learn_rate(&responder->pack_ns, (uint64_t)(tnd_clock_ns() - began_ns) * MIB / raw_bytes);
        learn_rate(&responder->ratio, (uint64_t)bytes * 1024 / raw_bytes);
    }
    if (ZSTD_isError(bytes) || bytes >= raw_bytes || !is_worth_packing(responder, asker)) {
        free(packed);
        return NULL;
    }
    *ret_bytes = head_bytes + bytes;
    return packed;
}

/* Wait while much is queued for a node that reads slowly, so that it does not fill this one's
 * memory. */
static void
wait_for_room(struct peers *peers, uint32_t to)
{
    const struct peer_transport *transport = &peers->options.transport;

    while (transport->queued(transport->context, to) > QUEUED_BYTES_MAX &&
           atomic_load(&peers->stop_scans) == 0)
        nanosleep(&(struct timespec){ .tv_nsec = PAUSE_NS }, NULL);
}

static void
answer_request(struct peer_responder *responder, const struct peer_message *message)
{
    struct peers *peers = responder->peers;
    const struct peer_transport *transport = &peers->options.transport;
    struct peer_rates asker;
    struct peer_head head = { 0 };
    struct peer_buffer *raw = &responder->raw;
    uint8_t *packed = NULL;
    size_t packed_bytes = 0;
    bool is_damaged = false;
    tundish_status status;

    wait_for_room(peers, message->from);
    raw->used = 0;
    peer_buffer_add(raw, &head, sizeof head);
    status = read_asked(responder, message, raw, &is_damaged);
    head.status = status;
    head.is_packed = is_damaged;
    if (status != TUNDISH_OK) {
        /* The rows that were read before the error are dropped: the message follows the head
         * instead. */
        raw->used = sizeof head;
        peer_buffer_add(raw, tnd_error_text(), strlen(tnd_error_text()));
    } else {
        pthread_mutex_lock(&peers->lock);
        asker = peers->asked_at[message->from];
        pthread_mutex_unlock(&peers->lock);
        head.raw_bytes = raw->used - sizeof head;
        if (message->kind == PEER_ASK_ROWS || message->kind == PEER_ASK_FILE)
            atomic_fetch_add_explicit(&peers->passed_on, head.raw_bytes, memory_order_relaxed);
        packed = pack_rows(responder, &asker, raw, sizeof head, &packed_bytes);
        head.is_packed = packed != NULL;
    }
    /* The head is written last, when the packed form is known. Both buffers begin with room for
     * it. */
    memcpy(packed != NULL ? packed : raw->bytes, &head, sizeof head);
    transport->send(transport->context, message->from, PEER_ANSWER, message->number,
                    packed != NULL ? packed : raw->bytes,
                    packed != NULL ? packed_bytes : raw->used);
    free(packed);
    if (raw->room > KEPT_BYTES_MAX) {
        free(raw->bytes);
        *raw = (struct peer_buffer){ 0 };
    }
}

static void *
run_responder(void *argument)
{
    struct peer_responder *responder = argument;
    struct peers *peers = responder->peers;

    pthread_mutex_lock(&peers->lock);
    /* Requests that are left when the server closes are freed unanswered. */
    while (!peers->is_closing) {
        struct peer_task *task = responder->first;

        if (task == NULL) {
            pthread_cond_wait(&responder->has_task, &peers->lock);
            continue;
        }
        responder->first = task->next;
        pthread_mutex_unlock(&peers->lock);
        answer_request(responder, &task->message);
        free(task->message.bytes);
        free(task);
        pthread_mutex_lock(&peers->lock);
    }
    pthread_mutex_unlock(&peers->lock);
    return NULL;
}

void
peer_hand_over(struct peers *peers, enum peer_queue queue, const struct peer_message *message)
{
    struct peer_responder *responder = &peers->responders[queue];
    struct peer_task *task = tnd_zalloc(1, sizeof *task);

    task->message = *message;
    pthread_mutex_lock(&peers->lock);
    if (responder->first == NULL)
        responder->first = task;
    else
        responder->last->next = task;
    responder->last = task;
    pthread_cond_signal(&responder->has_task);
    pthread_mutex_unlock(&peers->lock);
}

void
peer_take_rates(struct peers *peers, const struct peer_message *message)
{
    pthread_mutex_lock(&peers->lock);
    /* Another length is from another version, and is ignored. */
    if (message->byte_count == sizeof *peers->asked_at)
        memcpy(&peers->asked_at[message->from], message->bytes, sizeof *peers->asked_at);
    pthread_mutex_unlock(&peers->lock);
    free(message->bytes);
}

tundish_status
peer_start_responders(struct peers *peers)
{
    for (int i = 0; i < PEER_QUEUES; i++) {
        struct peer_responder *responder = &peers->responders[i];
        int error;

        responder->peers = peers;
        responder->scratch = scratch_open();
        error = pthread_create(&responder->thread, NULL, run_responder, responder);
        if (error != 0)
            return tnd_fail_errno(error, "cannot start a thread");
        responder->started = true;
    }
    return TUNDISH_OK;
}

void
peer_stop_responders(struct peers *peers)
{
    /* A scan may take minutes, so it is interrupted before the threads are joined. */
    atomic_store(&peers->stop_scans, 1);
    pthread_mutex_lock(&peers->lock);
    peers->is_closing = true;
    for (int i = 0; i < PEER_QUEUES; i++)
        pthread_cond_signal(&peers->responders[i].has_task);
    pthread_mutex_unlock(&peers->lock);
    for (int i = 0; i < PEER_QUEUES; i++) {
        struct peer_responder *responder = &peers->responders[i];

        if (responder->started)
            pthread_join(responder->thread, NULL);
        scratch_close(responder->scratch);
        free(responder->raw.bytes);
        for (struct peer_task *task = responder->first, *next; task != NULL; task = next) {
            next = task->next;
            free(task->message.bytes);
            free(task);
        }
    }
}
