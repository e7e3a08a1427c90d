/* shard_edges.h - where auto_shard: FILE puts its shards, as TensorFlow finds it out
 * (core/grappler/optimizers/data/auto_shard.cc). */
#ifndef PLAN_SHARD_EDGES_H
#define PLAN_SHARD_EDGES_H

#include "plan/build.h"

/* Where a shard goes: before the reader. */
struct edge {
    struct plan_node *reader;
    bool deals_elements; /* what a function yields, rather than the files it is to read */
};

struct edges {
    struct edge *list; /* the caller frees it */
    uint32_t count;
};

/* Every edge where a shard must go so that files are dealt. False, and none: some data does not
 * depend on a list of files. */
bool shard_edges_find(struct plan_node *root, struct edges *ret_edges);

#endif
