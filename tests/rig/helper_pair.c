/* helper_pair.c - see helper_pair.h. */
#include "rig/helper_pair.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/memory.h"
#include "core/must.h"
#include "session/session_spec.h"

/* What an end sends fits into its socket, or is cut off. */
enum { SOCKET_BYTES = 4 << 20 };

static void
open_plan(struct helper_pair *pair, uint32_t replicas, const char *folder, const char *stages,
          const char *deliver)
{
    const struct plan_options options = { .worker_count = 1,
                                          .replicas = replicas,
                                          .cache_folder = folder };
    struct source_files_options files = { .root = folder, .cache_folder = folder };
    struct spec_errors errors = { 0 };
    struct session *session = &pair->session;
    char *text = tnd_sprintf("streams: {s: {dataset: [%s], deliver: {%s}}}", stages, deliver);
    tundish_status status =
        spec_open_text(text, strlen(text), "pair.yaml", folder, &errors, &pair->file);

    if (status == TUNDISH_OK)
        status = plan_open(pair->file, spec_find_stream(pair->file, "s"), &options, &errors,
                           &session->plan);
    if (status != TUNDISH_OK)
        fprintf(stderr, "%s: %s\n", text, spec_errors_text(&errors));
    must(status == TUNDISH_OK);
    free(text);
    spec_errors_close(&errors);
    files.remote = &pair->file->remote;
    must(source_files_open(&files, &session->files) == TUNDISH_OK);
    must(session_spec_open(session->plan, &session->spec) == TUNDISH_OK);
    fill_open(session->plan, &session->fill);
}

static void
open_dealer(struct session *session)
{
    const struct dealer_options options = {
        .files = session->files,
        .stop = &session->stop,
        .skip_bad = session->plan->stream->deliver.skip_errors,
    };

    must(dealer_open(session->plan, &options, &session->dealer) == TUNDISH_OK);
    must(dealer_start_epoch(session->dealer) == TUNDISH_OK);
}

static void
enter_stream(struct helper_pair *pair)
{
    const struct session *session = &pair->session;
    struct helper_hello hello = {
        .worker_count = 1,
        .replicas = session->plan->options.replicas,
        .columns = session->plan->element_spec.count,
        .stream = "s",
    };
    struct portable_bytes bytes = { 0 };
    struct place_files files;

    must(place_files_open(session->plan, &files) == TUNDISH_OK);
    hello.identity = helper_identity(session->plan, &files);
    place_files_close(&files);
    portable_add(&bytes, &hello, sizeof hello);
    for (uint32_t i = 0; i < hello.columns; i++)
        portable_add(&bytes, &session->fill.columns[i].codec, sizeof(struct tnd_codec));
    pair->connection = (struct helper_connection){ .server = &pair->server };
    pair->connection.wire = (struct helper_wire){ .socket = -1, .stop = &pair->stop };
    must(helper_enter_stream(&pair->connection, (struct byte_view){ bytes.bytes, bytes.used }) ==
         TUNDISH_OK);
    free(bytes.bytes);
}

void
helper_pair_open(struct helper_pair *pair, const char *folder, const char *stages,
                 const char *deliver)
{
    helper_pair_open_for(pair, 0, folder, stages, deliver);
}

void
helper_pair_open_for(struct helper_pair *pair, uint32_t replicas, const char *folder,
                     const char *stages, const char *deliver)
{
    *pair = (struct helper_pair){ 0 };
    open_plan(pair, replicas, folder, stages, deliver);
    open_dealer(&pair->session);
    pair->sums = helper_sums_open();
    helper_line_open(&pair->line, &pair->session, (struct byte_view){ 0 }, pair->sums);
    pair->server.options = (struct helper_server_options){
        .file = pair->file, .cache_folder = folder, .thread_count = 1, .stop = &pair->stop
    };
    pthread_mutex_init(&pair->server.lock, NULL);
    sem_init(&pair->server.turns, 0, 1);
    enter_stream(pair);
    pair->share.fill = &pair->session.fill;
    pair->step.shares = &pair->share;
    pair->part.step = &pair->step;
    lane_slot_init_as(&pair->session.spec, &pair->share.slot);
}

static void
end_part(struct helper_pair *pair)
{
    for (uint32_t i = 0; i < pair->share.slot.buffer_count; i++) {
        free(pair->share.slot.buffers[i].data);
        pair->share.slot.buffers[i].data = NULL;
    }
    dealer_release_round(&pair->step.round);
    pair->step.round = (struct deal_round){ 0 };
}

void
helper_pair_close(struct helper_pair *pair)
{
    end_part(pair);
    lane_slot_fini(&pair->share.slot);
    helper_line_close(&pair->line);
    helper_sums_close(pair->sums);
    helper_leave_stream(&pair->connection);
    sem_destroy(&pair->server.turns);
    pthread_mutex_destroy(&pair->server.lock);
    dealer_close(pair->session.dealer);
    source_files_close(pair->session.files);
    session_spec_close(&pair->session.spec);
    fill_close(&pair->session.fill);
    plan_close(pair->session.plan);
    spec_close(pair->file);
}

void
helper_pair_reconnect(struct helper_pair *pair)
{
    helper_leave_stream(&pair->connection);
    helper_line_hang_up(&pair->line);
    enter_stream(pair);
}

bool
helper_pair_deal(struct helper_pair *pair)
{
    const struct fill *fill = &pair->session.fill;
    struct slot *slot = &pair->share.slot;

    end_part(pair);
    must(dealer_next(pair->session.dealer, &pair->step.round) == TUNDISH_OK);
    if (pair->step.round.present_count == 0)
        return false;
    if (!fill->in_place)
        return true;
    pair->part.begin = 0;
    pair->part.end = fill_rows(fill, &pair->step.round.slices[0]);
    (void)fill_describe(fill, &pair->step.round.slices[0], slot);
    for (uint32_t i = 0; i < slot->buffer_count; i++)
        slot->buffers[i].data = tnd_zalloc(slot->buffers[i].stored_bytes + 1, 1);
    fill_begin(fill, &pair->step.round.slices[0], slot);
    return true;
}

/* A pair of sockets, which hold what is sent before it is read. */
static void
connect_ends(int pair[2])
{
    static const int bytes = SOCKET_BYTES;

    must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) == 0);
    for (int i = 0; i < 2; i++)
        if (setsockopt(pair[i], SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof bytes) != 0)
            (void)setsockopt(pair[i], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
}

/* Each message begins a connection: a test may damage it, and the next is heard for all that. */
static const struct helper_nonces nonces;

static void
begin(struct helper_wire *wire, int socket, bool is_server)
{
    wire->socket = socket;
    helper_wire_seal(wire, (struct byte_view){ 0 }, &nonces, is_server);
}

static void
say_bytes(int socket, const struct portable_bytes *bytes)
{
    size_t said = 0;

    while (said < bytes->used) {
        ssize_t sent = send(socket, bytes->bytes + said, bytes->used - said, MSG_NOSIGNAL);

        if (sent <= 0)
            break;
        said += (size_t)sent;
    }
    (void)shutdown(socket, SHUT_WR);
}

/* A head and so many bytes as it states, each with its seal; then the rest as it is. */
static void
say(const struct helper_pair *pair, int socket, struct byte_view bytes, const uint64_t parts[2],
    bool is_server)
{
    struct portable_bytes sealed = { 0 };
    struct helper_seals seals;
    uint8_t seal[HELPER_SEAL_BYTES];

    helper_seals_open(&seals, (struct byte_view){ 0 }, &nonces, is_server);
    for (int i = 0; i < 2 && parts[i] <= bytes.size; i++) {
        struct iovec piece = { (void *)(uintptr_t)bytes.data, parts[i] };

        helper_seal_next(&seals.sent, &piece, 1, seal);
        portable_add(&sealed, bytes.data, parts[i]);
        portable_add(&sealed, seal, sizeof seal);
        bytes.data += parts[i];
        bytes.size -= parts[i];
    }
    portable_add(&sealed, bytes.data, bytes.size);
    if (pair->changed > 0 && pair->changed <= sealed.used)
        sealed.bytes[pair->changed - 1] ^= 0x10;
    say_bytes(socket, &sealed);
    free(sealed.bytes);
}

static void
say_ask(const struct helper_pair *pair, int socket, struct byte_view bytes)
{
    struct helper_ask head = { 0 };

    if (bytes.size >= sizeof head)
        memcpy(&head, bytes.data, sizeof head);
    say(pair, socket, bytes, (const uint64_t[]){ sizeof head, head.bytes }, true);
}

static void
say_answer(const struct helper_pair *pair, int socket, struct byte_view bytes)
{
    struct helper_answer head = { 0 };
    uint64_t stated;

    if (bytes.size >= sizeof head)
        memcpy(&head, bytes.data, sizeof head);
    stated = head.bytes;
    if (head.status == TUNDISH_OK)
        stated += (uint64_t)head.skipped_bytes + head.reads_bytes;
    say(pair, socket, bytes, (const uint64_t[]){ sizeof head, stated }, false);
}

static void
hear_sealed(int socket, struct portable_bytes *to)
{
    uint8_t some[4096];
    ssize_t bytes;

    to->used = 0;
    while ((bytes = recv(socket, some, sizeof some, 0)) > 0)
        portable_add(to, some, (size_t)bytes);
}

/* Without the seals of a head and of what follows it. */
static void
hear(int socket, struct portable_bytes *to, size_t head_bytes)
{
    hear_sealed(socket, to);
    if (to->used < head_bytes + 2 * HELPER_SEAL_BYTES)
        return;
    to->used -= 2 * HELPER_SEAL_BYTES;
    memmove(to->bytes + head_bytes, to->bytes + head_bytes + HELPER_SEAL_BYTES,
            to->used - head_bytes);
}

struct helper_ask
helper_pair_head(const struct helper_pair *pair)
{
    bool in_place = pair->session.fill.in_place;

    return (struct helper_ask){
        .number = 1,
        .rows = in_place ? (uint64_t)(pair->part.end - pair->part.begin) : 0,
        .in_place = in_place,
    };
}

void
helper_pair_ask(struct helper_pair *pair, struct portable_bytes *ret_ask)
{
    int ends[2];

    connect_ends(ends);
    begin(&pair->line.wire, ends[0], true);
    (void)helper_line_ask(&pair->line, &pair->part, 0);
    hear(ends[1], ret_ask, sizeof(struct helper_ask));
    pair->line.wire.socket = -1;
    close(ends[0]);
    close(ends[1]);
}

tundish_status
helper_pair_answer(struct helper_pair *pair, struct byte_view ask,
                   struct portable_bytes *ret_answer)
{
    tundish_status status;
    int ends[2];

    connect_ends(ends);
    say_ask(pair, ends[0], ask);
    begin(&pair->connection.wire, ends[1], false);
    status = helper_answer_one(&pair->connection);
    hear(ends[0], ret_answer, sizeof(struct helper_answer));
    pair->connection.wire.socket = -1;
    close(ends[0]);
    close(ends[1]);
    return status;
}

/* Let the line ask, and have this answer ready, as one of the question. */
static void
ask_and_answer(struct helper_pair *pair, struct byte_view answer, int ends[2])
{
    struct portable_bytes bytes = { 0 };

    connect_ends(ends);
    begin(&pair->line.wire, ends[0], true);
    must(helper_line_ask(&pair->line, &pair->part, 0) == TUNDISH_OK);
    portable_add(&bytes, answer.data, answer.size);
    if (bytes.used >= sizeof(struct helper_answer))
        memcpy(bytes.bytes + offsetof(struct helper_answer, number), &pair->line.asked,
               sizeof pair->line.asked);
    say_answer(pair, ends[1], (struct byte_view){ bytes.bytes, bytes.used });
    free(bytes.bytes);
}

static void
part_ends(struct helper_pair *pair, const int ends[2])
{
    pair->line.wire.socket = -1;
    close(ends[0]);
    close(ends[1]);
}

tundish_status
helper_pair_take(struct helper_pair *pair, struct byte_view answer, bool apart,
                 struct helper_made *ret_made)
{
    tundish_status status;
    int ends[2];

    ask_and_answer(pair, answer, ends);
    status = helper_line_take(&pair->line, &pair->part, apart, 0, ret_made);
    part_ends(pair, ends);
    return status;
}

tundish_status
helper_pair_drop(struct helper_pair *pair, struct byte_view answer)
{
    tundish_status status;
    int ends[2];

    ask_and_answer(pair, answer, ends);
    status = helper_line_drop(&pair->line, 0);
    part_ends(pair, ends);
    return status;
}
