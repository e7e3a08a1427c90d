/* place_code.h - code of the user's own in a plan, and what a place keeps of it.
 *
 * Rows are made again with the present code, so a place stays good when the code changes. But if
 * the order of rows depends on the code's results, places from before and after the change stand
 * for different rows: then the code counts as a file does.
 */
#ifndef SESSION_CHECKPOINT_PLACE_CODE_H
#define SESSION_CHECKPOINT_PLACE_CODE_H

#include "plan/plan.h"

/* The hash of a stage's code (content_ops.code_hash); 0: it has none. */
uint64_t place_code_of(const struct plan_node *node);

/* The same of all stages; 0: there is no such code. */
uint64_t place_code(const struct plan *plan);

/* Does a stage look at content that comes from `node`, to decide the order? */
bool place_code_decides(const struct plan_graph *graph, const struct plan_node *node);

/* Their names, for people; the caller frees. */
char *place_code_names(const struct plan *plan);

#endif
