/* content_concat.c - tf.concat. */
#include "content/columns/joined.h"

static tundish_status
concat_open(void *state, const struct stage_config *config, struct schema *ret_schema,
            bool *ret_batch_wide)
{
    return joined_open(state, false, config, ret_schema, ret_batch_wide);
}

const struct content_ops content_concat = {
    .name = "concat",
    .state_bytes = sizeof(struct joined),
    .open = concat_open,
    .apply = joined_apply,
    .close = joined_close,
};
