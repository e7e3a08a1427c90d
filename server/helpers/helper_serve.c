/* helper_serve.c - a thread for each connection; as many make parts at a time as there are
 * processors. */
#include "helpers/helper_serve.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/log.h"
#include "core/memory.h"
#include "helpers/helper_serve_private.h"

/* So few strangers that they take no place from those who have the key. */
enum { CONNECTIONS_MAX = 4096, STRANGERS_MAX = 256, LOOK_MS = 50, BACKLOG = 1024 };

/* For a caller to prove that it has the key. */
static const int64_t PROOF_NS = 10000000000;

/* Anybody can call: a line for each would fill a disk. */
static const int64_t TELL_NS = 10000000000;

/* The hello of a caller that has proved that it has the key. */
static tundish_status
prove(struct helper_connection *connection, struct helper_nonces *nonces,
      struct helper_hello *ret_hello)
{
    const struct iovec own = { nonces->helper, sizeof nonces->helper };
    const struct iovec theirs = { nonces->server, sizeof nonces->server };
    const struct iovec hello = { ret_hello, sizeof *ret_hello };
    uint8_t told[HELPER_PROOF_BYTES], proof[HELPER_PROOF_BYTES];
    tundish_status status = helper_draw(nonces->helper);

    if (status == TUNDISH_OK)
        status = helper_send(
            &connection->wire,
            (struct iovec[]){ { (void *)(uintptr_t)helper_greeting, HELPER_GREETING_BYTES }, own },
            2);
    if (status == TUNDISH_OK)
        status = helper_receive(&connection->wire,
                                (struct iovec[]){ theirs, { told, sizeof told }, hello }, 3);
    if (status != TUNDISH_OK)
        return status;
    helper_prove(connection->server->key, "server", (struct iovec[]){ own, theirs, hello }, 3,
                 proof);
    if (!helper_is_proof(proof, told))
        return tnd_fail(TUNDISH_E_CORRUPT, "a caller does not know this job's key");
    helper_prove(connection->server->key, "helper", (struct iovec[]){ theirs, own }, 2, proof);
    return helper_send(&connection->wire, &(struct iovec){ proof, sizeof proof }, 1);
}

/* It with its codecs. No memory is taken before the proof. */
static tundish_status
hear_hello(struct helper_connection *connection, struct portable_bytes *ret_hello)
{
    struct helper_nonces nonces;
    struct helper_hello hello;
    tundish_status status = prove(connection, &nonces, &hello);
    uint64_t codecs;

    if (status != TUNDISH_OK)
        return status;
    helper_wire_seal(&connection->wire, connection->server->key, &nonces, false);
    if (hello.columns > HELPER_COLUMNS_MAX || hello.has_packed > 1 ||
        memchr(hello.stream, '\0', sizeof hello.stream) == NULL)
        return helper_makes_no_sense();
    codecs = (1 + hello.has_packed) * hello.columns * sizeof(struct tnd_codec);
    portable_add(ret_hello, &hello, sizeof hello);
    ret_hello->bytes = tnd_realloc(ret_hello->bytes, sizeof hello + codecs, 1);
    ret_hello->used = ret_hello->room = sizeof hello + codecs;
    return helper_receive(&connection->wire,
                          &(struct iovec){ ret_hello->bytes + sizeof hello, codecs }, 1);
}

static void
is_known(struct helper_connection *connection)
{
    pthread_mutex_lock(&connection->server->lock);
    connection->server->strangers -= connection->is_stranger;
    connection->is_stranger = false;
    pthread_mutex_unlock(&connection->server->lock);
}

static tundish_status
welcome(struct helper_connection *connection)
{
    struct helper_server *server = connection->server;
    struct helper_reply reply = { .threads = server->options.thread_count };
    struct portable_bytes hello = { 0 };
    const char *text = "";
    tundish_status status, sent;

    connection->wire.deadline_ns = tnd_clock_deadline_ns(PROOF_NS);
    status = hear_hello(connection, &hello);
    if (status != TUNDISH_OK) {
        free(hello.bytes);
        return status;
    }
    is_known(connection);
    status = helper_enter_stream(connection, (struct byte_view){ hello.bytes, hello.used });
    free(hello.bytes);
    if (status != TUNDISH_OK)
        text = tnd_error_text();
    reply.status = status;
    reply.text_bytes = (uint32_t)strnlen(text, HELPER_TEXT_BYTES - 1);
    connection->wire.deadline_ns = tnd_clock_deadline_ns(PROOF_NS);
    sent = helper_send(&connection->wire, &(struct iovec){ &reply, sizeof reply }, 1);
    if (sent == TUNDISH_OK && status != TUNDISH_OK)
        sent = helper_send(&connection->wire,
                           &(struct iovec){ (void *)(uintptr_t)text, reply.text_bytes }, 1);
    return status != TUNDISH_OK ? status : sent;
}

static void
close_connection(struct helper_connection *connection)
{
    struct helper_server *server = connection->server;

    helper_wire_close(&connection->wire);
    helper_leave_stream(connection);
    pthread_mutex_lock(&server->lock);
    server->strangers -= connection->is_stranger;
    server->connections--;
    pthread_cond_signal(&server->ended);
    pthread_mutex_unlock(&server->lock);
    free(connection);
}

/* Why a call came to nothing, or a connection was cut: the thread's error text. */
static void
tell(struct helper_server *server, const char *what)
{
    int64_t now_ns = tnd_clock_ns();
    char others[64] = "";
    bool is_told;

    pthread_mutex_lock(&server->lock);
    is_told = server->told_ns == 0 || now_ns - server->told_ns >= TELL_NS;
    if (is_told && server->untold > 0)
        snprintf(others, sizeof others, " (and %llu more since the last such line)",
                 (unsigned long long)server->untold);
    server->untold = is_told ? 0 : server->untold + 1;
    if (is_told)
        server->told_ns = now_ns;
    pthread_mutex_unlock(&server->lock);
    if (is_told)
        tnd_log(TND_LOG_WARNING, "helper", "%s: %s%s", what, tnd_error_text(), others);
}

static void *
run_connection(void *argument)
{
    struct helper_connection *connection = argument;
    tundish_status status = welcome(connection);

    if (status != TUNDISH_OK && connection->is_stranger)
        tell(connection->server, "a stranger's call came to nothing");
    else if (status != TUNDISH_OK)
        tnd_log(TND_LOG_WARNING, "helper", "a server's call came to nothing: %s", tnd_error_text());
    while (status == TUNDISH_OK)
        if ((status = helper_answer_one(connection)) == TUNDISH_E_CORRUPT)
            tell(connection->server, "a server's connection was cut");
    close_connection(connection);
    return NULL;
}

static void
let_in(struct helper_server *server, int accepted)
{
    struct helper_connection *connection;
    pthread_attr_t attributes;
    pthread_t thread;
    bool is_full;
    int error;

    pthread_mutex_lock(&server->lock);
    is_full = server->connections == CONNECTIONS_MAX || server->strangers == STRANGERS_MAX;
    server->connections += !is_full;
    server->strangers += !is_full;
    pthread_mutex_unlock(&server->lock);
    if (is_full) {
        close(accepted);
        return;
    }
    helper_wire_ready(accepted);
    connection = tnd_zalloc(1, sizeof *connection);
    connection->server = server;
    connection->is_stranger = true;
    connection->wire = (struct helper_wire){ .socket = accepted, .stop = server->options.stop };
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    error = pthread_create(&thread, &attributes, run_connection, connection);
    pthread_attr_destroy(&attributes);
    if (error != 0)
        close_connection(connection);
}

static void *
accept_all(void *argument)
{
    struct helper_server *server = argument;
    struct pollfd listening = { .fd = server->socket, .events = POLLIN };

    while (atomic_load(server->options.stop) == 0) {
        int accepted;

        if (poll(&listening, 1, LOOK_MS) <= 0)
            continue;
        accepted = accept4(server->socket, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (accepted >= 0)
            let_in(server, accepted);
        else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
            (void)poll(NULL, 0, LOOK_MS); /* the caller waits, so it would be asked at once */
    }
    return NULL;
}

static tundish_status
listen_at(const struct addrinfo *address, int *ret_socket)
{
    static const int on = 1;
    int listening = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (listening < 0)
        return tnd_fail_errno(errno, "cannot open a socket");
    (void)setsockopt(listening, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(listening, address->ai_addr, address->ai_addrlen) != 0 ||
        listen(listening, BACKLOG) != 0) {
        tundish_status status = tnd_fail_errno(errno, "cannot listen");

        close(listening);
        return status;
    }
    *ret_socket = listening;
    return TUNDISH_OK;
}

static tundish_status
open_socket(struct helper_server *server)
{
    struct sockaddr_storage own;
    socklen_t size = sizeof own;
    struct addrinfo *found;
    tundish_status status = helper_address(server->options.listen, true, &found);

    if (status != TUNDISH_OK)
        return status;
    status = TUNDISH_E_SYSTEM;
    for (const struct addrinfo *one = found; one != NULL && status != TUNDISH_OK;
         one = one->ai_next)
        status = listen_at(one, &server->socket);
    freeaddrinfo(found);
    if (status != TUNDISH_OK)
        return tnd_fail_while(status, "%s", server->options.listen);
    if (getsockname(server->socket, (struct sockaddr *)&own, &size) != 0)
        return tnd_fail_errno(errno, "%s", server->options.listen);
    server->port = ntohs(own.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&own)->sin6_port
                                                   : ((struct sockaddr_in *)&own)->sin_port);
    return TUNDISH_OK;
}

tundish_status
helper_server_open(const struct helper_server_options *options, struct helper_server **ret_server)
{
    struct helper_server *server = tnd_zalloc(1, sizeof *server);
    tundish_status status;

    server->options = *options;
    server->socket = -1;
    pthread_mutex_init(&server->lock, NULL);
    pthread_cond_init(&server->ended, NULL);
    sem_init(&server->turns, 0, options->thread_count);
    status = helper_key(&server->key);
    if (status == TUNDISH_OK)
        status = open_socket(server);
    if (status == TUNDISH_OK) {
        int error = pthread_create(&server->thread, NULL, accept_all, server);

        server->started = error == 0;
        if (error != 0)
            status = tnd_fail_errno(error, "cannot start a thread");
    }
    if (status != TUNDISH_OK) {
        helper_server_close(server);
        return status;
    }
    *ret_server = server;
    return TUNDISH_OK;
}

uint32_t
helper_server_port(const struct helper_server *server)
{
    return server->port;
}

void
helper_server_close(struct helper_server *server)
{
    if (server == NULL)
        return;
    if (server->started)
        pthread_join(server->thread, NULL);
    pthread_mutex_lock(&server->lock);
    while (server->connections > 0)
        pthread_cond_wait(&server->ended, &server->lock);
    pthread_mutex_unlock(&server->lock);
    if (server->socket >= 0)
        close(server->socket);
    sem_destroy(&server->turns);
    pthread_cond_destroy(&server->ended);
    pthread_mutex_destroy(&server->lock);
    free(server);
}
