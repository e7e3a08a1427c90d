/* content_string_lower.c - tf.strings.lower. */
#include "content/text/text_case.h"

static tundish_status
string_lower_open(void *state, const struct stage_config *config, struct schema *ret_schema,
                  bool *ret_batch_wide)
{
    return text_case_open(state, false, config, ret_schema, ret_batch_wide);
}

const struct content_ops content_string_lower = {
    .name = "string_lower",
    .state_bytes = sizeof(struct text_case),
    .open = string_lower_open,
    .apply = text_case_apply,
    .close = text_case_close,
};
