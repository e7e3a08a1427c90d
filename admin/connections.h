/* connections.h - keep slow clients from using up all connections.
 *
 * The number of connections is limited. A client that sends its request a byte now and then, or
 * reads its answer as slowly, keeps one for as long as it likes. So before the limit is reached,
 * each new connection closes the one whose request has been unfinished for longest: an honest
 * request takes milliseconds. Only the thread that serves HTTP calls these functions.
 */
#ifndef ADMIN_CONNECTIONS_H
#define ADMIN_CONNECTIONS_H

#include <stddef.h>
#include <stdint.h>

enum { CONNECTIONS_MAX = 128, CONNECTIONS_COMFORTABLE = 96 };

struct http_connection {
    int socket;
    uint64_t turn; /* when its unfinished request began, in turns of `connections` */
};

struct connections {
    uint64_t turn;
    size_t count;
    struct http_connection *all[CONNECTIONS_MAX];
};

/* Watch a new connection. NULL: no memory or no room; then it is not watched. */
struct http_connection *connections_add(struct connections *connections, int socket);

/* It has been answered, and may ask again. Both accept NULL. */
void connections_answered(struct connections *connections, struct http_connection *connection);
void connections_remove(struct connections *connections, struct http_connection *connection);

#endif
