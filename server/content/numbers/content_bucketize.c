/* content_bucketize.c - tft.bucketize. */
#include "content/numbers/buckets.h"

static tundish_status
bucketize_open(void *state, const struct stage_config *config, struct schema *ret_schema,
               bool *ret_batch_wide)
{
    return buckets_open(state, false, config, ret_schema, ret_batch_wide);
}

const struct content_ops content_bucketize = {
    .name = "bucketize",
    .state_bytes = sizeof(struct buckets),
    .open = bucketize_open,
    .apply = buckets_apply,
    .close = buckets_close,
};
