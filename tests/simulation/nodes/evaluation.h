/* evaluation.h - readers of an evaluation on all nodes, which rank 0 gives shards.
 *
 * The tracker and the way to it are the server's (session/evaluation); reading a shard is a pause.
 */
#ifndef SIMULATION_EVALUATION_H
#define SIMULATION_EVALUATION_H

#include <stddef.h>

#include "link/link.h"

struct evaluation;

struct evaluation *evaluation_open(uint32_t nodes);
void evaluation_close(struct evaluation *evaluation);

/* A node's part, in a fiber of its: it reads shards until two epochs are over. */
void evaluation_join(struct evaluation *evaluation, struct link *link);
tundish_status evaluation_run(struct evaluation *evaluation, struct link *link,
                              const _Atomic int *stop);
void evaluation_leave(struct evaluation *evaluation, uint32_t rank); /* after link_leave */

/* Every shard of each epoch was read, and none by two nodes that live. What is wrong is said in
 * ret_text. */
void evaluation_judge(const struct evaluation *evaluation, char *ret_text, size_t text_bytes);

#endif
