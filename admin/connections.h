/* connections.h - no slow client keeps others out.
 *
 * There is room for so many connections. A client that sends its request a byte now and then, or
 * takes its answer as slowly, keeps one for as long as it likes. So before the room is full, each
 * new connection ends the one whose request has been unfinished for longest: an honest one takes
 * milliseconds. The thread that serves HTTP alone calls.
 */
#ifndef ADMIN_CONNECTIONS_H
#define ADMIN_CONNECTIONS_H

#include <stddef.h>
#include <stdint.h>

enum { CONNECTIONS_MAX = 128, CONNECTIONS_COMFORTABLE = 96 };

struct connection {
    int socket;
    uint64_t turn; /* when its unfinished request began, in turns of `connections` */
};

struct connections {
    uint64_t turn;
    size_t count;
    struct connection *all[CONNECTIONS_MAX];
};

/* A connection has come. NULL: there is no memory, or no room; it is not watched then. */
struct connection *connections_add(struct connections *connections, int socket);

/* It has been answered, and may ask again. Both accept NULL. */
void connections_answered(struct connections *connections, struct connection *connection);
void connections_remove(struct connections *connections, struct connection *connection);

#endif
