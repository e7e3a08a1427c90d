/* peer_ask.c - requests to owners, and their answers. */
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "core/clock.h"
#include "core/memory.h"
#include "core/must.h"
#include "source/peer/peer_private.h"
#include "source/scan/scan_work.h"

enum {
    REQUEST_BYTES = 1 << 20, /* one request asks for at most this, unless a single row is longer */
    RATE_BYTES = 48 << 10    /* an answer of several messages, whose rate can be measured */
};

static const uint64_t MIB = 1 << 20;

struct peer_rows {
    struct peers *peers;
    pthread_mutex_t lock; /* sorted by file and offset, for binary search */
    size_t count;
    struct peer_row *rows; /* by file and offset */
    uint32_t *request_of;  /* by row */
    size_t *at;            /* where the row lies in the answer */
    uint32_t request_count;
    struct peer_request **requests;
    uint64_t bytes;
};

struct peer_request *
peer_request_send(struct peers *peers, uint32_t owner, enum peer_kind kind, struct byte_view bytes)
{
    struct peer_request *request = tnd_zalloc(1, sizeof *request);
    const struct peer_transport *transport = &peers->options.transport;

    request->peers = peers;
    request->owner = owner;
    /* The request is in the list before it is sent: the answer may come before send returns. */
    pthread_mutex_lock(&peers->lock);
    request->number = ++peers->last_number;
    request->next = peers->requests;
    peers->requests = request;
    pthread_mutex_unlock(&peers->lock);
    transport->send(transport->context, owner, kind, request->number, bytes.data, bytes.size);
    return request;
}

/* Take the request out of the list of those that wait. False: it has been answered. With the lock
 * held. */
static bool
withdraw_request(struct peers *peers, struct peer_request *request)
{
    for (struct peer_request **at = &peers->requests; *at != NULL; at = &(*at)->next)
        if (*at == request) {
            *at = request->next;
            return true;
        }
    return false;
}

/* An answer that comes after this finds no request and is dropped. */
void
peer_request_close(struct peer_request *request)
{
    struct peers *peers;

    if (request == NULL)
        return;
    peers = request->peers;
    pthread_mutex_lock(&peers->lock);
    (void)withdraw_request(peers, request);
    pthread_mutex_unlock(&peers->lock);
    free(request->answer.bytes);
    free(request);
}

/* A moving average, in ns for a MiB. */
static void
learn_rate(uint64_t *rate_ns, int64_t took_ns, uint64_t bytes)
{
    uint64_t now_ns = took_ns > 0 ? (uint64_t)took_ns * MIB / bytes : 0;

    *rate_ns = *rate_ns == 0 ? now_ns : (*rate_ns * 7 + now_ns) / 8;
}

/* Only a change by half is sent. Rates vary all the time, and a message for each answer would cost
 * more than it saves. */
static bool
is_news(uint64_t told_ns, uint64_t now_ns)
{
    return now_ns > told_ns + told_ns / 2 || told_ns > now_ns + now_ns / 2;
}

/* Tell an owner the rates when they have changed. This is a message of its own, because requests
 * that wait there were sent with older rates. */
static void
tell_rates(struct peers *peers, uint32_t owner)
{
    const struct peer_transport *transport = &peers->options.transport;
    struct peer_rates rates;
    bool news;

    pthread_mutex_lock(&peers->lock);
    rates = peers->rates;
    news = is_news(peers->told[owner].wire_ns, rates.wire_ns) ||
           is_news(peers->told[owner].unpack_ns, rates.unpack_ns);
    if (news)
        peers->told[owner] = rates;
    pthread_mutex_unlock(&peers->lock);
    if (news)
        transport->send(transport->context, owner, PEER_RATES, 0, &rates, sizeof rates);
}

void
peer_take_answer(struct peers *peers, const struct peer_message *message)
{
    struct peer_request *request;

    pthread_mutex_lock(&peers->lock);
    if (message->byte_count >= RATE_BYTES)
        learn_rate(&peers->rates.wire_ns, message->took_ns, message->timed_bytes);
    /* The sender must be the node that was asked: a node could answer for another one otherwise. */
    request = peers->requests;
    while (request != NULL &&
           (request->number != message->number || request->owner != message->from))
        request = request->next;
    if (request != NULL && withdraw_request(peers, request)) {
        request->answer = *message;
        /* Pairs with the load in has_come: the answer is visible. */
        atomic_store_explicit(&request->is_answered, true, memory_order_release);
    } else {
        free(message->bytes);
    }
    pthread_mutex_unlock(&peers->lock);
    tell_rates(peers, message->from);
}

static bool
has_come(const void *waited)
{
    const struct peer_request *request = waited;

    return atomic_load_explicit(&request->is_answered, memory_order_acquire);
}

static tundish_status
makes_no_sense(const struct peer_request *request)
{
    const struct peer_transport *transport = &request->peers->options.transport;
    char name[160];

    transport->name(transport->context, request->owner, name, sizeof name);
    return tnd_fail(TUNDISH_E_CORRUPT, "%s: malformed answer", name);
}

/* The raw size comes from another machine. It is bounded before it is allocated, and zstd must
 * produce exactly that many bytes. */
static tundish_status
unpack_answer(struct peer_request *request, const struct peer_head *head)
{
    struct peers *peers = request->peers;
    const uint8_t *packed = request->answer.bytes + sizeof *head;
    size_t packed_bytes = request->answer.byte_count - sizeof *head;
    int64_t began_ns = tnd_clock_ns();
    uint8_t *raw;

    if (head->raw_bytes > UINT32_MAX || (!head->is_packed && head->raw_bytes != packed_bytes))
        return makes_no_sense(request);
    request->raw_bytes = (size_t)head->raw_bytes;
    if (!head->is_packed) {
        request->raw = packed;
        return TUNDISH_OK;
    }
    raw = tnd_alloc((size_t)head->raw_bytes + 1);
    if (ZSTD_decompress(raw, request->raw_bytes, packed, packed_bytes) != request->raw_bytes) {
        free(raw);
        return makes_no_sense(request);
    }
    free(request->answer.bytes);
    request->answer.bytes = raw;
    request->raw = raw;
    if (head->raw_bytes >= RATE_BYTES) {
        pthread_mutex_lock(&peers->lock);
        learn_rate(&peers->rates.unpack_ns, tnd_clock_ns() - began_ns, head->raw_bytes);
        pthread_mutex_unlock(&peers->lock);
    }
    return TUNDISH_OK;
}

/* Read the answer, once, into request->raw. */
static tundish_status
read_answer(struct peer_request *request)
{
    struct peer_head head;

    if (request->raw != NULL)
        return TUNDISH_OK;
    if (request->answer.byte_count < sizeof head)
        return makes_no_sense(request);
    memcpy(&head, request->answer.bytes, sizeof head);
    /* Statuses of failures are negative. */
    if (head.status > 0)
        return makes_no_sense(request);
    request->is_damaged = head.status != TUNDISH_OK && head.is_packed;
    if (head.status != TUNDISH_OK)
        return tnd_fail((tundish_status)head.status, "%.*s",
                        (int)(request->answer.byte_count - sizeof head),
                        (const char *)request->answer.bytes + sizeof head);
    return unpack_answer(request, &head);
}

static tundish_status
wait_for(struct peer_request *request)
{
    const struct peer_transport *transport = &request->peers->options.transport;

    return transport->wait(transport->context, request->owner, has_come, request);
}

tundish_status
peer_request_wait(struct peer_request *request)
{
    tundish_status status = wait_for(request);

    return status == TUNDISH_OK ? read_answer(request) : status;
}

static int
compare_rows(const void *a, const void *b)
{
    const struct peer_row *x = a, *y = b;

    if (x->file != y->file)
        return x->file->number < y->file->number ? -1 : 1;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    return 0;
}

/* Several rows of a batch may be the same record. The longest form is asked for, since a row may be
 * read with and without its extra bytes. */
static size_t
drop_doubles(struct peer_row *rows, size_t count)
{
    size_t kept = 0;

    for (size_t i = 0; i < count; i++)
        if (kept == 0 || compare_rows(&rows[kept - 1], &rows[i]) != 0)
            rows[kept++] = rows[i];
        else if (rows[i].bytes > rows[kept - 1].bytes)
            rows[kept - 1].bytes = rows[i].bytes;
    return kept;
}

static uint32_t
owner_of(const struct peer_rows *rows, size_t row)
{
    return rows->rows[row].file->owner;
}

static void
add_row(struct peer_buffer *text, const struct peer_row *row)
{
    peer_buffer_add(text, &row->offset, sizeof row->offset);
    peer_buffer_add(text, &row->bytes, sizeof row->bytes);
}

/* Send a request for rows of one owner from `first` on, as many as fit. Returns the row after
 * them. */
static size_t
ask_some(struct peer_rows *rows, size_t first, uint32_t owner)
{
    struct peer_buffer text = { 0 };
    uint64_t bytes = 0;
    size_t next = first;

    while (next < rows->count && owner_of(rows, next) == owner &&
           (bytes == 0 || bytes + rows->rows[next].bytes <= REQUEST_BYTES)) {
        const struct source_file *file = rows->rows[next].file;
        /* A file's description is sent once for all of its rows. */
        size_t end = next;

        for (; end < rows->count && rows->rows[end].file == file &&
               (bytes == 0 || bytes + rows->rows[end].bytes <= REQUEST_BYTES);
             end++) {
            rows->request_of[end] = rows->request_count;
            rows->at[end] = (size_t)bytes;
            bytes += rows->rows[end].bytes;
        }
        peer_buffer_add_file(&text, file, (uint32_t)(end - next));
        for (; next < end; next++)
            add_row(&text, &rows->rows[next]);
    }
    rows->bytes += bytes;
    rows->requests = tnd_grow(rows->requests, rows->request_count, sizeof(struct peer_request *));
    rows->requests[rows->request_count++] =
        peer_request_send(rows->peers, owner, PEER_ASK_ROWS, peer_buffer_view(&text));
    free(text.bytes);
    return next;
}

struct peer_rows *
peer_ask(struct peers *peers, struct peer_row *wanted, size_t count)
{
    struct peer_rows *rows = tnd_zalloc(1, sizeof *rows);

    pthread_mutex_init(&rows->lock, NULL);
    if (count > 0)
        qsort(wanted, count, sizeof *wanted, compare_rows);
    rows->peers = peers;
    rows->count = drop_doubles(wanted, count);
    rows->rows = tnd_alloc((rows->count + 1) * sizeof *rows->rows);
    memcpy(rows->rows, wanted, rows->count * sizeof *wanted);
    rows->request_of = tnd_zalloc(rows->count + 1, sizeof *rows->request_of);
    rows->at = tnd_zalloc(rows->count + 1, sizeof *rows->at);
    for (size_t i = 0; i < rows->count;)
        i = ask_some(rows, i, owner_of(rows, i));
    return rows;
}

uint64_t
peer_rows_bytes(const struct peer_rows *rows)
{
    return rows->bytes;
}

static const struct peer_row *
find_row(const struct peer_rows *rows, const struct peer_row *row)
{
    const struct peer_row *found =
        rows->count > 0 ? bsearch(row, rows->rows, rows->count, sizeof *row, compare_rows) : NULL;

    return found != NULL && found->bytes >= row->bytes ? found : NULL;
}

bool
peer_rows_has(const struct peer_rows *rows, const struct peer_row *row)
{
    return find_row(rows, row) != NULL;
}

/* The answer must have the bytes that its rows were asked with. */
static tundish_status
check_bytes(const struct peer_rows *rows)
{
    for (size_t i = 0; i < rows->count; i++) {
        const struct peer_request *request = rows->requests[rows->request_of[i]];

        if (rows->at[i] + rows->rows[i].bytes > request->raw_bytes)
            return makes_no_sense(request);
    }
    return TUNDISH_OK;
}

tundish_status
peer_rows_wait(struct peer_rows *rows)
{
    tundish_status status = TUNDISH_OK;

    for (uint32_t i = 0; i < rows->request_count && status == TUNDISH_OK; i++)
        status = wait_for(rows->requests[i]);
    if (status != TUNDISH_OK)
        return status;
    /* Several readers wait for the same answers, and the first one unpacks them. */
    pthread_mutex_lock(&rows->lock);
    for (uint32_t i = 0; i < rows->request_count && status == TUNDISH_OK; i++)
        status = read_answer(rows->requests[i]);
    if (status == TUNDISH_OK)
        status = check_bytes(rows);
    pthread_mutex_unlock(&rows->lock);
    return status;
}

const uint8_t *
peer_rows_find(const struct peer_rows *rows, const struct peer_row *row)
{
    const struct peer_row *found = find_row(rows, row);
    size_t index = (size_t)(found - rows->rows);

    must(found != NULL);
    return rows->requests[rows->request_of[index]]->raw + rows->at[index];
}

void
peer_rows_close(struct peer_rows *rows)
{
    if (rows == NULL)
        return;
    for (uint32_t i = 0; i < rows->request_count; i++)
        peer_request_close(rows->requests[i]);
    pthread_mutex_destroy(&rows->lock);
    free(rows->requests);
    free(rows->request_of);
    free(rows->at);
    free(rows->rows);
    free(rows);
}

/* Read records that another machine has sent. They are hostile: offsets must rise and lengths must
 * be possible. An answer without records must be the last one, or the scan would never end. */
static bool
take_records(struct byte_view from, struct record_writer *writer, bool *ret_is_over)
{
    uint64_t count;
    uint8_t is_over;

    if (!peer_take(&from, &is_over, 1) || !peer_take(&from, &count, sizeof count) ||
        count != from.size / PEER_ROW_BYTES || from.size % PEER_ROW_BYTES != 0)
        return false;
    while (from.size > 0) {
        uint64_t offset;
        uint32_t length;

        (void)peer_take(&from, &offset, sizeof offset);
        (void)peer_take(&from, &length, sizeof length);
        if (offset < writer->end || offset > UINT64_MAX / 4 || length > RECORD_BYTES_MAX)
            return false;
        record_writer_add(writer, offset, length);
    }
    *ret_is_over = is_over != 0;
    return is_over != 0 || count > 0;
}

static tundish_status
find_records(struct source_file *file, struct scan_work *work, struct record_writer *writer)
{
    struct peer_buffer text = { 0 };
    struct peer_request *request;
    tundish_status status;

    peer_buffer_add_file(&text, file, 0);
    peer_buffer_add(&text, &work->record_count, sizeof work->record_count);
    request =
        peer_request_send(file->peers, file->owner, PEER_ASK_RECORDS, peer_buffer_view(&text));
    free(text.bytes);
    status = peer_request_wait(request);
    if (status == TUNDISH_OK &&
        !take_records((struct byte_view){ request->raw, request->raw_bytes }, writer,
                      &work->is_over))
        status = makes_no_sense(request);
    work->is_damaged = status == TUNDISH_E_DATA && request->is_damaged;
    peer_request_close(request);
    return status;
}

const struct scan_input_ops peer_scan_input = { .find = find_records };

const struct catalogue *
peers_catalogue(const struct peers *peers)
{
    return peers->options.catalogue;
}
