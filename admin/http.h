/* http.h - the admin's listener: requests in, guarded, routed, answered.
 *
 * One thread of libmicrohttpd serves all. Connections, header and body sizes and idle time are
 * limited. Answers that are the same for all clients are rendered once a second at most.
 */
#ifndef ADMIN_HTTP_H
#define ADMIN_HTTP_H

#include <sys/socket.h>

#include "admin.h"

struct http;

/* Bind and listen; nothing is accepted yet. Port 0: any, and *ret_port is the one. */
tundish_status http_listen(const struct sockaddr_storage *address, int *ret_socket,
                           uint16_t *ret_port);

struct http_options {
    int socket;                    /* from http_listen; taken, also on failure */
    const char *certificate, *key; /* PEM texts, or NULL: no TLS */
};

/* Answer from now on. `admin` stays the caller's and does not change until http_close. */
tundish_status http_open(const struct http_options *options, const struct admin *admin,
                         struct http **ret_http);
void http_close(struct http *http); /* accepts NULL */

#endif
