/* content_scale_by_min_max.c - tft.scale_by_min_max. */
#include "content/numbers/scale.h"

static tundish_status
scale_by_min_max_open(void *state, const struct stage_config *config, struct schema *ret_schema,
                      bool *ret_batch_wide)
{
    return scale_open(state, SCALE_MIN_MAX, false, config, ret_schema, ret_batch_wide);
}

const struct content_ops content_scale_by_min_max = {
    .name = "scale_by_min_max",
    .state_bytes = sizeof(struct scale),
    .open = scale_by_min_max_open,
    .apply = scale_apply,
    .close = scale_close,
};
