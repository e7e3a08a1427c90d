/* content_string_to_hash_bucket_strong.c - tf.strings.to_hash_bucket_strong. */
#include "content/text/text_buckets.h"

static tundish_status
read_parameters(void *state, const struct stage_config *config)
{
    struct text_buckets *stage = state;

    stage->count = (uint64_t)spec_int(config->stage, "num_buckets");
    return text_buckets_read_key(stage, config);
}

static const struct column_wise_ops columns = {
    .read = read_parameters,
    .describe = text_buckets_describe,
    .map = text_buckets_map,
};

const struct content_ops content_string_to_hash_bucket_strong = {
    .name = "string_to_hash_bucket_strong",
    .takes_missing = true,
    .state_bytes = sizeof(struct text_buckets),
    .columns = &columns,
    .open = column_wise_open,
    .takes_words = text_buckets_takes_words,
    .apply = column_wise_apply,
    .close = column_wise_close,
};
