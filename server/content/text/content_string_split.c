/* content_string_split.c - tf.strings.split. Parts are views of the texts, without copies. */
#include <stdlib.h>
#include <string.h>

#include "column/literal.h"
#include "content/text/texts.h"

struct string_split {
    struct column_wise wise;
    struct byte_view separator; /* empty: blanks */
    int64_t most;               /* separations; < 0: no limit */
};

static tundish_status
read_parameters(void *state, const struct stage_config *config)
{
    struct string_split *stage = state;
    const struct spec_value *separator = spec_get(config->stage, "sep");

    if (separator != NULL && separator->kind == SPEC_TEXT)
        stage->separator = literal_text(separator->text, separator->text_bytes);
    stage->most = spec_int(config->stage, "maxsplit");
    return TUNDISH_OK;
}

static tundish_status
describe(void *state, const struct stage_config *config, void *own, struct column_spec *column,
         bool *batch_wide)
{
    tundish_status status = texts_describe_texts(state, config, own, column, batch_wide);

    if (column->kind == TUNDISH_DENSE && column->rank == 1)
        column->shape[0] = -1; /* TensorFlow does not keep a vector's length */
    return status == TUNDISH_OK ? texts_open_lists(config, column) : status;
}

/* Split at runs of white space, as Python's str.split() does. */
static bool
cut_at_blanks(const void *parameters, struct text_maker *maker, struct byte_view text,
              struct text_parts *parts)
{
    const struct string_split *stage = parameters;
    const uint8_t *at = text.data, *end = text.data + text.size;

    (void)maker;
    if (stage->most == 0) { /* the whole text, with its blanks */
        text_parts_add(parts, text);
        return true;
    }
    for (int64_t splits = 0;;) {
        const uint8_t *begin;

        while (at < end && text_is_blank(*at))
            at++;
        if (splits == stage->most) { /* the rest, even if it is empty */
            text_parts_add(parts, (struct byte_view){ at, (uint64_t)(end - at) });
            return true;
        }
        if (at == end)
            return true;
        for (begin = at; at < end && !text_is_blank(*at);)
            at++;
        text_parts_add(parts, (struct byte_view){ begin, (uint64_t)(at - begin) });
        splits++;
    }
}

/* Split at each separator, as Python's str.split(sep): parts may be empty. */
static bool
cut_at_separator(const void *parameters, struct text_maker *maker, struct byte_view text,
                 struct text_parts *parts)
{
    const struct string_split *stage = parameters;
    const uint8_t *at = text.data, *end = text.data + text.size;

    (void)maker;
    for (int64_t splits = 0; stage->most < 0 || splits < stage->most; splits++) {
        const uint8_t *found = at == end ? NULL
                                         : memmem(at, (size_t)(end - at), stage->separator.data,
                                                  stage->separator.size);

        if (found == NULL)
            break;
        text_parts_add(parts, (struct byte_view){ at, (uint64_t)(found - at) });
        at = found + stage->separator.size;
    }
    text_parts_add(parts, (struct byte_view){ at, (uint64_t)(end - at) });
    return true;
}

static void
map_column(const void *state, const struct column_map *map)
{
    const struct string_split *stage = state;

    texts_cut(map->from, map->output, map->at, stage,
              stage->separator.size == 0 ? cut_at_blanks : cut_at_separator, "");
}

static void
close_separator(void *state)
{
    struct string_split *stage = state;

    free((void *)(uintptr_t)stage->separator.data);
}

static const struct column_wise_ops columns = {
    .read = read_parameters,
    .describe = describe,
    .map = map_column,
    .close = close_separator,
};

const struct content_ops content_string_split = {
    .name = "string_split",
    .takes_missing = true,
    .state_bytes = sizeof(struct string_split),
    .columns = &columns,
    .open = column_wise_open,
    .apply = column_wise_apply,
    .close = column_wise_close,
};
