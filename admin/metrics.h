/* metrics.h - all metrics in Prometheus' text format (0.0.4). */
#ifndef ADMIN_METRICS_H
#define ADMIN_METRICS_H

#include <stdio.h>

#include "watcher.h"

/* The watcher is locked. */
void metrics_write(const struct watcher *watcher, FILE *file);

#endif
