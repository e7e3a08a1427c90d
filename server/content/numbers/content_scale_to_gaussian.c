/* content_scale_to_gaussian.c - tft.scale_to_gaussian. */
#include "content/numbers/scale.h"

static tundish_status
scale_to_gaussian_open(void *state, const struct stage_config *config, struct schema *ret_schema,
                       bool *ret_batch_wide)
{
    return scale_open(state, SCALE_GAUSSIAN, false, config, ret_schema, ret_batch_wide);
}

const struct content_ops content_scale_to_gaussian = {
    .name = "scale_to_gaussian",
    .state_bytes = sizeof(struct scale),
    .open = scale_to_gaussian_open,
    .apply = scale_apply,
    .close = scale_close,
};
