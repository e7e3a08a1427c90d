/* content_string_to_hash_bucket_fast.c - tf.strings.to_hash_bucket_fast. */
#include "content/text/text_buckets.h"

static tundish_status
string_to_hash_bucket_fast_open(void *state, const struct stage_config *config,
                                struct schema *ret_schema, bool *ret_batch_wide)
{
    return text_buckets_open(state, config, (uint64_t)spec_int(config->stage, "num_buckets"),
                             ret_schema, ret_batch_wide);
}

const struct content_ops content_string_to_hash_bucket_fast = {
    .name = "string_to_hash_bucket_fast",
    .takes_missing = true,
    .state_bytes = sizeof(struct text_buckets),
    .open = string_to_hash_bucket_fast_open,
    .takes_words = content_takes_words,
    .apply = text_buckets_apply,
    .close = text_buckets_close,
};
