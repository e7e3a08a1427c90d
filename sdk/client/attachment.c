/* attachment.c - from a path to mapped memory. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "client/delivery.h"
#include "core/clock.h"
#include "core/codec.h"
#include "core/status.h"
#include "shm/channel.h"
#include "shm/segment.h"

#define KNOCK_AGAIN_NS INT64_C(20000000)
#define SEND_AGAIN_NS INT64_C(1000000)
#define HANDSHAKE_NS INT64_C(5000000000) /* for the answer of a server that accepts connections */
#define SECOND_NS INT64_C(1000000000)

enum { BATCHES, RETURNS, WAKEUP, EVENT }; /* the descriptors of a WELCOME */

static void
pause_for(int64_t pause_ns)
{
    struct timespec pause = { .tv_nsec = pause_ns };

    nanosleep(&pause, NULL);
}

void
tnd_attachment_hang_up(struct attachment *attachment)
{
    tnd_channel_close_descriptor(&attachment->socket);
    tnd_channel_close_descriptor(&attachment->wakeup);
    tnd_channel_close_descriptor(&attachment->event);
    attachment->is_gone = true;
}

void
tnd_reader_close_held(struct held *held)
{
    if (held == NULL)
        return;
    tnd_view_slot_close(&held->slot);
    for (uint32_t i = 0; held->scratch != NULL && i < held->buffer_capacity; i++)
        free(held->scratch[i].bytes);
    free(held->scratch);
    free(held->columns);
    tnd_codec_context_close(held->context);
    pthread_mutex_destroy(&held->lock);
    free(held);
}

static void
close_slots(struct attachment *attachment)
{
    for (uint32_t i = 0; attachment->slots != NULL && i < attachment->view.slot_count; i++) {
        struct held *held = attachment->slots[i];

        if (held != NULL && held->is_held)
            tnd_mapping_drop(held->mapping);
        tnd_reader_close_held(held);
    }
    free(attachment->slots);
}

void
tnd_attachment_close(struct attachment *attachment)
{
    tnd_attachment_hang_up(attachment);
    close_slots(attachment);
    free(attachment->done);
    tnd_mapping_drop(attachment->view_mapping);
    while (attachment->mappings != NULL)
        tnd_mapping_retire(attachment, attachment->mappings);
    tnd_segment_unmap(attachment->returns, attachment->welcome.returns_bytes);
    tnd_view_close(&attachment->view);
    free(attachment);
}

/* The first attachment stays: it is the present one. An older one goes with its last batch, whose
 * bytes lie in its mapping. */
void
tnd_reader_tidy(tundish_reader *reader)
{
    struct attachment **link;

    if (reader->attachments == NULL)
        return;
    link = &reader->attachments->next;
    while (*link != NULL) {
        struct attachment *old = *link;

        if (old->held_count > 0) {
            link = &old->next;
            continue;
        }
        *link = old->next;
        tnd_attachment_close(old);
    }
}

static tundish_status
no_memory(void)
{
    return tnd_fail(TUNDISH_E_MEMORY, "no memory for a reader");
}

tundish_status
tnd_reader_open_held(struct attachment *attachment, uint32_t index, struct held **ret_held)
{
    struct held *held = calloc(1, sizeof *held);
    tundish_status status = held == NULL ? no_memory() : TUNDISH_OK;

    if (status != TUNDISH_OK)
        return status;
    pthread_mutex_init(&held->lock, NULL);
    held->reader = attachment->reader;
    held->attachment = attachment;
    held->index = index;
    held->buffer_capacity = attachment->view.buffer_capacity;
    /* One more than needed: calloc may return NULL for 0 elements. */
    held->columns = calloc(attachment->view.column_capacity + 1, sizeof *held->columns);
    held->scratch = calloc(held->buffer_capacity + 1, sizeof *held->scratch);
    status = held->columns == NULL || held->scratch == NULL
                 ? no_memory()
                 : tnd_view_slot_open(&attachment->view, &held->slot);
    if (status != TUNDISH_OK) {
        tnd_reader_close_held(held);
        return status;
    }
    *ret_held = held;
    return TUNDISH_OK;
}

static tundish_status
make_tables(struct attachment *attachment)
{
    uint32_t slot_count = attachment->view.slot_count;
    tundish_status status = TUNDISH_OK;

    attachment->slots = calloc(slot_count, sizeof *attachment->slots);
    attachment->done = calloc(slot_count, sizeof *attachment->done);
    if (attachment->slots == NULL || attachment->done == NULL)
        return no_memory();
    for (uint32_t i = 0; i < slot_count && status == TUNDISH_OK; i++)
        status = tnd_reader_open_held(attachment, i, &attachment->slots[i]);
    return status;
}

static tundish_status
map_returns(struct attachment *attachment, int descriptor)
{
    const struct tnd_returns *page;
    void *bytes;
    tundish_status status;

    if (attachment->welcome.returns_bytes < tnd_returns_bytes(attachment->view.slot_count))
        return tnd_fail(TUNDISH_E_CORRUPT, "the server's returns page is too small");
    status = tnd_segment_map(descriptor, attachment->welcome.returns_bytes, true, &bytes);
    if (status != TUNDISH_OK)
        return status;
    page = attachment->returns = bytes;
    if (page->magic != TND_RETURNS_MAGIC || page->layout_major != TND_LAYOUT_MAJOR)
        return tnd_fail(TUNDISH_E_CORRUPT, "the server's returns page is malformed");
    /* A child after fork must not write into this page: each word has one writer, this process. */
    madvise(bytes, attachment->welcome.returns_bytes, MADV_DONTFORK);
    return TUNDISH_OK;
}

/* Everything that the WELCOME sent is checked before it is used. */
static tundish_status
map_segments(struct attachment *attachment, struct tnd_descriptors *descriptors)
{
    const struct tnd_welcome *welcome = &attachment->welcome;
    tundish_status status;

    for (int i = BATCHES; i <= EVENT; i++)
        if (descriptors->at[i] < 0)
            return tnd_fail(TUNDISH_E_CORRUPT, "the server sent too few descriptors");
    status = tnd_mapping_open(attachment, TND_SEGMENT_LANE, descriptors->at[BATCHES],
                              welcome->batches_bytes);
    if (status != TUNDISH_OK)
        return status;
    attachment->view_mapping = attachment->mappings;
    attachment->view_mapping->users++;
    status =
        tnd_view_open(attachment->view_mapping->bytes, welcome->batches_bytes, &attachment->view);
    if (status == TUNDISH_OK)
        status = map_returns(attachment, descriptors->at[RETURNS]);
    if (status == TUNDISH_OK &&
        (welcome->line == 0 || welcome->line >= attachment->view.line_count))
        status = tnd_fail(TUNDISH_E_CORRUPT, "the server sent an unknown line");
    if (status != TUNDISH_OK)
        return status;
    attachment->line = welcome->line;
    attachment->delivery =
        attachment->view.delivery == TND_DELIVER_QUEUE ? &tnd_delivery_queue : &tnd_delivery_lane;
    attachment->taken = attachment->released = welcome->position;
    attachment->wakeup = descriptors->at[WAKEUP];
    attachment->event = descriptors->at[EVENT];
    /* They belong to the attachment now: the caller closes the rest. */
    descriptors->at[WAKEUP] = descriptors->at[EVENT] = -1;
    return TUNDISH_OK;
}

/* Sends never block, but a place may need more packets than the socket holds at once. */
static tundish_status
send_patiently(int socket, struct tnd_message_head head, const void *bytes, int64_t deadline_ns)
{
    for (;;) {
        tundish_status status = tnd_channel_send(socket, head, bytes, NULL, 0);

        if (status != TUNDISH_E_TIMEOUT || tnd_clock_left_ns(deadline_ns) == 0)
            return status;
        pause_for(SEND_AGAIN_NS);
    }
}

/* The parameters of one try to attach. */
struct attempt {
    bool is_survivor;
    const uint8_t *place;
    uint64_t place_bytes;
    int64_t deadline_ns;
};

static tundish_status
send_hello(const tundish_reader *reader, int socket, const struct attempt *attempt)
{
    const uint64_t part_max = sizeof(((struct tnd_message *)NULL)->bytes);
    struct tnd_hello hello = {
        .protocol_min = TND_PROTOCOL_MIN,
        .protocol_max = TND_PROTOCOL_MAX,
        .layout_major = TND_LAYOUT_MAJOR,
        .layout_minor = TND_LAYOUT_MINOR,
        .replica = reader->replica,
        .flags = (attempt->is_survivor ? TND_HELLO_SURVIVOR : 0) |
                 (attempt->place_bytes > 0 ? TND_HELLO_PLACE : 0) |
                 (attempt->is_survivor && reader->kept.is_known ? TND_HELLO_KEPT : 0) |
                 (reader->kept.is_end ? TND_HELLO_KEPT_END : 0) | TND_HELLO_FROM,
        .kept_epoch = reader->kept.epoch,
        .kept_step = reader->kept.step,
        .groups_present = reader->kept.groups_present,
        .groups_gone = reader->kept.groups_gone,
        .kept_generation = reader->kept.generation,
        .place_bytes = attempt->place_bytes,
    };
    struct tnd_message_head head = { .type = TND_HELLO, .bytes = sizeof hello };
    tundish_status status;

    memcpy(hello.stream, reader->stream, sizeof hello.stream);
    memcpy(hello.session, reader->session, sizeof hello.session);
    memcpy(hello.group, reader->group, sizeof hello.group);
    status = send_patiently(socket, head, &hello, attempt->deadline_ns);
    head = (struct tnd_message_head){ .type = TND_PLACE, .total = attempt->place_bytes };
    while (status == TUNDISH_OK && head.offset < attempt->place_bytes) {
        uint64_t left = attempt->place_bytes - head.offset;

        head.bytes = (uint32_t)(left < part_max ? left : part_max);
        status = send_patiently(socket, head, attempt->place + head.offset, attempt->deadline_ns);
        head.offset += head.bytes;
    }
    return status;
}

/* The server's own sentence. No NUL ends it. */
static tundish_status
refused(const struct tnd_message *message)
{
    tundish_status status = (tundish_status)message->head.status;

    return tnd_fail(status < 0 ? status : TUNDISH_E_CORRUPT, "%.*s", (int)message->head.bytes,
                    (const char *)message->bytes);
}

static tundish_status
read_welcome(struct attachment *attachment, const struct tnd_message *message)
{
    struct tnd_welcome *welcome = &attachment->welcome;

    if (message->head.type == TND_REFUSED)
        return refused(message);
    if (message->head.type != TND_WELCOME ||
        message->head.bytes < offsetof(struct tnd_welcome, epoch_steps))
        return tnd_fail(TUNDISH_E_CORRUPT, "the process that answers is not a Tundish server");
    welcome->epoch_steps = -1; /* an older server does not tell */
    welcome->begin_epoch = UINT64_MAX;
    memcpy(welcome, message->bytes,
           message->head.bytes < sizeof *welcome ? message->head.bytes : sizeof *welcome);
    /* The server's bytes may lack the NUL. */
    welcome->stream[TND_NAME_BYTES - 1] = '\0';
    if (welcome->protocol < TND_PROTOCOL_MIN || welcome->protocol > TND_PROTOCOL_MAX)
        return tnd_fail(TUNDISH_E_LAYOUT, "the server uses protocol %u, this library %d to %d",
                        welcome->protocol, TND_PROTOCOL_MIN, TND_PROTOCOL_MAX);
    return TUNDISH_OK;
}

static bool
is_suspended(pid_t process)
{
    char path[64], line[512], *state;
    FILE *file;
    bool is;

    snprintf(path, sizeof path, "/proc/%d/stat", (int)process);
    file = fopen(path, "re");
    if (file == NULL)
        return false;
    /* After the program's name, which may hold anything. */
    is = fgets(line, sizeof line, file) != NULL && (state = strrchr(line, ')')) != NULL &&
         (state[1] == ' ' && (state[2] == 'T' || state[2] == 't'));
    fclose(file);
    return is;
}

/* The kernel accepts connections for a server that does nothing. */
static tundish_status
fail_without_answer(const struct attachment *attachment)
{
    struct ucred server = { 0 };
    socklen_t bytes = sizeof server;
    const char *path = attachment->reader->path;

    (void)getsockopt(attachment->socket, SOL_SOCKET, SO_PEERCRED, &server, &bytes);
    if (is_suspended(server.pid))
        return tnd_fail(TUNDISH_E_TIMEOUT,
                        "the server at %s does not answer: its process, %d, is suspended (kill "
                        "-CONT %d resumes it)",
                        path, (int)server.pid, (int)server.pid);
    return tnd_fail(TUNDISH_E_TIMEOUT,
                    "the server at %s (process %d) does not answer: it hangs, or the machine lacks "
                    "memory or processors",
                    path, (int)server.pid);
}

static tundish_status
await_welcome(struct attachment *attachment, int64_t deadline_ns)
{
    struct tnd_descriptors descriptors = { .at = { -1, -1, -1, -1 } };
    struct tnd_message message;
    tundish_status status = tnd_channel_wait(attachment->socket, tnd_clock_left_ns(deadline_ns));

    if (status == TUNDISH_E_TIMEOUT)
        return fail_without_answer(attachment);
    if (status == TUNDISH_OK)
        status = tnd_channel_receive(attachment->socket, &message, &descriptors);
    if (status == TUNDISH_OK)
        status = read_welcome(attachment, &message);
    if (status == TUNDISH_OK)
        status = map_segments(attachment, &descriptors);
    tnd_channel_close_descriptors(&descriptors);
    return status;
}

/* The trainer has built its input on the old columns. If they changed while the server was away, it
 * must open the stream again. */
static tundish_status
check_spec(const tundish_reader *reader, const struct attachment *attachment)
{
    const tundish_spec *before = &reader->spec.spec, *now = &attachment->view.spec.spec;
    bool is_same = before->column_count == now->column_count;

    for (uint32_t i = 0; is_same && i < now->column_count; i++) {
        const tundish_column_spec *a = tundish_column_spec_at(before, i);
        const tundish_column_spec *b = tundish_column_spec_at(now, i);

        is_same = strcmp(a->name, b->name) == 0 && a->dtype == b->dtype && a->kind == b->kind &&
                  a->rank == b->rank && a->ragged_rank == b->ragged_rank;
    }
    if (!is_same)
        return tnd_fail(TUNDISH_E_PIPELINE,
                        "the stream's columns changed when the server restarted: open it again");
    return TUNDISH_OK;
}

static tundish_status
watch_attachment(const tundish_reader *reader, struct attachment *attachment)
{
    struct epoll_event event = { .events = EPOLLIN };

    if (reader->descriptor < 0)
        return TUNDISH_OK;
    if (epoll_ctl(reader->descriptor, EPOLL_CTL_ADD, attachment->socket, &event) != 0 ||
        epoll_ctl(reader->descriptor, EPOLL_CTL_ADD, attachment->event, &event) != 0)
        return tnd_fail_errno(errno, "cannot watch the new server");
    /* From here on the server raises the event after each batch (tnd_ring_event_raise). */
    atomic_store(&attachment->returns->polling, 1);
    return TUNDISH_OK;
}

/* Connect to the process that listens now, and shake hands. E_SERVER_GONE: none listens. */
static tundish_status
attach_once(tundish_reader *reader, const struct attempt *attempt,
            struct attachment **ret_attachment)
{
    struct attachment *attachment = calloc(1, sizeof *attachment);
    /* A limit below a second says how long to wait for a server to start, not for its answer. */
    int64_t patience_ns =
        reader->server_timeout_ns < SECOND_NS || reader->server_timeout_ns > HANDSHAKE_NS
            ? HANDSHAKE_NS
            : reader->server_timeout_ns;
    int64_t answer_ns = tnd_clock_deadline_ns(patience_ns);
    tundish_status status;

    if (attachment == NULL)
        return no_memory();
    attachment->reader = reader;
    attachment->socket = attachment->wakeup = attachment->event = -1;
    status = tnd_channel_connect(reader->path, &attachment->socket);
    if (status == TUNDISH_OK)
        status = send_hello(reader, attachment->socket, attempt);
    if (status == TUNDISH_OK)
        /* A server that accepted the connection gets time to answer, even if the caller's deadline
         * is nearer. */
        status = await_welcome(attachment,
                               answer_ns > attempt->deadline_ns ? answer_ns : attempt->deadline_ns);
    if (status == TUNDISH_OK)
        status = make_tables(attachment);
    if (status == TUNDISH_OK && reader->spec.storage != NULL)
        status = check_spec(reader, attachment);
    else if (status == TUNDISH_OK)
        status = tnd_spec_copy(&attachment->view.spec.spec, &reader->spec);
    if (status == TUNDISH_OK)
        status = watch_attachment(reader, attachment);
    if (status != TUNDISH_OK) {
        tnd_attachment_close(attachment);
        return status;
    }
    *ret_attachment = attachment;
    return TUNDISH_OK;
}

/* Nothing listens, as the thread's error says. Add the remedy for a user who forgot the server. */
static tundish_status
fail_without_server(const tundish_reader *reader, int64_t waited_ns)
{
    char how_long[64] = "";

    /* Less is how a trainer asks that waits itself. */
    if (waited_ns >= SECOND_NS)
        snprintf(how_long, sizeof how_long, ", and none was there in all of %lld s",
                 (long long)(waited_ns / SECOND_NS));
    return tnd_fail(TUNDISH_E_SERVER_GONE,
                    "no server listens at %s%s; start one: tundish serve FILE, or both: "
                    "tundish-launch FILE -- TRAINER",
                    reader->path, how_long);
}

/* Until then the reader could not say where it stands, should the server die. If it dies first,
 * that shows at the next call. */
static void
await_begin(tundish_reader *reader)
{
    const struct attachment *attachment = reader->attachments;
    int64_t deadline_ns = tnd_clock_deadline_ns(HANDSHAKE_NS);
    tundish_status status = TUNDISH_OK;

    while ((attachment->welcome.flags & TND_WELCOME_BEGIN) != 0 && !attachment->has_begin &&
           status == TUNDISH_OK)
        status = tnd_reader_listen_for(reader, tnd_clock_left_ns(deadline_ns));
}

tundish_status
tnd_reader_attach(tundish_reader *reader, bool is_survivor, int64_t deadline_ns)
{
    struct attempt attempt = { .is_survivor = is_survivor, .deadline_ns = deadline_ns };
    struct attachment *attachment = NULL;
    uint8_t *place = NULL;
    int64_t begun_ns = (int64_t)tnd_clock_ns();
    tundish_status status = TUNDISH_OK;

    /* Before the new attachment: the old server's lane is still mapped. */
    if (is_survivor)
        tnd_reader_note_kept(reader);
    if (reader->has_started)
        status = tnd_reader_place(reader, false, &place, &attempt.place_bytes);
    if (status != TUNDISH_OK)
        return status;
    attempt.place = place;
    /* Knock until a server listens: after a crash its successor may need seconds to start. */
    while ((status = attach_once(reader, &attempt, &attachment)) == TUNDISH_E_SERVER_GONE &&
           tnd_clock_left_ns(deadline_ns) != 0)
        pause_for(KNOCK_AGAIN_NS);
    free(place);
    if (status == TUNDISH_E_SERVER_GONE && !is_survivor)
        return fail_without_server(reader, (int64_t)tnd_clock_ns() - begun_ns);
    if (status != TUNDISH_OK)
        return status;
    pthread_mutex_lock(&reader->lock);
    /* Linked in when it is complete, because a fork in another thread walks this list (fork.c). */
    attachment->next = reader->attachments;
    reader->attachments = attachment;
    reader->awaits_siblings = is_survivor && reader->kept.is_known;
    reader->told.is_known = false;
    tnd_reader_tidy(reader);
    pthread_mutex_unlock(&reader->lock);
    /* Before the server's messages are read: FROM may be among them. */
    if (!reader->has_started)
        tnd_reader_begin(reader);
    await_begin(reader);
    return TUNDISH_OK;
}
