/* content_unicode_split.c - tf.strings.unicode_split: texts to their characters. */
#include <string.h>

#include "content/text/texts.h"

enum unicode_encoding { UTF_8, UTF_16_BE, UTF_32_BE };
enum unicode_errors { ERRORS_REPLACE, ERRORS_IGNORE, ERRORS_STRICT };

struct unicode_split {
    struct column_wise wise;
    enum unicode_encoding encoding;
    enum unicode_errors errors;
    uint8_t replacement[4]; /* in the encoding */
    size_t replacement_bytes;
};

static bool
is_surrogate(uint32_t c)
{
    return c >= 0xD800 && c < 0xE000;
}

/* Write a character in the encoding; UTF-16 takes a surrogate pair above U+FFFF. */
static size_t
encode(enum unicode_encoding encoding, uint32_t c, uint8_t *to)
{
    if (encoding == UTF_8)
        return text_utf8(c, to);
    if (encoding == UTF_32_BE) {
        for (int i = 0; i < 4; i++)
            to[i] = (uint8_t)(c >> (24 - 8 * i));
        return 4;
    }
    if (c >= 0x10000) {
        uint32_t high = 0xD800 + ((c - 0x10000) >> 10), low = 0xDC00 + ((c - 0x10000) & 0x3FF);

        to[0] = (uint8_t)(high >> 8);
        to[1] = (uint8_t)high;
        to[2] = (uint8_t)(low >> 8);
        to[3] = (uint8_t)low;
        return 4;
    }
    to[0] = (uint8_t)(c >> 8);
    to[1] = (uint8_t)c;
    return 2;
}

static tundish_status
read_parameters(void *state, const struct stage_config *config)
{
    struct unicode_split *stage = state;
    const char *encoding = spec_text(config->stage, "input_encoding");
    const char *errors = spec_text(config->stage, "errors");
    uint32_t replacement = (uint32_t)spec_int(config->stage, "replacement_char");

    stage->encoding = strcmp(encoding, "UTF-8") == 0       ? UTF_8
                      : strcmp(encoding, "UTF-16-BE") == 0 ? UTF_16_BE
                                                           : UTF_32_BE;
    stage->errors = strcmp(errors, "replace") == 0  ? ERRORS_REPLACE
                    : strcmp(errors, "ignore") == 0 ? ERRORS_IGNORE
                                                    : ERRORS_STRICT;
    if (is_surrogate(replacement) && stage->encoding == UTF_8)
        replacement = 0xFFFD; /* UTF-8 cannot encode a surrogate */
    stage->replacement_bytes = encode(stage->encoding, replacement, stage->replacement);
    return TUNDISH_OK;
}

static tundish_status
describe(void *state, const struct stage_config *config, void *own, struct column_spec *column,
         bool *batch_wide)
{
    tundish_status status = texts_describe_texts(state, config, own, column, batch_wide);

    return status == TUNDISH_OK ? texts_open_lists(config, column) : status;
}

/* The bytes of the character at `at`; negative: the number of ill-formed bytes (as
 * text_utf8_letter). */
static int64_t
utf16_letter(const uint8_t *at, const uint8_t *end)
{
    uint32_t first, second;

    if (end - at < 2)
        return -(end - at);
    first = (uint32_t)at[0] << 8 | at[1];
    if (!is_surrogate(first))
        return 2;
    if (first >= 0xDC00 || end - at < 4)
        return end - at < 4 && first < 0xDC00 ? -(end - at) : -2;
    second = (uint32_t)at[2] << 8 | at[3];
    return second >= 0xDC00 && second < 0xE000 ? 4 : -2;
}

static int64_t
utf32_letter(const uint8_t *at, const uint8_t *end)
{
    uint32_t c;

    if (end - at < 4)
        return -(end - at);
    c = (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
    return c > 0x10FFFF || is_surrogate(c) ? -4 : 4;
}

/* Split one text. Characters are views; only replacements are copies. Each step consumes at least
 * one byte, so the loop ends on any input. */
static bool
cut(const void *parameters, struct text_maker *maker, struct byte_view text,
    struct text_parts *parts)
{
    const struct unicode_split *stage = parameters;
    const uint8_t *at = text.data, *end = text.data + text.size;

    while (at < end) {
        int64_t bytes = stage->encoding == UTF_8       ? text_utf8_letter(at, end)
                        : stage->encoding == UTF_16_BE ? utf16_letter(at, end)
                                                       : utf32_letter(at, end);

        if (bytes > 0)
            text_parts_add(parts, (struct byte_view){ at, (uint64_t)bytes });
        else if (stage->errors == ERRORS_STRICT)
            return false;
        else if (stage->errors == ERRORS_REPLACE)
            text_parts_add(parts, text_copy(maker, stage->replacement, stage->replacement_bytes));
        at += bytes < 0 ? -bytes : bytes;
    }
    return true;
}

static void
map_column(const void *state, const struct column_map *map)
{
    texts_cut(map->from, map->output, map->at, state, cut,
              "unicode_split: invalid bytes in a text (errors: strict)");
}

static const struct column_wise_ops columns = {
    .read = read_parameters,
    .describe = describe,
    .map = map_column,
};

const struct content_ops content_unicode_split = {
    .name = "unicode_split",
    .takes_missing = true,
    .state_bytes = sizeof(struct unicode_split),
    .columns = &columns,
    .open = column_wise_open,
    .apply = column_wise_apply,
    .close = column_wise_close,
};
