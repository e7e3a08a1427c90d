/* metrics_large.h - what /metrics tells of the nodes of a job that is too large to tell all. */
#ifndef ADMIN_METRICS_LARGE_H
#define ADMIN_METRICS_LARGE_H

#include <stdio.h>

#include "watcher.h"

/* Of every node the figures that alerts ask for, and of the trainers those that matter most.
 * Returns how many sets of the nodes are not told. */
uint64_t metrics_large_write(const struct watcher *watcher, FILE *file);

#endif
