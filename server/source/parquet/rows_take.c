/* rows_take.c - see rows_private.h.
 *
 * Rows here and there are misses of the cache: those of a block are on their way together. */
#include "source/parquet/rows_private.h"

#include "source/files/fetch.h"
#include "source/parquet/bits.h"

enum {
    HELD_BYTES = 4 << 20, /* a dictionary that is larger is not held for a task */
    BLOCK = 64,           /* rows: what they expect stays in the cache until it is taken */
    LINE_BYTES = 64,
    LINES_MAX = 8 /* the processor itself goes on then */
};

/* A column of a row group. */
struct part {
    const struct parquet_column *column;
    const struct parquet_tuples *tuples; /* NULL: its values are in the column */
    const struct parquet_field *field;
    const struct parquet_field *made; /* of its words; NULL: nothing */
};

static uint32_t
block_end(uint32_t begin, uint32_t count)
{
    return count - begin < BLOCK ? count : begin + BLOCK;
}

/* They are wanted soon. */
static inline void
expect_bytes(const uint8_t *from, uint64_t bytes)
{
    for (uint64_t at = 0; at < bytes && at < LINES_MAX * LINE_BYTES; at += LINE_BYTES)
        __builtin_prefetch(from + at);
    if (bytes > 0)
        __builtin_prefetch(from + bytes - 1);
}

/* Values of one width; inlined for each, so that a copy is a move. */
static inline __attribute__((always_inline)) void
take_width(const struct stretch *stretch, const uint8_t *from, uint8_t *to, size_t width)
{
    for (uint32_t i = 0; i < stretch->count; i++)
        memcpy(to + (size_t)stretch->rows[i].to * width, from + stretch->rows[i].row * width,
               width);
}

static void
take_numbers(const struct stretch *stretch, const struct part *part, uint8_t *to, size_t width)
{
    const uint8_t *from = part->column->values;

    if (part->tuples != NULL)
        parquet_tuples_take(part->tuples, part->field, stretch->rows, stretch->count, width, to);
    else if (stretch->is_straight)
        memcpy(to + (size_t)stretch->rows[0].to * width, from + stretch->rows[0].row * width,
               stretch->count * width);
    else if (width == 1)
        take_width(stretch, from, to, 1);
    else if (width == 2)
        take_width(stretch, from, to, 2);
    else if (width == 4)
        take_width(stretch, from, to, 4);
    else
        take_width(stretch, from, to, 8);
}

/* The number of a word. */
static uint64_t
number_of(const struct part *part, uint64_t row)
{
    return part->tuples != NULL ? parquet_tuple_value(part->tuples, part->field, row)
                                : part->column->numbers[row];
}

/* A text of a part, in *ret_base. */
static struct parquet_text
text_of(const struct part *part, uint64_t row, const uint8_t **ret_base)
{
    const struct parquet_column *column = part->column;
    struct parquet_text text;
    uint64_t value;

    if (part->tuples == NULL)
        return parquet_text_of(column, row, ret_base);
    value = parquet_tuple_value(part->tuples, part->field, row);
    if (column->words != NULL) {
        *ret_base = column->words->texts;
        return column->words->list[value];
    }
    *ret_base = column->texts;
    memcpy(&text, &value, sizeof text);
    return text;
}

/* Short texts are copied as 16 bytes or 32, which both sides have. */
static uint8_t *
copy_text(const uint8_t *from, size_t bytes, uint8_t *to, struct byte_view *ret_view)
{
    if (bytes <= 16)
        memcpy(to, from, 16);
    else if (bytes <= 32)
        memcpy(to, from, 32);
    else
        memcpy(to, from, bytes);
    *ret_view = (struct byte_view){ to, bytes };
    return to + bytes;
}

/* Texts that follow each other in the column. */
static void
copy_texts(const struct taking *taking, const struct parquet_column *column, uint64_t begin,
           uint64_t count, struct byte_view *to)
{
    const uint8_t *base;
    uint64_t bytes = 0;
    uint8_t *copy;

    for (uint64_t i = 0; i < count; i++)
        bytes += parquet_text_of(column, begin + i, &base).bytes;
    copy = scratch_alloc(taking->scratch, bytes + PARQUET_SLACK);
    for (uint64_t i = 0; i < count; i++) {
        struct parquet_text text = parquet_text_of(column, begin + i, &base);

        copy = copy_text(base + text.offset, text.bytes, copy, &to[i]);
    }
}

/* The numbers of some words, with the number of their dictionary, which is `high`. */
static void
take_word_numbers(const struct part *part, const struct parquet_row *rows, uint32_t count,
                  uint32_t high, uint32_t *to)
{
    struct parquet_field field;

    if (part->tuples != NULL) {
        field = *part->field;
        field.base += high;
        parquet_tuples_take(part->tuples, &field, rows, count, sizeof *to, to);
    } else {
        for (uint32_t i = 0; i < count; i++)
            to[rows[i].to] = part->column->numbers[rows[i].row] | high;
    }
}

/* Integers that were made of words go with their numbers. */
static void
take_made(const struct taking *taking, const struct stretch *stretch, const struct part *part,
          struct words_note *note)
{
    int32_t *made = (int32_t *)(uintptr_t)note->made;

    if (part->made == NULL || (made != NULL && note->key != part->made->key))
        return;
    if (made == NULL) {
        note->key = part->made->key;
        note->made = made = scratch_array(taking->scratch, (size_t)note->count, sizeof *made);
        for (int64_t i = 0; i < note->count; i++)
            made[i] = WORDS_UNMADE;
    }
    parquet_tuples_take(part->tuples, part->made, stretch->rows, stretch->count, sizeof *made,
                        made);
}

/* The numbers of words, and views of them where somebody needs these. The dictionary stays until
 * the task is done. */
static void
take_words(const struct taking *taking, const struct stretch *stretch, const struct part *part,
           struct words_note *note, struct byte_view *to)
{
    struct parquet_words *words = part->column->words;
    uint32_t *numbers = (uint32_t *)(uintptr_t)note->numbers, high = taking->stretch << WORDS_SHIFT;

    if (note->dictionaries[taking->stretch] == NULL) {
        parquet_words_hold(words);
        scratch_keep(taking->scratch, parquet_words_release, words);
        note->dictionaries[taking->stretch] = &words->words;
    }
    take_made(taking, stretch, part, note);
    for (uint32_t begin = 0; begin < stretch->count; begin += WORDS_BLOCK) {
        const struct parquet_row *rows = &stretch->rows[begin];
        uint32_t count =
            stretch->count - begin < WORDS_BLOCK ? stretch->count - begin : WORDS_BLOCK;

        take_word_numbers(part, rows, count, high, numbers);
        if (note->lacks_texts)
            continue;
        /* First all numbers, then all words: misses of the cache are waited for together. */
        for (uint32_t i = 0; i < count; i++)
            __builtin_prefetch(&words->list[numbers[rows[i].to] & (WORDS_MAX - 1)]);
        for (uint32_t i = 0; i < count; i++) {
            int64_t at = rows[i].to;
            struct parquet_text text = words->list[numbers[at] & (WORDS_MAX - 1)];

            to[at] = (struct byte_view){ words->texts + text.offset, text.bytes };
            __builtin_prefetch(to[at].data);
        }
    }
}

/* Where the texts of a stretch lie in the column. Returns their bytes. */
static uint64_t
find_texts(const struct stretch *stretch, const struct part *part, struct byte_view *to)
{
    const struct parquet_words *words = part->column->words;
    const uint8_t *base;
    uint64_t bytes = 0;

    for (uint32_t begin = 0, end; begin < stretch->count; begin = end) {
        end = block_end(begin, stretch->count);
        for (uint32_t i = begin; i < end && words != NULL; i++)
            __builtin_prefetch(&words->list[number_of(part, stretch->rows[i].row)]);
        for (uint32_t i = begin; i < end; i++) {
            struct parquet_text text = text_of(part, stretch->rows[i].row, &base);

            to[stretch->rows[i].to] = (struct byte_view){ base + text.offset, text.bytes };
            bytes += text.bytes;
        }
    }
    return bytes;
}

static void
take_texts(const struct taking *taking, const struct stretch *stretch, const struct part *part,
           struct byte_view *to)
{
    uint64_t bytes = find_texts(stretch, part, to);
    uint8_t *copy = scratch_alloc(taking->scratch, bytes + PARQUET_SLACK);

    for (uint32_t begin = 0, end; begin < stretch->count; begin = end) {
        end = block_end(begin, stretch->count);
        for (uint32_t i = begin; i < end && !stretch->is_straight; i++)
            expect_bytes(to[stretch->rows[i].to].data, to[stretch->rows[i].to].size);
        for (uint32_t i = begin; i < end; i++) {
            struct byte_view *text = &to[stretch->rows[i].to];

            copy = copy_text(text->data, text->size, copy, text);
        }
    }
}

/* The counts of the lists of a stretch, and where their values begin. Returns how many these are.
 */
static uint64_t
find_lists(const struct stretch *stretch, const struct parquet_column *column, size_t width,
           struct item *to)
{
    const uint8_t *values =
        column->words != NULL ? (const uint8_t *)column->numbers : column->values;
    uint64_t count = 0;

    for (uint32_t begin = 0, end; begin < stretch->count; begin = end) {
        end = block_end(begin, stretch->count);
        for (uint32_t i = begin; i < end && !stretch->is_straight; i++)
            __builtin_prefetch(&column->splits[stretch->rows[i].row]);
        for (uint32_t i = begin; i < end; i++) {
            const uint64_t *splits = &column->splits[stretch->rows[i].row];

            to[stretch->rows[i].to] =
                (struct item){ values + splits[0] * width, splits[1] - splits[0] };
            count += splits[1] - splits[0];
        }
    }
    return count;
}

/* The lists of a stretch, copied side by side. */
static void
take_lists(const struct taking *taking, const struct stretch *stretch,
           const struct parquet_column *column, tundish_dtype dtype, struct item *to)
{
    size_t width = parquet_output_bytes(dtype);
    size_t kept = column->words != NULL ? sizeof *column->numbers : parquet_value_bytes(dtype);
    uint64_t count = find_lists(stretch, column, kept, to);
    uint8_t *copy = scratch_array(taking->scratch, count + LIST_SLACK, width);

    for (uint32_t begin = 0, end; begin < stretch->count; begin = end) {
        end = block_end(begin, stretch->count);
        for (uint32_t i = begin; i < end && !stretch->is_straight; i++)
            expect_bytes(to[stretch->rows[i].to].values, to[stretch->rows[i].to].count * kept);
        for (uint32_t i = begin; i < end; i++) {
            struct item *item = &to[stretch->rows[i].to];
            uint8_t *next = copy + item->count * width;

            if (dtype == TUNDISH_STRING)
                copy_texts(taking, column, column->splits[stretch->rows[i].row], item->count,
                           (struct byte_view *)(void *)copy);
            else
                (void)parquet_list_copy(item->values, item->count, width, copy);
            item->values = copy;
            copy = next;
        }
    }
}

static void
reject_nulls(const struct taking *taking, const struct stretch *stretch,
             const struct parquet_column *column, const char *name)
{
    for (uint32_t i = 0; i < stretch->count && column->nulls != NULL; i++) {
        uint64_t row = stretch->rows[i].row;
        uint64_t begin = column->splits == NULL ? row : column->splits[row];
        uint64_t end = column->splits == NULL ? row + 1 : column->splits[row + 1];

        while (begin < end && column->nulls[begin] == 0)
            begin++;
        if (begin < end)
            frame_reject(taking->read->output, stretch->rows[i].to,
                         "%s, row group %u, row %llu of it: column '%s' is null and has no "
                         "default_value",
                         stretch->file->name, stretch->group,
                         (unsigned long long)stretch->named[i].row, name);
    }
}

/* The note of a column, begun when a word first comes: of other texts it has no number. */
static struct words_note *
note_of(const struct taking *taking, uint32_t index)
{
    struct words_note *note = &taking->notes[index];
    size_t count = (size_t)taking->read->count;

    if (note->numbers == NULL) {
        uint32_t *numbers = scratch_array(taking->scratch, count, sizeof *numbers);

        memset(numbers, 0xFF, count * sizeof *numbers);
        *note = (struct words_note){ .texts = taking->values[index],
                                     .count = taking->read->count,
                                     .lacks_texts = plan_by_words(taking->read->node, index),
                                     .numbers = numbers,
                                     .dictionary_count = taking->stretch_count };
        note->dictionaries =
            scratch_array(taking->scratch, note->dictionary_count, sizeof *note->dictionaries);
        memset(note->dictionaries, 0, note->dictionary_count * sizeof *note->dictionaries);
    }
    return note;
}

/* Rows here and there are misses of the cache, one for each column: those of a column are on their
 * way while the column before it is taken. */
static void
expect_column(const struct stretch *stretch, const struct parquet_column *column,
              tundish_dtype dtype)
{
    const uint8_t *from = column->words != NULL ? (const uint8_t *)column->numbers : column->values;
    size_t width = column->words != NULL ? sizeof *column->numbers : parquet_value_bytes(dtype);

    if (stretch->is_straight || column->splits != NULL)
        return;
    for (uint32_t i = 0; i < stretch->count; i++)
        __builtin_prefetch(from + stretch->rows[i].row * width);
}

static struct part
part_of(const struct row_group *group, uint32_t index)
{
    struct part part = { .column = &group->columns[index].column };

    if (group->tuples != NULL && group->tuples->fields[index].bytes > 0) {
        part.tuples = group->tuples;
        part.field = &group->tuples->fields[index];
        if (parquet_tuples_made(group->tuples, index)->bytes > 0)
            part.made = parquet_tuples_made(group->tuples, index);
    }
    return part;
}

static void
take_column(const struct taking *taking, const struct stretch *stretch, const struct part *part,
            uint32_t index)
{
    const struct parquet_wanted *wanted = &taking->columns->columns[index];
    const struct parquet_column *column = part->column;
    void *to = taking->values[index];

    if (wanted->is_list)
        take_lists(taking, stretch, column, wanted->dtype, to);
    else if (taking->notes != NULL && column->words != NULL && column->words->bytes <= HELD_BYTES)
        take_words(taking, stretch, part, note_of(taking, index), to);
    else if (wanted->dtype == TUNDISH_STRING)
        take_texts(taking, stretch, part, to);
    else
        take_numbers(stretch, part, to, parquet_output_bytes(wanted->dtype));
    reject_nulls(taking, stretch, column, wanted->name);
}

static void
take_columns(const struct taking *taking, const struct stretch *stretch,
             const struct row_group *group)
{
    uint32_t count = taking->columns->count;

    for (uint32_t i = 0; i < count; i++) {
        const struct part part = part_of(group, i);

        if (i + 1 < count && group->tuples == NULL)
            expect_column(stretch, &group->columns[i + 1].column,
                          taking->columns->columns[i + 1].dtype);
        take_column(taking, stretch, &part, i);
    }
}

/* The rows of a stretch from `begin` on. */
static struct stretch
block_of(const struct stretch *stretch, uint32_t begin)
{
    struct stretch block = *stretch;

    block.rows += begin;
    block.named += begin;
    block.count = block_end(begin, stretch->count) - begin;
    return block;
}

/* Tuples of a block stay in the cache while their columns are taken; those of the next one are on
 * their way meanwhile. */
static void
take_tuples(const struct taking *taking, const struct stretch *stretch,
            const struct row_group *group)
{
    struct stretch block = block_of(stretch, 0), next;

    parquet_tuples_expect(group->tuples, block.rows, block.count);
    for (uint32_t end = block.count; block.count > 0; end += block.count) {
        next = block_of(stretch, end);
        parquet_tuples_expect(group->tuples, next.rows, next.count);
        take_columns(taking, &block, group);
        block = next;
    }
}

void
parquet_rows_take(const struct taking *taking, const struct stretch *stretch,
                  const struct row_group *group)
{
    if (group->tuples != NULL)
        take_tuples(taking, stretch, group);
    else
        take_columns(taking, stretch, group);
}
