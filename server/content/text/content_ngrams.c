/* content_ngrams.c - tf.strings.ngrams: all n-grams of the first width, then all of the next. */
#include <stdlib.h>
#include <string.h>

#include "column/literal.h"
#include "content/text/texts.h"
#include "core/memory.h"

struct ngrams {
    struct column_wise wise;
    uint32_t width_count;
    int64_t *widths;
    struct byte_view separator, left, right;
    bool pads;
    int64_t padding; /* pads on either side, at most; -1: width - 1 */
    bool keeps_short;
};

static struct byte_view
text_of(const struct spec_value *value)
{
    return literal_text(value->text, value->text_bytes);
}

static tundish_status
read_padding(const struct stage_config *config, struct ngrams *stage)
{
    const struct spec_value *pads = spec_get(config->stage, "pad_values");
    const struct spec_value *width = spec_get(config->stage, "padding_width");

    stage->padding = 0;
    if (pads == NULL || pads->kind == SPEC_NULL) {
        if (width != NULL && width->kind != SPEC_NULL)
            return stage_complain(config, "ngrams: padding_width needs pad_values");
        return TUNDISH_OK;
    }
    if (pads->kind == SPEC_LIST && pads->count != 2)
        return spec_complain(config->errors, pads->line, pads->column,
                             "pad_values must be one text or two, and there are %u", pads->count);
    stage->pads = true;
    stage->left = text_of(pads->kind == SPEC_LIST ? &pads->items[0] : pads);
    stage->right = text_of(pads->kind == SPEC_LIST ? &pads->items[1] : pads);
    stage->padding = width == NULL || width->kind == SPEC_NULL ? -1 : width->integer;
    if (stage->padding == 0)
        return spec_complain(config->errors, width->line, width->column,
                             "padding_width must be at least 1, not 0");
    return TUNDISH_OK;
}

static tundish_status
read_widths(const struct stage_config *config, struct ngrams *stage)
{
    const struct spec_value *widths = spec_get(config->stage, "ngram_width");

    stage->width_count = widths->kind == SPEC_LIST ? widths->count : 1;
    stage->widths = tnd_zalloc(stage->width_count + 1, sizeof *stage->widths);
    for (uint32_t i = 0; i < stage->width_count; i++) {
        const struct spec_value *width = widths->kind == SPEC_LIST ? &widths->items[i] : widths;

        if (width->integer < 1)
            return spec_complain(config->errors, width->line, width->column,
                                 "ngram_width must be at least 1, not %lld",
                                 (long long)width->integer);
        stage->widths[i] = width->integer;
    }
    return TUNDISH_OK;
}

static tundish_status
describe(void *state, const struct stage_config *config, void *own, struct column_spec *column,
         bool *batch_wide)
{
    const struct ngrams *stage = state;
    tundish_status status = texts_describe_texts(state, config, own, column, batch_wide);

    if (status == TUNDISH_OK)
        status = texts_need_lists(config, column);
    if (status != TUNDISH_OK)
        return status;
    if (column->rank == 0)
        return stage_complain(config, "ngrams: '%s' is a scalar; use string_split", column->name);
    if (column->kind == TUNDISH_RAGGED && column->ragged_rank != column->rank - 1)
        return stage_complain(config, "ngrams: the last dimension of '%s' must be ragged",
                              column->name);
    if (config->depth > 0 && (column->rank == 1 || stage->pads))
        *batch_wide = true; /* the words are the batch; or see map_column */
    column->shape[column->rank - 1] = -1;
    return TUNDISH_OK;
}

static tundish_status
read_parameters(void *state, const struct stage_config *config)
{
    struct ngrams *stage = state;
    tundish_status status = read_widths(config, stage);

    stage->separator = text_of(spec_get(config->stage, "separator"));
    stage->keeps_short = spec_bool(config->stage, "preserve_short_sequences");
    return status == TUNDISH_OK ? read_padding(config, stage) : status;
}

/* A row of words. Word i exists for i from -padding to count + padding. */
struct row {
    const struct byte_view *words;
    int64_t count;
};

static struct byte_view
word_at(const struct ngrams *stage, const struct row *row, int64_t i)
{
    return i < 0 ? stage->left : i >= row->count ? stage->right : row->words[i];
}

/* Join `width` words from `first` on. */
static struct byte_view
join(const struct ngrams *stage, const struct row *row, int64_t first, int64_t width,
     struct text_maker *maker)
{
    size_t bytes = (size_t)(width - 1) * stage->separator.size, at = 0;
    uint8_t *room;

    for (int64_t i = first; i < first + width; i++)
        bytes += word_at(stage, row, i).size;
    room = text_room(maker, bytes);
    for (int64_t i = first; i < first + width; i++) {
        struct byte_view word = word_at(stage, row, i);

        if (i > first && stage->separator.size > 0) {
            memcpy(room + at, stage->separator.data, stage->separator.size);
            at += stage->separator.size;
        }
        if (word.size > 0)
            memcpy(room + at, word.data, word.size);
        at += word.size;
    }
    return text_take(maker, bytes);
}

/* Pads on either side for n-grams of this width: never more than width - 1, because an n-gram of
 * pads alone is of no use. */
static int64_t
padding_of(const struct ngrams *stage, int64_t width)
{
    return stage->padding < 0 || stage->padding > width - 1 ? (stage->pads ? width - 1 : 0)
                                                            : stage->padding;
}

static void
add_row(const struct ngrams *stage, const struct row *row, struct text_maker *maker,
        struct text_parts *parts)
{
    int64_t before = parts->count;

    for (uint32_t k = 0; k < stage->width_count; k++) {
        int64_t width = stage->widths[k], padding = padding_of(stage, width);

        for (int64_t first = -padding; first + width <= row->count + padding; first++)
            text_parts_add(parts, join(stage, row, first, width, maker));
    }
    /* With width - 1 pads every row has n-grams; only a fixed padding can fall short.
     * StringNGramsOp then takes the whole row as one. */
    if (stage->keeps_short && parts->count == before && row->count > 0) {
        int64_t padding = stage->padding > 0 ? stage->padding : 0;

        text_parts_add(parts, join(stage, row, -padding, row->count + 2 * padding, maker));
    }
}

/* The number of rows before an element. */
static int64_t
rows_before(const struct column *column, int64_t element)
{
    for (uint32_t k = 0; k + 1 < column->level_count; k++)
        element = level_begin(&column->levels[k], element);
    return element;
}

static void
map_column(const void *state, const struct column_map *map)
{
    const struct column *from = map->from;
    struct scratch *scratch = map->output->scratch;
    struct text_maker maker = { .scratch = scratch };
    struct text_parts parts = { .scratch = scratch };
    const struct level *last = &from->levels[from->level_count - 1];
    int64_t rows = column_list_count(from, from->level_count - 1);
    int64_t *splits = scratch_array(scratch, (size_t)rows + 1, sizeof *splits);
    struct column *column = map->to;

    splits[0] = 0;
    for (int64_t element = 0, i = 0; element < from->count; element++) {
        int64_t begin, end, past = rows_before(from, element + 1);

        column_value_range(from, element, element + 1, &begin, &end);
        for (; i < past; i++) {
            struct row row = { (const struct byte_view *)from->values + level_begin(last, i),
                               level_length(last, i) };

            if (begin < end) /* TensorFlow does not pad an empty tensor */
                add_row(state, &row, &maker, &parts);
            splits[i + 1] = parts.count;
        }
    }
    *column = *from;
    column->levels[column->level_count - 1] = (struct level){ .uniform = -1, .splits = splits };
    column->value_count = parts.count;
    column->values = parts.list != NULL ? parts.list : scratch_alloc(scratch, 0);
}

static void
close_texts(void *state)
{
    struct ngrams *stage = state;

    free(stage->widths);
    free((void *)(uintptr_t)stage->separator.data);
    free((void *)(uintptr_t)stage->left.data);
    free((void *)(uintptr_t)stage->right.data);
}

static const struct column_wise_ops columns = {
    .read = read_parameters,
    .describe = describe,
    .map = map_column,
    .close = close_texts,
};

const struct content_ops content_ngrams = {
    .name = "ngrams",
    .takes_missing = true,
    .state_bytes = sizeof(struct ngrams),
    .columns = &columns,
    .open = column_wise_open,
    .apply = column_wise_apply,
    .close = column_wise_close,
};
