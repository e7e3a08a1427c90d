/* helper_call.c - a helper is called: both sides prove who they are, and it opens the stream. */
#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/clock.h"
#include "helpers/helper_line.h"

/* To connect; and to open the stream, whose vocabularies may be large. */
static const int64_t CONNECT_NS = 2000000000;
static const int64_t OPEN_NS = 300000000000;

static tundish_status
connect_one(struct helper_wire *wire, const struct addrinfo *address)
{
    int error = 0;
    socklen_t size = sizeof error;

    wire->socket = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (wire->socket < 0)
        return tnd_fail_errno(errno, "cannot open a socket");
    helper_wire_ready(wire->socket);
    if (connect(wire->socket, address->ai_addr, address->ai_addrlen) == 0)
        return TUNDISH_OK;
    if (errno == EINPROGRESS) {
        tundish_status status = helper_wire_writable(wire);

        if (status != TUNDISH_OK)
            return status;
        getsockopt(wire->socket, SOL_SOCKET, SO_ERROR, &error, &size);
    } else {
        error = errno;
    }
    return error == 0 ? TUNDISH_OK : tnd_fail_errno(error, "cannot connect");
}

static tundish_status
connect_to(struct helper_wire *wire, const char *address)
{
    struct addrinfo *found;
    tundish_status status = helper_address(address, false, &found);

    if (status != TUNDISH_OK)
        return status;
    status = TUNDISH_E_SYSTEM;
    wire->deadline_ns = tnd_clock_deadline_ns(CONNECT_NS);
    for (const struct addrinfo *one = found; one != NULL && status != TUNDISH_OK;
         one = one->ai_next) {
        helper_wire_close(wire);
        status = connect_one(wire, one);
    }
    freeaddrinfo(found);
    return status;
}

/* The plan is the one of now: a place may have brought another root seed since the session was
 * opened. */
static struct helper_hello
hello_of(const struct session *session)
{
    const struct plan *plan = session->plan;
    struct helper_hello hello = {
        .identity = helper_identity(plan, &session->place_files),
        .root_seed = plan->options.root_seed,
        .worker = plan->options.worker,
        .worker_count = plan->options.worker_count,
        .replicas = plan->options.replicas,
        .columns = plan->element_spec.count,
        .has_packed = session->packed.columns != NULL,
    };

    memcpy(hello.stream, plan->stream->name, strnlen(plan->stream->name, sizeof hello.stream - 1));
    return hello;
}

static tundish_status
send_codecs(struct helper_line *line)
{
    const struct session *session = line->session;
    uint32_t columns = session->plan->element_spec.count;
    struct portable_bytes codecs = { 0 };
    tundish_status status;

    for (uint32_t i = 0; i < columns; i++)
        portable_add(&codecs, &session->fill.columns[i].codec, sizeof(struct tnd_codec));
    for (uint32_t i = 0; session->packed.columns != NULL && i < columns; i++)
        portable_add(&codecs, &session->packed.columns[i].codec, sizeof(struct tnd_codec));
    status = helper_send(&line->wire, &(struct iovec){ codecs.bytes, codecs.used }, 1);
    free(codecs.bytes);
    return status;
}

static tundish_status
take_reply(struct helper_line *line, uint32_t *ret_threads)
{
    struct helper_reply reply;
    char text[HELPER_TEXT_BYTES];
    tundish_status status;

    status = helper_receive(&line->wire, &(struct iovec){ &reply, sizeof reply }, 1);
    if (status == TUNDISH_OK && reply.status != TUNDISH_OK) {
        status = helper_line_take_sentence(line, reply.text_bytes, text);
        return status != TUNDISH_OK ? status : tnd_fail(TUNDISH_E_DATA, "it refuses: %s", text);
    }
    if (status == TUNDISH_OK && (reply.threads == 0 || reply.threads > HELPER_THREADS_MAX))
        status = tnd_fail(TUNDISH_E_CORRUPT, "it says that it makes %u parts at a time",
                          (unsigned)reply.threads);
    if (status == TUNDISH_OK)
        *ret_threads = reply.threads;
    return status;
}

/* Both prove that they know the key. */
static tundish_status
prove(struct helper_line *line, struct helper_nonces *nonces)
{
    struct helper_hello hello = hello_of(line->session);
    const struct iovec theirs = { nonces->helper, sizeof nonces->helper };
    const struct iovec own = { nonces->server, sizeof nonces->server };
    uint8_t proof[HELPER_PROOF_BYTES], expected[HELPER_PROOF_BYTES];
    tundish_status status;

    helper_prove(line->key, "server", (struct iovec[]){ theirs, own, { &hello, sizeof hello } }, 3,
                 proof);
    status = helper_send(
        &line->wire, (struct iovec[]){ own, { proof, sizeof proof }, { &hello, sizeof hello } }, 3);
    if (status == TUNDISH_OK)
        status = helper_receive(&line->wire, &(struct iovec){ proof, sizeof proof }, 1);
    helper_prove(line->key, "helper", (struct iovec[]){ own, theirs }, 2, expected);
    if (status == TUNDISH_OK && !helper_is_proof(proof, expected))
        status = tnd_fail(TUNDISH_E_CORRUPT, "it does not know this job's key");
    return status;
}

static tundish_status
introduce(struct helper_line *line, uint32_t *ret_threads)
{
    uint8_t greeting[HELPER_GREETING_BYTES];
    struct helper_nonces nonces;
    tundish_status status = helper_draw(nonces.server);

    if (status == TUNDISH_OK)
        status = helper_receive(&line->wire,
                                (struct iovec[]){ { greeting, sizeof greeting },
                                                  { nonces.helper, sizeof nonces.helper } },
                                2);
    if (status == TUNDISH_OK && memcmp(greeting, helper_greeting, sizeof greeting) != 0)
        status = tnd_fail(TUNDISH_E_CORRUPT, "it is not a helper of this version");
    if (status == TUNDISH_OK)
        status = prove(line, &nonces);
    if (status != TUNDISH_OK)
        return status;
    helper_wire_seal(&line->wire, line->key, &nonces, true);
    status = send_codecs(line);
    line->wire.deadline_ns = tnd_clock_deadline_ns(OPEN_NS);
    return status == TUNDISH_OK ? take_reply(line, ret_threads) : status;
}

tundish_status
helper_line_call(struct helper_line *line, const char *address, uint32_t *ret_threads)
{
    tundish_status status = connect_to(&line->wire, address);

    if (status == TUNDISH_OK)
        status = introduce(line, ret_threads);
    if (status != TUNDISH_OK)
        helper_line_hang_up(line);
    return status;
}
