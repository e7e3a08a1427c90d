/* content_string_lookup.c - keras.layers.StringLookup. */
#include "content/terms/lookup.h"

static tundish_status
string_lookup_open(void *state, const struct stage_config *config, struct schema *ret_schema,
                   bool *ret_batch_wide)
{
    return lookup_open(state, VOCAB_STRINGS, config, ret_schema, ret_batch_wide);
}

const struct content_ops content_string_lookup = {
    .name = "string_lookup",
    .state_bytes = sizeof(struct lookup),
    .open = string_lookup_open,
    .apply = lookup_apply,
    .close = lookup_close,
    .files = lookup_files,
    .vocabularies = lookup_vocabularies,
};
