/* content_scale_to_z_score_per_key.c - tft.scale_to_z_score_per_key. */
#include "content/numbers/scale.h"

static tundish_status
scale_to_z_score_per_key_open(void *state, const struct stage_config *config,
                              struct schema *ret_schema, bool *ret_batch_wide)
{
    return scale_open(state, SCALE_Z_SCORE, true, config, ret_schema, ret_batch_wide);
}

const struct content_ops content_scale_to_z_score_per_key = {
    .name = "scale_to_z_score_per_key",
    .state_bytes = sizeof(struct scale),
    .open = scale_to_z_score_per_key_open,
    .apply = scale_apply,
    .close = scale_close,
};
