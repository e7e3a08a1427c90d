/* expression_context.h - $per_replica_batch_size(G), the one variable that takes an argument. */
#ifndef CONTENT_EXPRESSION_EXPRESSION_CONTEXT_H
#define CONTENT_EXPRESSION_EXPRESSION_CONTEXT_H

#include "content/expression/expression.h"

/* The text with numbers instead of the variable, blanks keeping everything else where it was;
 * unchanged where config->literals do not say how many replicas there are. The caller frees. */
tundish_status expression_fill_in(const struct expression_config *config, char **ret_text);

#endif
