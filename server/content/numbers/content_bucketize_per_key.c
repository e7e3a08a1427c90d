/* content_bucketize_per_key.c - tft.bucketize_per_key. */
#include "content/numbers/buckets.h"

static tundish_status
bucketize_per_key_open(void *state, const struct stage_config *config, struct schema *ret_schema,
                       bool *ret_batch_wide)
{
    return buckets_open(state, true, config, ret_schema, ret_batch_wide);
}

const struct content_ops content_bucketize_per_key = {
    .name = "bucketize_per_key",
    .state_bytes = sizeof(struct buckets),
    .open = bucketize_per_key_open,
    .apply = buckets_apply,
    .close = buckets_close,
};
