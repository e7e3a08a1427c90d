/* rebatch.h - batches cut for replicas, as TensorFlow rebatches for a strategy. */
#ifndef PLAN_REBATCH_H
#define PLAN_REBATCH_H

#include "plan/build.h"

/* Set the plan's global_batch (rows; -1: it does not follow from the stages), rule and rule_reason.
 * The policy must be known. */
void rebatch_resolve_rule(struct plan *plan);

/* Put the node that cuts batches at the end of the graph. TUNDISH_E_PIPELINE: there are no batches
 * to cut, or a column cannot be cut. */
tundish_status rebatch_insert(struct plan_builder *builder);

/* Is there a stage whose elements are batches, or may be? */
bool rebatch_has_batches(const struct plan_node *node);

#endif
