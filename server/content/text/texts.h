/* texts.h - the parts that stages on strings share: their columns, and room for new texts. */
#ifndef CONTENT_TEXT_TEXTS_H
#define CONTENT_TEXT_TEXTS_H

#include "content/column_wise.h"
#include "content/text/regex.h"
#include "core/bytes.h"

/* Where texts are put, one after the other; 64 readable bytes follow the last. */
struct text_maker {
    struct scratch *scratch;
    uint8_t *at;
    size_t left;
};

/* Room for at least `bytes` bytes; nothing is taken yet. */
uint8_t *text_room(struct text_maker *maker, size_t bytes);

/* Take the first `bytes` of the room that was asked for last. */
struct byte_view text_take(struct text_maker *maker, size_t bytes);

/* The same with the bytes given. */
struct byte_view text_copy(struct text_maker *maker, const void *data, size_t bytes);

/* Describe a column that goes out: it must hold strings, and gets the dtype `result`. TensorFlow's
 * string ops take no sparse columns; tf.Transform's do. */
tundish_status texts_describe_any(const struct stage_config *config, struct column_spec *column,
                                  tundish_dtype result);
tundish_status texts_describe(const struct stage_config *config, struct column_spec *column,
                              tundish_dtype result);

/* column_wise_ops.describe of stages from strings to strings. */
tundish_status texts_describe_texts(void *state, const struct stage_config *config, void *own,
                                    struct column_spec *column, bool *batch_wide);

/* Compile the parameter `pattern`, or complain of it. The caller closes the result. */
tundish_status texts_open_regex(const struct stage_config *config, struct regex **ret_regex);

/* Refuse a sparse column; or one whose shape is not known, too, with the stage's name. */
tundish_status texts_refuse_sparse(const struct stage_config *config,
                                   const struct column_spec *column);
tundish_status texts_need_lists(const struct stage_config *config,
                                const struct column_spec *column);

/* Make every text of a column another: `change` gives it, from what `parameters` say. */
void texts_change(const struct column_map *map, const void *parameters,
                  struct byte_view (*change)(const void *parameters, struct text_maker *maker,
                                             struct byte_view text));

/* Parts as they are found. */
struct text_parts {
    struct scratch *scratch;
    struct byte_view *list;
    int64_t count, capacity;
};

void text_parts_add(struct text_parts *parts, struct byte_view part);

/* Each text becomes a list: say so in a spec. A scalar becomes a vector of unknown length, anything
 * else ragged. */
tundish_status texts_open_lists(const struct stage_config *config, struct column_spec *column);

/* The column of what `cut` adds for each text. It returns false for a text that is bad, after
 * which the element is rejected with `fault`. */
void texts_cut(const struct column *from, struct frame *output, uint32_t index,
               const void *parameters,
               bool (*cut)(const void *parameters, struct text_maker *maker, struct byte_view text,
                           struct text_parts *parts),
               const char *fault);

/* The UTF-8 of a code point at `to` (4 bytes of room); returns its bytes. */
size_t text_utf8(uint32_t code_point, uint8_t *to);

/* Bytes of the UTF-8 character at `at`, which is before `end`; negative if it is ill-formed: then
 * as many as belong to what might have become one (Unicode's maximal subpart). */
int64_t text_utf8_letter(const uint8_t *at, const uint8_t *end);

/* Does this byte begin a UTF-8 character? Continuation bytes do not. */
static inline bool
text_starts_letter(uint8_t byte)
{
    return (byte & 0xC0) != 0x80;
}

/* White space as in the C locale and in TensorFlow: blank, \t \n \v \f \r. */
static inline bool
text_is_blank(uint8_t byte)
{
    return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

#endif
