/* admin.h - the state that all parts of tundish-admin share. It is set at start and only read
 * later. */
#ifndef ADMIN_ADMIN_H
#define ADMIN_ADMIN_H

#include "guard.h"
#include "watcher.h"

struct admin {
    char socket_path[128];
    struct guard guard;
    struct watcher *watcher;
    const char *chart_path; /* the chart library that the distribution ships */
};

#endif
