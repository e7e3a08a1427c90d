/* metrics_family.h - the lines of one metric, in Prometheus' text format (0.0.4). */
#ifndef ADMIN_METRICS_FAMILY_H
#define ADMIN_METRICS_FAMILY_H

#include <stdio.h>

#include "watch/snapshot.h"
#include "watcher.h"

struct metrics_family {
    const struct tnd_stats_field *field;
    char name[128];
    FILE *file;
};

/* HELP and TYPE of tundish_SCOPE KIND_FIELD. The help ends with `note`. */
void metrics_family_begin(const char *scope, const struct tnd_stats_kind_entry *kind,
                          uint32_t field, const char *note, struct metrics_family *family,
                          FILE *file);

/* A node's labels as they stand in a line, or "". */
enum { METRICS_NODE_BYTES = 128 };
void metrics_node_labels(const struct watcher_node *node, char text[METRICS_NODE_BYTES]);

/* A value, or a histogram if that is given, under the node's and the set's labels. */
void metrics_family_write(const struct metrics_family *family, const char *node, const char *labels,
                          uint64_t value, const struct watch_histogram *histogram);

/* The field of a node's set. */
void metrics_family_write_set(const struct metrics_family *family, const struct watcher_node *node,
                              const struct watch_set *set);

#endif
