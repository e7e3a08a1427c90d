/* content_scale_to_0_1.c - tft.scale_to_0_1. */
#include "content/numbers/scale.h"

static tundish_status
scale_to_0_1_open(void *state, const struct stage_config *config, struct schema *ret_schema,
                  bool *ret_batch_wide)
{
    return scale_open(state, SCALE_0_1, false, config, ret_schema, ret_batch_wide);
}

const struct content_ops content_scale_to_0_1 = {
    .name = "scale_to_0_1",
    .state_bytes = sizeof(struct scale),
    .open = scale_to_0_1_open,
    .apply = scale_apply,
    .close = scale_close,
};
