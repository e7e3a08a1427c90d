/* text_case.c - tf.strings.lower and upper: ASCII letters by hand, all others by ICU, as in
 * TensorFlow. */
#include "content/text/texts.h"

#include <string.h>
#include <unicode/ucasemap.h>

#include "core/must.h"

struct text_case {
    struct column_wise wise;
    bool upper, utf8;
    struct UCaseMap *map; /* utf8: ICU's, for the root locale */
};

static tundish_status
read_encoding(struct text_case *stage, bool upper, const struct stage_config *config)
{
    UErrorCode error = U_ZERO_ERROR;

    stage->upper = upper;
    stage->utf8 = spec_text(config->stage, "encoding")[0] != '\0';
    if (stage->utf8) {
        stage->map = ucasemap_open("", 0, &error);
        must(U_SUCCESS(error));
    }
    return TUNDISH_OK;
}

/* Flip bit 0x20 of letters alone; the subtraction wraps around for bytes below the first letter. */
static struct byte_view
change_ascii(const void *state, struct text_maker *maker, struct byte_view text)
{
    const struct text_case *stage = state;
    uint8_t *room = text_room(maker, text.size);
    uint8_t first = stage->upper ? 'a' : 'A';

    for (uint64_t i = 0; i < text.size; i++)
        room[i] = (uint8_t)(text.data[i] - first) < 26 ? text.data[i] ^ 0x20 : text.data[i];
    return text_take(maker, text.size);
}

/* Replace ill-formed bytes by U+FFFD: ICU would copy them, but TensorFlow converts through UTF-16,
 * which replaces them. */
static struct byte_view
well_formed(struct text_maker *maker, struct byte_view text)
{
    static const uint8_t replacement[] = { 0xEF, 0xBF, 0xBD };
    const uint8_t *at = text.data, *end = text.data + text.size;
    uint8_t *room, *to;

    while (at < end && *at < 0x80)
        at++;
    if (at == end)
        return text;
    room = to = text_room(maker, text.size * sizeof replacement);
    for (at = text.data; at < end;) {
        int64_t bytes = text_utf8_letter(at, end);
        size_t size = (size_t)(bytes < 0 ? -bytes : bytes);

        if (bytes < 0) {
            memcpy(to, replacement, sizeof replacement);
            to += sizeof replacement;
        } else {
            memcpy(to, at, size);
            to += size;
        }
        at += size;
    }
    return text_take(maker, (size_t)(to - room));
}

static int32_t
convert(const struct text_case *stage, uint8_t *to, size_t room, struct byte_view text,
        UErrorCode *error)
{
    int32_t (*map)(const UCaseMap *, char *, int32_t, const char *, int32_t, UErrorCode *) =
        stage->upper ? ucasemap_utf8ToUpper : ucasemap_utf8ToLower;

    *error = U_ZERO_ERROR;
    return map(stage->map, (char *)to, (int32_t)room, (const char *)text.data, (int32_t)text.size,
               error);
}

static struct byte_view
change_utf8(const void *state, struct text_maker *maker, struct byte_view text)
{
    const struct text_case *stage = state;
    UErrorCode error;
    int32_t bytes;
    size_t room;

    must(text.size < INT32_MAX / 16);
    if (text.size > 0)
        text.size = strnlen((const char *)text.data, text.size); /* TensorFlow passes a C string */
    if (text.size == 0)
        return text;
    text = well_formed(maker, text);
    room = text.size + 16;
    bytes = convert(stage, text_room(maker, room), room, text, &error);
    /* A text may grow: ICU says how long it becomes. */
    if (error == U_BUFFER_OVERFLOW_ERROR)
        bytes =
            convert(stage, text_room(maker, (size_t)bytes + 1), (size_t)bytes + 1, text, &error);
    must(U_SUCCESS(error));
    return text_take(maker, (size_t)bytes);
}

static void
map_column(const void *state, const struct column_map *map)
{
    const struct text_case *stage = state;

    texts_change(map, state, stage->utf8 ? change_utf8 : change_ascii);
}

static void
close_map(void *state)
{
    struct text_case *stage = state;

    ucasemap_close(stage->map);
}

#define TEXT_CASE(stage_, upper_)                                                                  \
    static tundish_status stage_##_read(void *state, const struct stage_config *config)            \
    {                                                                                              \
        return read_encoding(state, upper_, config);                                               \
    }                                                                                              \
                                                                                                   \
    static const struct column_wise_ops stage_##_columns = {                                       \
        .read = stage_##_read,                                                                     \
        .describe = texts_describe_texts,                                                          \
        .map = map_column,                                                                         \
        .close = close_map,                                                                        \
    };                                                                                             \
                                                                                                   \
    const struct content_ops content_##stage_ = {                                                  \
        .name = #stage_,                                                                           \
        .takes_missing = true,                                                                     \
        .state_bytes = sizeof(struct text_case),                                                   \
        .columns = &stage_##_columns,                                                              \
        .open = column_wise_open,                                                                  \
        .apply = column_wise_apply,                                                                \
        .close = column_wise_close,                                                                \
    }

TEXT_CASE(string_lower, false);
TEXT_CASE(string_upper, true);
