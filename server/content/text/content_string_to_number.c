/* content_string_to_number.c - tf.strings.to_number. */
#include <string.h>

#include "content/records/number.h"
#include "content/text/texts.h"

struct string_to_number {
    struct column_wise wise;
    tundish_dtype dtype;
};

static tundish_status
describe(void *state, const struct stage_config *config, void *own, struct column_spec *column,
         bool *batch_wide)
{
    struct string_to_number *stage = state;

    (void)own;
    (void)batch_wide;
    stage->dtype = tnd_dtype_by_name(spec_text(config->stage, "out_type"));
    return texts_describe(config, column, stage->dtype);
}

static bool
read_number(tundish_dtype dtype, struct byte_view text, void *values, int64_t at)
{
    switch (dtype) {
    case TUNDISH_INT32:
        return number_int32(text.data, text.size, (int32_t *)values + at);
    case TUNDISH_INT64:
        return number_int64(text.data, text.size, (int64_t *)values + at);
    case TUNDISH_FLOAT64:
        return number_float64(text.data, text.size, (double *)values + at);
    default:
        return number_float32(text.data, text.size, (float *)values + at);
    }
}

/* The text may be hostile, and long: show 200 bytes of it. */
static void
reject(const struct string_to_number *stage, const struct column *from, int64_t at,
       struct byte_view text, struct frame *output)
{
    frame_reject(output, column_element_of(from, at), "\"%.*s\" is not a valid %s%s",
                 text.size > 200 ? 200 : (int)text.size, (const char *)text.data,
                 tnd_dtype_name(stage->dtype), text.size == 0 ? ": it is empty" : "");
}

static void
map_column(const void *state, const struct column_map *map)
{
    const struct string_to_number *stage = state;
    const struct column *from = map->from;
    const struct byte_view *texts = from->values;
    size_t bytes = tnd_dtype_bytes(stage->dtype);
    void *values = frame_values(map->output, map->at, (size_t)from->value_count * bytes);

    for (int64_t j = 0; j < from->value_count; j++)
        if (texts[j].size == 0 || !read_number(stage->dtype, texts[j], values, j)) {
            memset((uint8_t *)values + (size_t)j * bytes, 0, bytes);
            reject(stage, from, j, texts[j], map->output);
        }
    column_set_like(map->to, from, values);
}

static const struct column_wise_ops columns = {
    .describe = describe,
    .map = map_column,
};

const struct content_ops content_string_to_number = {
    .name = "string_to_number",
    .takes_missing = true,
    .state_bytes = sizeof(struct string_to_number),
    .columns = &columns,
    .open = column_wise_open,
    .apply = column_wise_apply,
    .close = column_wise_close,
};
