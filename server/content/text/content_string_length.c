/* content_string_length.c - tf.strings.length, in bytes or in characters. */
#include <string.h>

#include "content/text/texts.h"

struct string_length {
    bool letters;
    struct content_targets targets;
};

static tundish_status
string_length_open(void *state, const struct stage_config *config, struct schema *ret_schema,
                   bool *ret_batch_wide)
{
    struct string_length *stage = state;

    *ret_batch_wide = false;
    stage->letters = strcmp(spec_text(config->stage, "unit"), "UTF8_CHAR") == 0;
    return texts_open(config, TUNDISH_INT32, ret_schema, &stage->targets);
}

/* Count the bytes that start a character, as TensorFlow's UTF8StrLen: ill-formed text gives some
 * number, not an error. */
static int32_t
count_letters(struct byte_view text)
{
    int32_t letters = 0;

    for (uint64_t i = 0; i < text.size; i++)
        letters += text_starts_letter(text.data[i]);
    return letters;
}

static tundish_status
string_length_apply(const void *state, const struct frame *input, struct frame *output)
{
    const struct string_length *stage = state;

    for (uint32_t i = 0; i < stage->targets.count; i++) {
        const struct content_target *target = &stage->targets.list[i];
        const struct column *from = &input->columns[target->input];
        const struct byte_view *texts = from->values;
        int32_t *lengths =
            frame_values(output, target->output, (size_t)from->value_count * sizeof *lengths);

        for (int64_t j = 0; j < from->value_count; j++)
            lengths[j] = stage->letters ? count_letters(texts[j]) : (int32_t)texts[j].size;
        column_set_like(&output->columns[target->output], from, lengths);
    }
    return TUNDISH_OK;
}

static void
string_length_close(void *state)
{
    struct string_length *stage = state;

    content_targets_close(&stage->targets);
}

const struct content_ops content_string_length = {
    .name = "string_length",
    .takes_missing = true,
    .state_bytes = sizeof(struct string_length),
    .open = string_length_open,
    .apply = string_length_apply,
    .close = string_length_close,
};
