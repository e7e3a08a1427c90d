/* content_string_split.c - tf.strings.split. Parts are views of the texts, without copies. */
#include <stdlib.h>
#include <string.h>

#include "column/literal.h"
#include "content/text/texts.h"

struct string_split {
    struct byte_view separator; /* empty: blanks */
    int64_t most;               /* separations; < 0: no limit */
    struct content_targets targets;
};

static tundish_status
string_split_open(void *state, const struct stage_config *config, struct schema *ret_schema,
                  bool *ret_batch_wide)
{
    struct string_split *stage = state;
    const struct spec_value *separator = spec_get(config->stage, "sep");
    tundish_status status = texts_open(config, TUNDISH_STRING, ret_schema, &stage->targets);

    *ret_batch_wide = false;
    if (separator != NULL && separator->kind == SPEC_TEXT)
        stage->separator = literal_text(separator->text, separator->text_bytes);
    stage->most = spec_int(config->stage, "maxsplit");
    for (uint32_t i = 0; i < stage->targets.count && status == TUNDISH_OK; i++) {
        struct column_spec *column = &ret_schema->columns[stage->targets.list[i].output];

        if (column->kind == TUNDISH_DENSE && column->rank == 1)
            column->shape[0] = -1; /* TensorFlow does not keep a vector's length */
        status = texts_open_lists(config, column);
    }
    return status;
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

static tundish_status
string_split_apply(const void *state, const struct frame *input, struct frame *output)
{
    const struct string_split *stage = state;

    for (uint32_t i = 0; i < stage->targets.count; i++)
        texts_cut(&input->columns[stage->targets.list[i].input], output,
                  stage->targets.list[i].output, stage,
                  stage->separator.size == 0 ? cut_at_blanks : cut_at_separator, "");
    return TUNDISH_OK;
}

static void
string_split_close(void *state)
{
    struct string_split *stage = state;

    free((void *)(uintptr_t)stage->separator.data);
    content_targets_close(&stage->targets);
}

const struct content_ops content_string_split = {
    .name = "string_split",
    .takes_missing = true,
    .state_bytes = sizeof(struct string_split),
    .open = string_split_open,
    .apply = string_split_apply,
    .close = string_split_close,
};
