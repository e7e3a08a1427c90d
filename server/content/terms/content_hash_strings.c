/* content_hash_strings.c - tft.hash_strings. */
#include "content/text/text_buckets.h"

static tundish_status
read_parameters(void *state, const struct stage_config *config)
{
    struct text_buckets *stage = state;
    const struct spec_value *key = spec_get(config->stage, "key");

    stage->count = (uint64_t)spec_int(config->stage, "hash_buckets");
    stage->takes_sparse = true;
    /* With a key, tft.hash_strings uses the strong hash (SipHash); otherwise the fast one. */
    return key != NULL && key->kind == SPEC_LIST ? text_buckets_read_key(stage, config)
                                                 : TUNDISH_OK;
}

static const struct column_wise_ops columns = {
    .sorts = true,
    .read = read_parameters,
    .describe = text_buckets_describe,
    .map = text_buckets_map,
};

const struct content_ops content_hash_strings = {
    .name = "hash_strings",
    .takes_missing = true,
    .state_bytes = sizeof(struct text_buckets),
    .columns = &columns,
    .open = column_wise_open,
    .takes_words = text_buckets_takes_words,
    .apply = column_wise_apply,
    .close = column_wise_close,
};
