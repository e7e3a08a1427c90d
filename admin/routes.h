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
    ROUTE_NOW,     /* worked out each time: cheap */
    ROUTE_CONTROL  /* changes something: POST, with a token */
};

struct route {
    const char *path;
    enum route_kind kind;
    const char *type; /* Content-Type */
    /* Writes the body and returns the HTTP status. The watcher is locked for METRICS and NOW. */
    unsigned (*answer)(const struct admin *admin, const struct route *route, FILE *body);
    int number; /* for `answer` */
};

/* NULL: the path is not served. */
const struct route *route_find(const char *path);

/* All of them, one after another; NULL after the last. */
const struct route *route_at(unsigned number);

#endif
