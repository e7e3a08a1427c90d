/* content_string_to_hash_bucket_strong.c - tf.strings.to_hash_bucket_strong. */
#include "content/text/text_buckets.h"

static tundish_status
string_to_hash_bucket_strong_open(void *state, const struct stage_config *config,
                                  struct schema *ret_schema, bool *ret_batch_wide)
{
    struct text_buckets *stage = state;
    const struct spec_value *key = spec_get(config->stage, "key");

    if (key->kind != SPEC_LIST || key->count != 2)
        return spec_complain(
            config->errors, key->line, key->column, "key must be two integers, and there %s %u",
            key->count == 1 ? "is" : "are", key->kind == SPEC_LIST ? key->count : 1);
    stage->is_strong = true;
    for (uint32_t i = 0; i < 2; i++)
        stage->key[i] = key->items[i].kind == SPEC_INTEGER ? (uint64_t)key->items[i].integer
                                                           : key->items[i].natural;
    return text_buckets_open(stage, config, (uint64_t)spec_int(config->stage, "num_buckets"),
                             ret_schema, ret_batch_wide);
}

const struct content_ops content_string_to_hash_bucket_strong = {
    .name = "string_to_hash_bucket_strong",
    .takes_missing = true,
    .state_bytes = sizeof(struct text_buckets),
    .open = string_to_hash_bucket_strong_open,
    .takes_words = content_takes_words,
    .apply = text_buckets_apply,
    .close = text_buckets_close,
};
