/* content_bag_of_words.c - tft.bag_of_words: the distinct n-grams of a row, in the order of their
 * first occurrence. At each word the shorter ones come first. */
#include <string.h>

#include "column/literal.h"
#include "content/text/texts.h"

struct bag_of_words {
    struct column_wise wise;
    int64_t shortest, longest;
    struct byte_view separator; /* the pipeline file's */
};

static tundish_status
read_range(void *state, const struct stage_config *config)
{
    struct bag_of_words *stage = state;
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
describe(void *state, const struct stage_config *config, void *own, struct column_spec *column,
         bool *batch_wide)
{
    tundish_status status = texts_describe_any(config, column, TUNDISH_STRING);

    (void)state;
    (void)own;
    *batch_wide = config->depth > 0; /* the dense shape is that of the longest row */
    if (status != TUNDISH_OK)
        return status;
    if (column->kind != TUNDISH_SPARSE || column->rank != (int)config->depth + 1)
        return stage_complain(
            config,
            "bag_of_words: '%s' must be sparse, with one list of words per row; use to_sparse",
            column->name);
    column->shape[column->rank - 1] = -1;
    return TUNDISH_OK;
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
map_column(const void *state, const struct column_map *map)
{
    const struct bag_of_words *stage = state;
    const struct column *from = map->from;
    struct scratch *scratch = map->output->scratch;
    uint32_t last = from->level_count - 1;
    int64_t rows = column_list_count(from, last);
    const struct byte_view *words = from->values;
    struct text_maker maker = { .scratch = scratch };
    struct text_parts parts = { .scratch = scratch };
    int64_t *splits = scratch_array(scratch, (size_t)rows + 1, sizeof *splits);
    struct column *column = map->to;

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

static const struct column_wise_ops columns = {
    .sorts = true,
    .read = read_range,
    .describe = describe,
    .map = map_column,
};

const struct content_ops content_bag_of_words = {
    .name = "bag_of_words",
    .takes_missing = true,
    .state_bytes = sizeof(struct bag_of_words),
    .columns = &columns,
    .open = column_wise_open,
    .apply = column_wise_apply,
    .close = column_wise_close,
};
