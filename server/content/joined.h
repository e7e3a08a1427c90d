/* joined.h - several dense columns become one: along a dimension (concat) or a new one (stack). */
#ifndef CONTENT_JOINED_H
#define CONTENT_JOINED_H

#include "content/content.h"

struct joined {
    bool is_new;   /* stack */
    uint32_t axis; /* in the result */
    uint32_t count;
    uint32_t *inputs;
    uint32_t output;
};

tundish_status joined_open(struct joined *joined, bool is_new, const struct content_config *config,
                           struct schema *ret_schema, bool *ret_batch_wide);
tundish_status joined_apply(const void *state, const struct frame *input, struct frame *output);
void joined_close(void *state);

#endif
