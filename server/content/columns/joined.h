/* joined.h - several columns become one: along a dimension (concat) or a new one (stack). Where one
 * of them is ragged, so is the result. */
#ifndef CONTENT_COLUMNS_JOINED_H
#define CONTENT_COLUMNS_JOINED_H

#include "content/content.h"

struct joined {
    bool is_new; /* stack */
    bool is_ragged;
    uint32_t axis; /* in the result */
    uint32_t count;
    uint32_t *inputs;
    uint32_t output;
};

/* joined_ragged.c: the same where joined->is_ragged. `result` has its rank already. */
tundish_status joined_ragged_describe(const struct joined *joined,
                                      const struct stage_config *config,
                                      struct column_spec *result);
void joined_ragged_apply(const struct joined *joined, const struct frame *input,
                         struct frame *output);

#endif
