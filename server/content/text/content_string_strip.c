/* content_string_strip.c - tf.strings.strip: views of the texts without the blanks around them. */
#include "content/text/texts.h"

static struct byte_view
strip(const void *parameters, struct text_maker *maker, struct byte_view text)
{
    (void)parameters;
    (void)maker;
    while (text.size > 0 && text_is_blank(text.data[0])) {
        text.data++;
        text.size--;
    }
    while (text.size > 0 && text_is_blank(text.data[text.size - 1]))
        text.size--;
    return text;
}

static void
map_column(const void *state, const struct column_map *map)
{
    texts_change(map, state, strip);
}

static const struct column_wise_ops columns = {
    .describe = texts_describe_texts,
    .map = map_column,
};

const struct content_ops content_string_strip = {
    .name = "string_strip",
    .takes_missing = true,
    .state_bytes = sizeof(struct column_wise),
    .columns = &columns,
    .open = column_wise_open,
    .apply = column_wise_apply,
    .close = column_wise_close,
};
