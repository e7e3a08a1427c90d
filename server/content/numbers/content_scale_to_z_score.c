/* content_scale_to_z_score.c - tft.scale_to_z_score. */
#include "content/numbers/scale.h"

static tundish_status
scale_to_z_score_open(void *state, const struct stage_config *config, struct schema *ret_schema,
                      bool *ret_batch_wide)
{
    return scale_open(state, SCALE_Z_SCORE, false, config, ret_schema, ret_batch_wide);
}

const struct content_ops content_scale_to_z_score = {
    .name = "scale_to_z_score",
    .state_bytes = sizeof(struct scale),
    .open = scale_to_z_score_open,
    .apply = scale_apply,
    .close = scale_close,
};
