/* content_string_length.c - tf.strings.length, in bytes or in characters. */
#include <string.h>

#include "content/text/texts.h"

struct string_length {
    struct column_wise wise;
    bool letters;
};

static tundish_status
describe(void *state, const struct stage_config *config, void *own, struct column_spec *column,
         bool *batch_wide)
{
    struct string_length *stage = state;

    (void)own;
    (void)batch_wide;
    stage->letters = strcmp(spec_text(config->stage, "unit"), "UTF8_CHAR") == 0;
    return texts_describe(config, column, TUNDISH_INT32);
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

static void
map_column(const void *state, const struct column_map *map)
{
    const struct string_length *stage = state;
    const struct byte_view *texts = map->from->values;
    int64_t count = map->from->value_count;
    int32_t *lengths = frame_values(map->output, map->at, (size_t)count * sizeof *lengths);

    for (int64_t i = 0; i < count; i++)
        lengths[i] = stage->letters ? count_letters(texts[i]) : (int32_t)texts[i].size;
    column_set_like(map->to, map->from, lengths);
}

static const struct column_wise_ops columns = {
    .describe = describe,
    .map = map_column,
};

const struct content_ops content_string_length = {
    .name = "string_length",
    .takes_missing = true,
    .state_bytes = sizeof(struct string_length),
    .columns = &columns,
    .open = column_wise_open,
    .apply = column_wise_apply,
    .close = column_wise_close,
};
