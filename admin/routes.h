/* routes.h - the table of all paths that are served. Other paths are refused, and no file name is
 * ever built from a request.
 */
#ifndef ADMIN_ROUTES_H
#define ADMIN_ROUTES_H

#include <stdio.h>

#include "admin.h"

enum route_kind {
    ROUTE_PAGE,    /* the page and its files: they do not change */
    ROUTE_METRICS, /* the same for everyone until the watcher looks again */
    ROUTE_NODE,    /* the same of one node, whose rank ends the path */
    ROUTE_NOW,     /* worked out each time: cheap */
    ROUTE_CONTROL  /* changes something: POST, with a token */
};

struct route {
    const char *path;
    enum route_kind kind;
    const char *type; /* Content-Type */
    /* Writes the body and returns the HTTP status. The watcher is locked for METRICS, NODE and
     * NOW. */
    unsigned (*answer)(const struct admin *admin, const struct route *route, FILE *body);
    int number; /* for `answer`; of a NODE its rank, in a copy of the row */
};

/* NULL: the path is not served. The rank at its end, or 0. */
const struct route *route_find(const char *path, int *ret_rank);

/* All of them, one after another; NULL after the last. */
const struct route *route_at(unsigned number);

#endif
