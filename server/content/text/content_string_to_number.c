/* content_string_to_number.c - tf.strings.to_number. */
#include <string.h>

#include "content/records/number.h"
#include "content/text/texts.h"

struct string_to_number {
    tundish_dtype dtype;
    struct content_targets targets;
};

static tundish_status
string_to_number_open(void *state, const struct stage_config *config, struct schema *ret_schema,
                      bool *ret_batch_wide)
{
    struct string_to_number *stage = state;

    *ret_batch_wide = false;
    stage->dtype = tnd_dtype_by_name(spec_text(config->stage, "out_type"));
    return texts_open(config, stage->dtype, ret_schema, &stage->targets);
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

static tundish_status
string_to_number_apply(const void *state, const struct frame *input, struct frame *output)
{
    const struct string_to_number *stage = state;
    size_t bytes = tnd_dtype_bytes(stage->dtype);

    for (uint32_t i = 0; i < stage->targets.count; i++) {
        const struct content_target *target = &stage->targets.list[i];
        const struct column *from = &input->columns[target->input];
        const struct byte_view *texts = from->values;
        void *values = frame_values(output, target->output, (size_t)from->value_count * bytes);

        for (int64_t j = 0; j < from->value_count; j++)
            if (texts[j].size == 0 || !read_number(stage->dtype, texts[j], values, j)) {
                memset((uint8_t *)values + (size_t)j * bytes, 0, bytes);
                reject(stage, from, j, texts[j], output);
            }
        column_set_like(&output->columns[target->output], from, values);
    }
    return TUNDISH_OK;
}

static void
string_to_number_close(void *state)
{
    struct string_to_number *stage = state;

    content_targets_close(&stage->targets);
}

const struct content_ops content_string_to_number = {
    .name = "string_to_number",
    .takes_missing = true,
    .state_bytes = sizeof(struct string_to_number),
    .open = string_to_number_open,
    .apply = string_to_number_apply,
    .close = string_to_number_close,
};
