/* content_decode_json.c - JSON objects to columns, with the features of parse_example. */
#include "content/records/feature_columns.h"
#include "content/records/json_parse.h"

static tundish_status
decode_json_open(void *state, const struct stage_config *config, struct schema *ret_schema,
                 bool *ret_batch_wide)
{
    return feature_columns_open(state, config, ret_schema, ret_batch_wide);
}

static tundish_status
decode_json_apply(const void *state, const struct frame *input, struct frame *output)
{
    feature_columns_apply(state, input, output, json_parse);
    return TUNDISH_OK;
}

static void
decode_json_close(void *state)
{
    feature_columns_close(state);
}

/* Python's users expect that of JSON lines. */
static bool
decode_json_passes_blank(const void *state, uint32_t column)
{
    const struct feature_columns *columns = state;

    return columns->serialized == column;
}

const struct content_ops content_decode_json = {
    .name = "decode_json",
    .state_bytes = sizeof(struct feature_columns),
    .open = decode_json_open,
    .apply = decode_json_apply,
    .passes_blank = decode_json_passes_blank,
    .close = decode_json_close,
};
