/* content_string_strip.c - tf.strings.strip: views of the texts without the blanks around them. */
#include "content/text/texts.h"

struct string_strip {
    struct content_targets targets;
};

static tundish_status
string_strip_open(void *state, const struct stage_config *config, struct schema *ret_schema,
                  bool *ret_batch_wide)
{
    struct string_strip *stage = state;

    *ret_batch_wide = false;
    return texts_open(config, TUNDISH_STRING, ret_schema, &stage->targets);
}

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

static tundish_status
string_strip_apply(const void *state, const struct frame *input, struct frame *output)
{
    const struct string_strip *stage = state;

    texts_change(&stage->targets, input, output, NULL, strip);
    return TUNDISH_OK;
}

static void
string_strip_close(void *state)
{
    struct string_strip *stage = state;

    content_targets_close(&stage->targets);
}

const struct content_ops content_string_strip = {
    .name = "string_strip",
    .takes_missing = true,
    .state_bytes = sizeof(struct string_strip),
    .open = string_strip_open,
    .apply = string_strip_apply,
    .close = string_strip_close,
};
