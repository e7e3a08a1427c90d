/* upstream.h - the origin of the rows before a node of the plan, as numbers to compare. */
#ifndef SOURCE_UPSTREAM_H
#define SOURCE_UPSTREAM_H

#include "plan/plan_node.h"

/* Stages and parameters up to `node`, its columns, the user's code and the statistics that stages
 * use, and the files that content stages look things up in, as they are now. Not the seeds that a
 * job draws, and nothing that leaves rows as they are. The same in each process. */
uint64_t upstream_fingerprint(const struct plan_node *node, const char *root);

/* The names that list_files' patterns match now; 0 if there are none. */
uint64_t upstream_listing(const struct plan_node *node, const char *root);

#endif
