/* metrics.h - all metrics in Prometheus' text format (0.0.4). */
#ifndef ADMIN_METRICS_H
#define ADMIN_METRICS_H

#include <stdio.h>

#include "watcher.h"

/* The watcher is locked. */
void metrics_write(const struct watcher *watcher, FILE *file);

/* metrics_large.c: the nodes of a job that is too large to tell all: every node's figures that
 * alerts ask for, and the trainers that matter most. Returns how many sets of the nodes are not
 * told. */
uint64_t metrics_large_write(const struct watcher *watcher, FILE *file);

#endif
