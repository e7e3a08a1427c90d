/* helper_wire.c - proofs, and messages that come and go until a deadline. */
#include "helpers/helper_wire.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <nettle/hmac.h>
#include <nettle/memops.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "batch/portable.h"
#include "core/clock.h"
#include "core/hash_farm.h"
#include "core/memory.h"
#include "core/must.h"
#include "core/status.h"
#include "session/checkpoint/place_contents.h"
#include "source/source.h"

/* Its pieces, and its seal after them, which may be of no bytes. */
struct message {
    const struct iovec *pieces;
    int count;
    struct iovec seal;
};

/* How often a wait looks at `stop`. */
enum { MS_NS = 1000000, LOOK_MS = 20, PIECES = 64, TOGETHER_BYTES = 256 << 10 };

/* So much is taken for bytes that were stated and have not come. */
enum { STATED_BYTES = 1 << 20 };

const char helper_greeting[HELPER_GREETING_BYTES] = "tundish-helper4";

tundish_status
helper_key(struct byte_view *ret_key)
{
    const char *text = getenv("TUNDISH_HELPER_KEY");

    if (text == NULL || strlen(text) < HELPER_KEY_BYTES_MIN)
        return tnd_fail(
            TUNDISH_E_ARGUMENT,
            "helpers need the job's key in TUNDISH_HELPER_KEY, at least %d bytes and the "
            "same for servers and helpers: `openssl rand -hex 32` makes one",
            HELPER_KEY_BYTES_MIN);
    *ret_key = bytes_of_text(text);
    return TUNDISH_OK;
}

void
helper_prove(struct byte_view key, const char *who, const struct iovec *parts, int count,
             uint8_t ret_proof[HELPER_PROOF_BYTES])
{
    struct hmac_sha256_ctx context;

    hmac_sha256_set_key(&context, key.size, key.data);
    hmac_sha256_update(&context, strlen(who) + 1, (const uint8_t *)who);
    for (int i = 0; i < count; i++)
        hmac_sha256_update(&context, parts[i].iov_len, parts[i].iov_base);
    hmac_sha256_digest(&context, HELPER_PROOF_BYTES, ret_proof);
}

bool
helper_is_proof(const uint8_t *proof, const uint8_t *told)
{
    return memeql_sec(proof, told, HELPER_PROOF_BYTES) != 0;
}

tundish_status
helper_draw(uint8_t ret_nonce[HELPER_NONCE_BYTES])
{
    if (getrandom(ret_nonce, HELPER_NONCE_BYTES, 0) != HELPER_NONCE_BYTES)
        return tnd_fail_errno(errno, "cannot draw a random number");
    return TUNDISH_OK;
}

uint32_t
helper_draw_below(uint32_t bound)
{
    uint32_t drawn = 0;

    /* 4 bytes are drawn whole, once the kernel has begun to draw at all. */
    must(getrandom(&drawn, sizeof drawn, 0) == sizeof drawn);
    return (uint32_t)((uint64_t)drawn * bound >> 32);
}

static uint64_t
mix(uint64_t hash, uint64_t more)
{
    uint64_t pair[2] = { hash, more };

    return tnd_hash_farm(pair, sizeof pair);
}

/* Arrays are read whole by both sides, so nobody has to sum their files. */
static uint64_t
mix_arrays(uint64_t hash, const struct plan_graph *graph)
{
    for (uint32_t i = 0; i < graph->node_count; i++) {
        const struct plan_node *node = graph->nodes[i];

        if (node->source != NULL && node->source->files_hash != NULL)
            hash = mix(hash, node->source->files_hash(node->state));
        if (node->body != NULL)
            hash = mix_arrays(hash, node->body);
    }
    return hash;
}

uint64_t
helper_identity(const struct plan *plan, const struct place_files *files)
{
    uint64_t parts[4] = {
        tnd_hash_farm(TUNDISH_VERSION_TEXT, strlen(TUNDISH_VERSION_TEXT)),
        place_fingerprint(plan),
        plan->replicas,
        plan->options.root_seed,
    };
    uint64_t hash = tnd_hash_farm(parts, sizeof parts);

    for (uint32_t i = 0; i < files->count; i++)
        hash = mix(hash, files->list[i].hash);
    return mix_arrays(hash, plan->graph);
}

tundish_status
helper_address(const char *address, bool is_passive, struct addrinfo **ret_found)
{
    const struct addrinfo hints = { .ai_socktype = SOCK_STREAM,
                                    .ai_flags = is_passive ? AI_PASSIVE : 0 };
    const char *colon = strrchr(address, ':');
    const char *begin = address, *end = colon;
    char *host;
    int error;

    if (colon == NULL || colon[1] == '\0' || (!is_passive && colon == address))
        return tnd_fail(TUNDISH_E_ARGUMENT, "a helper's address is HOST:PORT, not '%s'", address);
    if (*begin == '[' && end > begin + 1 && end[-1] == ']') {
        begin++;
        end--;
    }
    host = tnd_strndup(begin, (size_t)(end - begin));
    error = getaddrinfo(host[0] != '\0' ? host : NULL, colon + 1, &hints, ret_found);
    free(host);
    return error == 0 ? TUNDISH_OK
                      : tnd_fail(TUNDISH_E_SYSTEM, "%s: %s", address, gai_strerror(error));
}

/* TCP by itself would wait for hours for a host that is gone. */
void
helper_wire_ready(int socket)
{
    static const int on = 1, silent_ms = 10000, idle_s = 10;

    (void)setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    (void)setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    (void)setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
    (void)setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &silent_ms, sizeof silent_ms);
}

/* Be woken once for many packets. */
static void
expect_bytes(const struct helper_wire *wire, size_t bytes)
{
    int least = bytes < TOGETHER_BYTES ? (int)bytes : TOGETHER_BYTES;

    (void)setsockopt(wire->socket, SOL_SOCKET, SO_RCVLOWAT, &least, sizeof least);
}

static tundish_status
wait_for(const struct helper_wire *wire, short events)
{
    for (;;) {
        int64_t left_ns = tnd_clock_left_ns(wire->deadline_ns);
        struct pollfd wanted = { .fd = wire->socket, .events = events };

        if (wire->stop != NULL && atomic_load_explicit(wire->stop, memory_order_relaxed) != 0)
            return tnd_fail(TUNDISH_E_TIMEOUT, "it was stopped");
        if (left_ns == 0)
            return tnd_fail(TUNDISH_E_TIMEOUT, "no answer in time");
        if (poll(&wanted, 1, left_ns / MS_NS < LOOK_MS ? (int)(left_ns / MS_NS) + 1 : LOOK_MS) > 0)
            return TUNDISH_OK;
    }
}

void
helper_wire_seal(struct helper_wire *wire, struct byte_view key, const struct helper_nonces *nonces,
                 bool is_server)
{
    wire->is_sealed = true;
    helper_seals_open(&wire->seals, key, nonces, is_server);
}

tundish_status
helper_wire_writable(const struct helper_wire *wire)
{
    return wait_for(wire, POLLOUT);
}

tundish_status
helper_wire_readable(const struct helper_wire *wire)
{
    expect_bytes(wire, 1);
    return wait_for(wire, POLLIN);
}

/* Pass over bytes that are done. */
static int
advance(struct iovec *pieces, int count, size_t bytes)
{
    int first = 0;

    while (first < count && bytes >= pieces[first].iov_len)
        bytes -= pieces[first++].iov_len;
    if (first < count && bytes > 0) {
        pieces[first].iov_base = (uint8_t *)pieces[first].iov_base + bytes;
        pieces[first].iov_len -= bytes;
    }
    memmove(pieces, pieces + first, (size_t)(count - first) * sizeof *pieces);
    return count - first;
}

typedef ssize_t move_bytes(int socket, struct iovec *pieces, int count);

static ssize_t
send_some(int socket, struct iovec *pieces, int count)
{
    struct msghdr message = { .msg_iov = pieces, .msg_iovlen = (size_t)count };

    return sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static ssize_t
receive_some(int socket, struct iovec *pieces, int count)
{
    struct msghdr message = { .msg_iov = pieces, .msg_iovlen = (size_t)count };
    ssize_t bytes = recvmsg(socket, &message, MSG_DONTWAIT);

    if (bytes != 0)
        return bytes;
    errno = ECONNRESET;
    return -1;
}

static uint64_t
bytes_in(const struct iovec *pieces, int count)
{
    uint64_t bytes = 0;

    for (int i = 0; i < count; i++)
        bytes += pieces[i].iov_len;
    return bytes;
}

static tundish_status
move_all(const struct helper_wire *wire, const struct message *message, move_bytes *move,
         short events)
{
    struct iovec now[PIECES];
    int left = 0, next = 0;

    for (;;) {
        ssize_t bytes;

        for (; left < PIECES && next <= message->count; next++) {
            const struct iovec *piece =
                next < message->count ? &message->pieces[next] : &message->seal;

            if (piece->iov_len > 0)
                now[left++] = *piece;
        }
        if (left == 0)
            return TUNDISH_OK;
        bytes = move(wire->socket, now, left);
        if (bytes >= 0) {
            left = advance(now, left, (size_t)bytes);
            continue;
        }
        if (errno == EINTR)
            continue;
        if (errno != EAGAIN && errno != EWOULDBLOCK)
            return tnd_fail_errno(errno, "the connection ended");
        if (events == POLLIN)
            expect_bytes(wire, bytes_in(now, left));
        if (wait_for(wire, events) != TUNDISH_OK)
            return TUNDISH_E_TIMEOUT;
    }
}

tundish_status
helper_send(struct helper_wire *wire, const struct iovec *pieces, int count)
{
    uint8_t seal[HELPER_SEAL_BYTES];
    struct message message = { pieces, count, { seal, 0 } };

    if (wire->is_sealed) {
        helper_seal_next(&wire->seals.sent, pieces, count, seal);
        message.seal.iov_len = sizeof seal;
    }
    wire->sent_bytes += bytes_in(pieces, count) + message.seal.iov_len;
    return move_all(wire, &message, send_some, POLLOUT);
}

/* The pieces have come: are they the message with this seal? */
static tundish_status
check_seal(struct helper_wire *wire, const struct iovec *pieces, int count, const uint8_t *told)
{
    uint8_t seal[HELPER_SEAL_BYTES];

    helper_seal_next(&wire->seals.received, pieces, count, seal);
    return helper_seal_is(seal, told)
               ? TUNDISH_OK
               : tnd_fail(TUNDISH_E_CORRUPT, "a message was changed on the way, or is not the next "
                                             "one of this connection");
}

tundish_status
helper_receive(struct helper_wire *wire, const struct iovec *pieces, int count)
{
    uint8_t told[HELPER_SEAL_BYTES];
    const struct message message = { pieces, count, { told, wire->is_sealed ? sizeof told : 0 } };
    tundish_status status;

    wire->received_bytes += bytes_in(pieces, count) + message.seal.iov_len;
    status = move_all(wire, &message, receive_some, POLLIN);
    return status == TUNDISH_OK && wire->is_sealed ? check_seal(wire, pieces, count, told) : status;
}

tundish_status
helper_receive_stated(struct helper_wire *wire, uint64_t bytes, struct portable_bytes *to)
{
    uint8_t told[HELPER_SEAL_BYTES];
    bool is_last;
    tundish_status status;

    to->used = 0;
    do {
        struct message message = { .count = 1, .seal = { told, 0 } };
        struct iovec some;

        if (to->bytes == NULL || (to->room < bytes && to->room == to->used)) {
            to->room = to->room < STATED_BYTES ? STATED_BYTES : 2 * to->room;
            to->room = to->room < bytes ? to->room : bytes + 1;
            to->bytes = tnd_realloc(to->bytes, to->room, 1);
        }
        some.iov_base = to->bytes + to->used;
        some.iov_len = (to->room < bytes ? to->room : bytes) - to->used;
        message.pieces = &some;
        to->used += some.iov_len;
        is_last = to->used == bytes;
        if (is_last && wire->is_sealed)
            message.seal.iov_len = sizeof told;
        wire->received_bytes += some.iov_len + message.seal.iov_len;
        status = move_all(wire, &message, receive_some, POLLIN);
    } while (status == TUNDISH_OK && !is_last);
    if (status != TUNDISH_OK || !wire->is_sealed)
        return status;
    return check_seal(wire, &(struct iovec){ to->bytes, bytes }, 1, told);
}

tundish_status
helper_wire_check(const struct helper_wire *wire)
{
    struct pollfd wanted = { .fd = wire->socket, .events = POLLIN | POLLRDHUP };

    return poll(&wanted, 1, 0) == 0 ? TUNDISH_OK
                                    : tnd_fail(TUNDISH_E_SYSTEM, "the connection ended");
}

void
helper_wire_close(struct helper_wire *wire)
{
    if (wire->socket >= 0)
        close(wire->socket);
    wire->socket = -1;
    wire->is_sealed = false;
}
