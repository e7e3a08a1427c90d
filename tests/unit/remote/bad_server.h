/* bad_server.h - a server of HTTP in the test's own process, which does wrong as it is told.
 *
 * One thread takes one request of each connection, after the other, and calls the test's function
 * to answer it. Requests are kept, with the test's time at which they came.
 */
#ifndef UNIT_BAD_SERVER_H
#define UNIT_BAD_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bad_server;

struct bad_request {
    uint32_t number; /* 0, 1, ... */
    int64_t at_ns;
    uint64_t first, last; /* of the range that is asked for; 0 and UINT64_MAX: none is */
    char head[4096];      /* request line and headers */
};

/* On the server's thread. The connection is closed when it returns. */
typedef void bad_answer(struct bad_server *server, const struct bad_request *request,
                        const void *context);

void bad_server_open(bad_answer *answer, const void *context, struct bad_server **ret_server);
void bad_server_close(struct bad_server *server); /* accepts NULL */

uint16_t bad_server_port(const struct bad_server *server);

/* How many requests have come, and one of them. */
uint32_t bad_server_count(struct bad_server *server);
struct bad_request bad_server_request(struct bad_server *server, uint32_t number);

/* For answers. All that is said after the client has left is dropped; false: it has. */
bool bad_say(struct bad_server *server, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
bool bad_send(struct bad_server *server, const void *bytes, size_t count);

/* The connection ends with a reset, not in good order. */
void bad_reset(struct bad_server *server);

/* The connection stays open, without another byte; for the client, time goes on. */
void bad_hold(struct bad_server *server);

#endif
