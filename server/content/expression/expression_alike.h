/* expression_alike.h - several columns computed alike: where elements are few, one run for all of
 * them costs hardly more than one for each. */
#ifndef CONTENT_EXPRESSION_EXPRESSION_ALIKE_H
#define CONTENT_EXPRESSION_EXPRESSION_ALIKE_H

#include "content/expression/expression.h"

/* Expressions that do the same, value by value, with a column of their own. */
struct expression_alike {
    uint32_t count;
    const struct expression **list; /* the caller's */
    uint32_t *inputs, *outputs;     /* columns of each */
};

/* Add an expression that makes column `output`. False: it is not like those that are there. */
bool expression_alike_add(struct expression_alike *alike, const struct expression *expression,
                          uint32_t output);
void expression_alike_close(struct expression_alike *alike);

/* expression_apply for all of them. */
void expression_alike_apply(const struct expression_alike *alike, const struct frame *input,
                            struct frame *output);

#endif
