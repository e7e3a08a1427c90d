/* bad_server.c - see bad_server.h. */
#include "bad_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/memory.h"
#include "driven_curl.h"

enum { REQUESTS_MAX = 128, HELD_MAX = 16, TEXT_BYTES_MAX = 4096 };

struct bad_server {
    bad_answer *answer;
    const void *context;
    int listener;
    uint16_t port;
    pthread_t thread;

    /* The thread's own. */
    int connection;
    bool is_held;
    int held[HELD_MAX];
    uint32_t held_count;

    pthread_mutex_t lock; /* of the requests */
    struct bad_request requests[REQUESTS_MAX];
    uint32_t count;
};

/* Up to the blank line. False: the client left. */
static bool
read_head(int connection, char *head, size_t room)
{
    size_t used = 0;

    for (head[0] = '\0'; strstr(head, "\r\n\r\n") == NULL; head[used] = '\0') {
        ssize_t got = recv(connection, head + used, room - 1 - used, 0);

        if (got <= 0 && !(got < 0 && errno == EINTR))
            return false;
        used += got > 0 ? (size_t)got : 0;
    }
    return true;
}

static void
take_request(struct bad_server *server)
{
    struct bad_request request = { .at_ns = tnd_clock_ns(), .last = UINT64_MAX };
    const char *range;

    if (!read_head(server->connection, request.head, sizeof request.head))
        return;
    range = strstr(request.head, "\r\nRange: bytes=");
    if (range != NULL) {
        char *end;

        request.first = strtoull(range + strlen("\r\nRange: bytes="), &end, 10);
        request.last = strtoull(end + 1, NULL, 10);
    }
    pthread_mutex_lock(&server->lock);
    request.number = server->count;
    if (server->count < REQUESTS_MAX)
        server->requests[server->count] = request;
    server->count++;
    pthread_mutex_unlock(&server->lock);
    server->answer(server, &request, server->context);
}

static void *
run(void *context)
{
    struct bad_server *server = context;

    while ((server->connection = accept4(server->listener, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
        server->is_held = false;
        take_request(server);
        if (server->is_held)
            server->held[server->held_count++ % HELD_MAX] = server->connection;
        else if (server->connection >= 0)
            close(server->connection);
    }
    return NULL;
}

void
bad_server_open(bad_answer *answer, const void *context, struct bad_server **ret_server)
{
    struct bad_server *server = tnd_zalloc(1, sizeof *server);
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t bytes = sizeof address;

    server->answer = answer;
    server->context = context;
    pthread_mutex_init(&server->lock, NULL);
    server->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    tnd_must_have(bind(server->listener, (struct sockaddr *)&address, bytes) == 0);
    tnd_must_have(listen(server->listener, 16) == 0);
    tnd_must_have(getsockname(server->listener, (struct sockaddr *)&address, &bytes) == 0);
    server->port = ntohs(address.sin_port);
    tnd_must_have(pthread_create(&server->thread, NULL, run, server) == 0);
    *ret_server = server;
}

void
bad_server_close(struct bad_server *server)
{
    if (server == NULL)
        return;
    shutdown(server->listener, SHUT_RDWR);
    pthread_join(server->thread, NULL);
    for (uint32_t i = 0; i < server->held_count && i < HELD_MAX; i++)
        close(server->held[i]);
    close(server->listener);
    pthread_mutex_destroy(&server->lock);
    free(server);
}

uint16_t
bad_server_port(const struct bad_server *server)
{
    return server->port;
}

uint32_t
bad_server_count(struct bad_server *server)
{
    uint32_t count;

    pthread_mutex_lock(&server->lock);
    count = server->count;
    pthread_mutex_unlock(&server->lock);
    return count;
}

struct bad_request
bad_server_request(struct bad_server *server, uint32_t number)
{
    struct bad_request request;

    tnd_must_have(number < REQUESTS_MAX);
    pthread_mutex_lock(&server->lock);
    request = server->requests[number];
    pthread_mutex_unlock(&server->lock);
    return request;
}

bool
bad_send(struct bad_server *server, const void *bytes, size_t count)
{
    for (size_t done = 0; done < count;) {
        ssize_t put =
            send(server->connection, (const char *)bytes + done, count - done, MSG_NOSIGNAL);

        if (put < 0 && errno != EINTR)
            return false;
        done += put > 0 ? (size_t)put : 0;
    }
    return true;
}

bool
bad_say(struct bad_server *server, const char *format, ...)
{
    char text[TEXT_BYTES_MAX];
    va_list values;
    int bytes;

    va_start(values, format);
    bytes = vsnprintf(text, sizeof text, format, values);
    va_end(values);
    tnd_must_have(bytes >= 0 && (size_t)bytes < sizeof text);
    return bad_send(server, text, (size_t)bytes);
}

void
bad_reset(struct bad_server *server)
{
    const struct linger now = { .l_onoff = 1 };

    setsockopt(server->connection, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    close(server->connection);
    server->connection = -1;
}

void
bad_hold(struct bad_server *server)
{
    server->is_held = true;
    driven_curl_hold();
}
