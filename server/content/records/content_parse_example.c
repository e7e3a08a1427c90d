/* content_parse_example.c - tf.io.parse_example, and parse_single_example for a row. */
#include "content/records/feature_columns.h"

static tundish_status
parse_example_open(void *state, const struct stage_config *config, struct schema *ret_schema,
                   bool *ret_batch_wide)
{
    return feature_columns_open(state, config, ret_schema, ret_batch_wide);
}

static tundish_status
parse_example_apply(const void *state, const struct frame *input, struct frame *output)
{
    feature_columns_apply(state, input, output, example_parse);
    return TUNDISH_OK;
}

static void
parse_example_close(void *state)
{
    feature_columns_close(state);
}

const struct content_ops content_parse_example = {
    .name = "parse_example",
    .state_bytes = sizeof(struct feature_columns),
    .open = parse_example_open,
    .apply = parse_example_apply,
    .close = parse_example_close,
};
