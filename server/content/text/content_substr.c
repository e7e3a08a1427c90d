/* content_substr.c - tf.strings.substr, in bytes or in characters. */
#include <string.h>

#include "content/text/texts.h"

struct substr {
    struct column_wise wise;
    int64_t position, length;
    bool letters;
};

static tundish_status
read_parameters(void *state, const struct stage_config *config)
{
    struct substr *stage = state;

    stage->position = spec_int(config->stage, "pos");
    stage->length = spec_int(config->stage, "len");
    stage->letters = strcmp(spec_text(config->stage, "unit"), "UTF8_CHAR") == 0;
    return TUNDISH_OK;
}

/* Count characters. Continuation bytes at the start of a text count as one character, as in
 * TensorFlow. */
static int64_t
letters_in(struct byte_view text)
{
    int64_t letters = text.size > 0;

    for (uint64_t i = 1; i < text.size; i++)
        letters += text_starts_letter(text.data[i]);
    return letters;
}

/* The position of character `letter`, counted from `from`, or the end. */
static uint64_t
letter_at(struct byte_view text, uint64_t from, int64_t letter)
{
    uint64_t at = from;

    while (at < text.size && letter > 0) {
        at++;
        while (at < text.size && !text_starts_letter(text.data[at]))
            at++;
        letter--;
    }
    return at;
}

/* The part of one text. False: the position is outside, which tf.strings.substr reports as an
 * error. */
static bool
cut(const struct substr *stage, struct byte_view text, struct byte_view *ret_part)
{
    int64_t size = stage->letters ? letters_in(text) : (int64_t)text.size;
    int64_t from = stage->position < 0 ? stage->position + size : stage->position;
    int64_t length = stage->length;
    uint64_t begin, end;

    *ret_part = (struct byte_view){ text.data, 0 };
    if (from < 0 || from > size)
        return false;
    if (stage->letters && stage->position < 0 && length < 0)
        return false; /* TensorFlow counts position and length together from the end */
    if (!stage->letters && (length < 0 || length > size - from))
        length = size - from; /* for bytes, a negative length means all the rest */
    if (length < 0)
        length = 0;
    begin = stage->letters ? letter_at(text, 0, from) : (uint64_t)from;
    end = stage->letters ? letter_at(text, begin, length) : begin + (uint64_t)length;
    *ret_part = (struct byte_view){ text.data + begin, end - begin };
    return true;
}

static void
map_column(const void *state, const struct column_map *map)
{
    const struct substr *stage = state;
    const struct column *from = map->from;
    const struct byte_view *texts = from->values;
    struct byte_view *parts =
        frame_values(map->output, map->at, (size_t)from->value_count * sizeof *parts);

    for (int64_t j = 0; j < from->value_count; j++)
        if (!cut(stage, texts[j], &parts[j]))
            frame_reject(map->output, column_element_of(from, j),
                         "substr: position %lld is outside \"%.*s\"", (long long)stage->position,
                         texts[j].size > 200 ? 200 : (int)texts[j].size,
                         (const char *)texts[j].data);
    column_set_like(map->to, from, parts);
}

static const struct column_wise_ops columns = {
    .read = read_parameters,
    .describe = texts_describe_texts,
    .map = map_column,
};

const struct content_ops content_substr = {
    .name = "substr",
    .takes_missing = true,
    .state_bytes = sizeof(struct substr),
    .columns = &columns,
    .open = column_wise_open,
    .apply = column_wise_apply,
    .close = column_wise_close,
};
