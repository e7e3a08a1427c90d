/* connections.c - close the connection whose request has been unfinished for longest. */
#include "connections.h"

#include <stdlib.h>
#include <sys/socket.h>

/* Only shut the socket down: the library owns it, sees the end of the stream, and closes it. */
static void
end_oldest(const struct connections *connections)
{
    const struct http_connection *oldest = connections->all[0];

    for (size_t i = 1; i < connections->count; i++)
        if (connections->all[i]->turn < oldest->turn)
            oldest = connections->all[i];
    shutdown(oldest->socket, SHUT_RDWR);
}

struct http_connection *
connections_add(struct connections *connections, int socket)
{
    struct http_connection *connection;

    /* The oldest goes before the limit is reached, so that a new connection is always accepted. */
    if (connections->count >= CONNECTIONS_COMFORTABLE)
        end_oldest(connections);
    if (connections->count == CONNECTIONS_MAX || (connection = malloc(sizeof *connection)) == NULL)
        return NULL;
    *connection = (struct http_connection){ .socket = socket, .turn = ++connections->turn };
    connections->all[connections->count++] = connection;
    return connection;
}

void
connections_answered(struct connections *connections, struct http_connection *connection)
{
    if (connection != NULL)
        connection->turn = ++connections->turn;
}

void
connections_remove(struct connections *connections, struct http_connection *connection)
{
    for (size_t i = 0; i < connections->count; i++)
        if (connections->all[i] == connection) {
            /* The order does not matter: turns say which is oldest. */
            connections->all[i] = connections->all[--connections->count];
            break;
        }
    free(connection);
}
