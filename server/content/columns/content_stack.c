/* content_stack.c - tf.stack. */
#include "content/columns/joined.h"

static tundish_status
stack_open(void *state, const struct stage_config *config, struct schema *ret_schema,
           bool *ret_batch_wide)
{
    return joined_open(state, true, config, ret_schema, ret_batch_wide);
}

const struct content_ops content_stack = {
    .name = "stack",
    .state_bytes = sizeof(struct joined),
    .open = stack_open,
    .apply = joined_apply,
    .close = joined_close,
};
