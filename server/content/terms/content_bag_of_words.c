/* content_bag_of_words.c - tft.bag_of_words: the distinct n-grams of a row, in the order of their
 * first occurrence. At each word the shorter ones come first. */
#include <string.h>

#include "column/literal.h"
#include "content/text/texts.h"

struct bag_of_words {
    int64_t shortest, longest;
    struct byte_view separator; /* the pipeline file's */
    struct content_targets targets;
};

static tundish_status
read_range(struct bag_of_words *stage, const struct stage_config *config)
{
    const struct spec_value *range = spec_get(config->stage, "ngram_range");
    const struct spec_value *separator = spec_get(config->stage, "separator");

    if (range->kind != SPEC_LIST || range->count != 2 ||
        range->items[0].integer > range->items[1].integer)
        return spec_complain(
            config->errors, range->line, range->column,
            "ngram_range is the shortest and the longest run, [1, 2] for instance");
    stage->shortest = range->items[0].integer;
    stage->longest = range->items[1].integer;
    stage->separator =
        (struct byte_view){ (const uint8_t *)separator->text, separator->text_bytes };
    return TUNDISH_OK;
}

static tundish_status
bag_of_words_open(void *state, const struct stage_config *config, struct schema *ret_schema,
                  bool *ret_batch_wide)
{
    struct bag_of_words *stage = state;
    tundish_status status = read_range(stage, config);

    *ret_batch_wide = config->depth > 0; /* the dense shape is that of the longest row */
    if (status == TUNDISH_OK)
        status = texts_open_any(config, TUNDISH_STRING, ret_schema, &stage->targets);
    for (uint32_t i = 0; i < stage->targets.count && status == TUNDISH_OK; i++) {
        struct column_spec *column = &ret_schema->columns[stage->targets.list[i].output];

        if (column->kind != TUNDISH_SPARSE || column->rank != (int)config->depth + 1)
            return stage_complain(
                config,
                "bag_of_words: '%s' must be sparse, with one list of words per row; use to_sparse",
                column->name);
        column->shape[column->rank - 1] = -1;
    }
    content_sort_columns(ret_schema, &stage->targets);
    return status;
}

/* A linear search: the n-grams of a row are few, and a table would cost more than it saves. */
static bool
is_among(const struct text_parts *parts, int64_t from, struct byte_view text)
{
    for (int64_t i = from; i < parts->count; i++)
        if (bytes_are_equal(parts->list[i], text))
            return true;
    return false;
}

/* Join `count` words with the separator, in scratch memory. */
static struct byte_view
join(const struct bag_of_words *stage, struct text_maker *maker, const struct byte_view *words,
     int64_t count)
{
    size_t bytes = 0;
    uint8_t *room, *to;

    for (int64_t i = 0; i < count; i++)
        bytes += words[i].size + (i > 0 ? stage->separator.size : 0);
    to = room = text_room(maker, bytes);
    for (int64_t i = 0; i < count; i++) {
        if (i > 0 && stage->separator.size > 0)
            memcpy(to, stage->separator.data, stage->separator.size);
        to += i > 0 ? stage->separator.size : 0;
        if (words[i].size > 0)
            memcpy(to, words[i].data, words[i].size);
        to += words[i].size;
    }
    return text_take(maker, bytes);
}

static void
bag_column(const struct bag_of_words *stage, const struct column *from, struct frame *output,
           uint32_t index)
{
    uint32_t last = from->level_count - 1;
    int64_t rows = column_list_count(from, last);
    const struct byte_view *words = from->values;
    struct text_maker maker = { .scratch = output->scratch };
    struct text_parts parts = { .scratch = output->scratch };
    int64_t *splits = scratch_array(output->scratch, (size_t)rows + 1, sizeof *splits);
    struct column *column = &output->columns[index];

    splits[0] = 0;
    for (int64_t row = 0; row < rows; row++) {
        int64_t begin = level_begin(&from->levels[last], row);
        int64_t end = level_begin(&from->levels[last], row + 1);

        for (int64_t i = begin; i < end; i++)
            for (int64_t n = stage->shortest; n <= stage->longest && i + n <= end; n++) {
                /* A single word stays a view of the input. */
                struct byte_view run = n == 1 ? words[i] : join(stage, &maker, &words[i], n);

                if (!is_among(&parts, splits[row], run))
                    text_parts_add(&parts, run);
            }
        splits[row + 1] = parts.count;
    }
    *column = *from;
    column->levels[last] = (struct level){ .uniform = -1, .splits = splits };
    column->value_count = parts.count;
    column->values = parts.list;
    /* Rows are packed to the left now, so the indices follow from the splits. */
    column->indices = NULL;
    column->dense_shape = NULL;
}

static tundish_status
bag_of_words_apply(const void *state, const struct frame *input, struct frame *output)
{
    const struct bag_of_words *stage = state;

    for (uint32_t i = 0; i < stage->targets.count; i++)
        bag_column(stage, &input->columns[stage->targets.list[i].input], output,
                   stage->targets.list[i].output);
    return TUNDISH_OK;
}

static void
bag_of_words_close(void *state)
{
    struct bag_of_words *stage = state;

    content_targets_close(&stage->targets);
}

const struct content_ops content_bag_of_words = {
    .name = "bag_of_words",
    .takes_missing = true,
    .state_bytes = sizeof(struct bag_of_words),
    .open = bag_of_words_open,
    .apply = bag_of_words_apply,
    .close = bag_of_words_close,
};
