/* content_hash_strings.c - tft.hash_strings. */
#include "content/text/text_buckets.h"

static tundish_status
hash_strings_open(void *state, const struct stage_config *config, struct schema *ret_schema,
                  bool *ret_batch_wide)
{
    struct text_buckets *stage = state;
    const struct spec_value *key = spec_get(config->stage, "key");
    tundish_status status;

    /* With a key, tft.hash_strings uses the strong hash (SipHash); otherwise the fast one. */
    if (key != NULL && key->kind == SPEC_LIST) {
        if (key->count != 2)
            return spec_complain(config->errors, key->line, key->column,
                                 "key must be two integers, and there are %u", key->count);
        stage->is_strong = true;
        for (uint32_t i = 0; i < 2; i++)
            stage->key[i] = key->items[i].kind == SPEC_INTEGER ? (uint64_t)key->items[i].integer
                                                               : key->items[i].natural;
    }
    stage->takes_sparse = true;
    status = text_buckets_open(stage, config, (uint64_t)spec_int(config->stage, "hash_buckets"),
                               ret_schema, ret_batch_wide);
    content_sort_columns(ret_schema, &stage->targets);
    return status;
}

const struct content_ops content_hash_strings = {
    .name = "hash_strings",
    .takes_missing = true,
    .state_bytes = sizeof(struct text_buckets),
    .open = hash_strings_open,
    .takes_words = content_takes_words,
    .apply = text_buckets_apply,
    .close = text_buckets_close,
};
