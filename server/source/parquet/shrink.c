/* shrink.c - see shrink.h. */
#include "source/parquet/shrink.h"

#include <stdlib.h>

#include "core/memory.h"
#include "source/parquet/bits.h"

/* A column on its way. */
struct shrinking {
    struct parquet_tuples *tuples; /* those that stay; NULL: values are in the column */
    const struct parquet_field *field;
    struct parquet_column *column;
    size_t width; /* of a value in the column */
    const struct parquet_stay *stay;
};

static void
keep_tuples(struct parquet_tuples *tuples, const struct parquet_stay *stay)
{
    uint64_t stride = tuples->stride;
    uint8_t *kept = tnd_alloc_scattered(stay->count * stride);

    for (uint32_t i = 0; i < stay->count; i++)
        memcpy(kept + i * stride, tuples->tuples + stay->rows[i] * stride, stride);
    free(tuples->tuples);
    tuples->tuples = kept;
    tuples->bytes = stay->count * stride;
}

static void
put_value(const struct shrinking *of, uint64_t row, uint64_t value)
{
    memcpy(of->tuples->tuples + row * of->tuples->stride + of->field->at, &value, of->field->bytes);
}

static uint64_t
moved(void *from, uint64_t begin, uint64_t count, uint64_t to, size_t width)
{
    memmove((uint8_t *)from + to * width, (uint8_t *)from + begin * width, count * width);
    return to + count;
}

static bool
is_in_column(const struct shrinking *of)
{
    return of->tuples == NULL || of->column->splits != NULL;
}

/* Values move towards the beginning; rows ascend. Inlined for each width. */
static inline __attribute__((always_inline)) void
keep_width(const struct parquet_stay *stay, uint8_t *values, size_t width)
{
    for (uint32_t i = 0; i < stay->count; i++)
        memcpy(values + i * width, values + stay->rows[i] * width, width);
}

static void
keep_values(const struct shrinking *of)
{
    struct parquet_column *column = of->column;
    void *values = column->words != NULL ? (void *)column->numbers : column->values;

    if (of->width == 1)
        keep_width(of->stay, values, 1);
    else if (of->width == 2)
        keep_width(of->stay, values, 2);
    else if (of->width == 4)
        keep_width(of->stay, values, 4);
    else
        keep_width(of->stay, values, 8);
    values = tnd_realloc(values, (uint64_t)of->stay->count + 8, of->width);
    if (column->words != NULL)
        column->numbers = values;
    else
        column->values = values;
}

/* Lists move towards the beginning, so where the next one begins is not overwritten yet. */
static void
keep_lists(const struct shrinking *of)
{
    struct parquet_column *column = of->column;
    uint64_t at = 0;

    for (uint32_t i = 0; i < of->stay->count; i++) {
        uint64_t begin = column->splits[of->stay->rows[i]];
        uint64_t count = column->splits[of->stay->rows[i] + 1] - begin;

        if (column->nulls != NULL)
            (void)moved(column->nulls, begin, count, at, 1);
        column->splits[i] = at;
        at = moved(column->words != NULL ? (void *)column->numbers : column->values, begin, count,
                   at, of->width);
    }
    column->splits[of->stay->count] = at;
    column->splits = tnd_realloc(column->splits, of->stay->count + 1, sizeof *column->splits);
    if (column->words != NULL)
        column->numbers = tnd_realloc(column->numbers, at + 8, sizeof *column->numbers);
    else
        column->values = tnd_realloc(column->values, at + 8, of->width);
    column->value_count = at;
}

static void
keep_nulls(const struct shrinking *of)
{
    struct parquet_column *column = of->column;

    if (column->nulls != NULL && column->splits == NULL)
        for (uint32_t i = 0; i < of->stay->count; i++)
            column->nulls[i] = column->nulls[of->stay->rows[i]];
    if (column->nulls != NULL)
        column->nulls = tnd_realloc(column->nulls, column->value_count + 8, 1);
}

static struct parquet_text
text_at(const struct shrinking *of, uint64_t value)
{
    struct parquet_text text;
    uint64_t bits;

    if (is_in_column(of))
        return ((const struct parquet_text *)of->column->values)[value];
    bits = parquet_tuple_value(of->tuples, of->field, value);
    memcpy(&text, &bits, sizeof text);
    return text;
}

static void
put_text(const struct shrinking *of, uint64_t value, struct parquet_text text)
{
    uint64_t bits;

    memcpy(&bits, &text, sizeof bits);
    if (is_in_column(of))
        ((struct parquet_text *)of->column->values)[value] = text;
    else
        put_value(of, value, bits);
}

/* Several values may share a text: where each with its own took more, they stay as they are.
 * Returns the room of the texts. */
static uint64_t
keep_texts(const struct shrinking *of, uint64_t room)
{
    struct parquet_column *column = of->column;
    uint64_t bytes = 0;
    uint8_t *texts;
    uint32_t used = 0;

    for (uint64_t i = 0; i < column->value_count; i++)
        bytes += text_at(of, i).bytes;
    if (bytes + PARQUET_SLACK >= room || bytes > UINT32_MAX)
        return room;
    texts = tnd_zalloc(bytes + PARQUET_SLACK, 1);
    for (uint64_t i = 0; i < column->value_count; i++) {
        struct parquet_text text = text_at(of, i);

        memcpy(texts + used, column->texts + text.offset, text.bytes);
        put_text(of, i, (struct parquet_text){ used, text.bytes });
        used += text.bytes;
    }
    free(column->texts);
    column->texts = texts;
    return bytes + PARQUET_SLACK;
}

static uint32_t
number_at(const struct shrinking *of, uint64_t value)
{
    return is_in_column(of) ? of->column->numbers[value]
                            : (uint32_t)parquet_tuple_value(of->tuples, of->field, value);
}

/* The words that have a new number, which begins at 1. */
static struct parquet_words *
copy_words(const struct parquet_words *from, const uint32_t *numbers, uint32_t count,
           uint64_t bytes)
{
    struct parquet_words *words = tnd_alloc(sizeof *words);
    struct parquet_text *list = tnd_alloc(count * sizeof *list);
    uint32_t used = 0;

    *words = (struct parquet_words){
        .words = { .count = count, .text = from->words.text, .expect = from->words.expect },
        .holds = 1,
        .list = list,
        .texts = tnd_zalloc(bytes + PARQUET_SLACK, 1),
        .text_bytes = bytes + PARQUET_SLACK,
        .bytes = bytes + PARQUET_SLACK + count * sizeof *list + words_memo_bytes(count),
    };
    for (uint32_t i = 0; i < from->words.count; i++) {
        struct parquet_text text = from->list[i];

        if (numbers[i] == 0)
            continue;
        memcpy(words->texts + used, from->texts + text.offset, text.bytes);
        list[numbers[i] - 1] = (struct parquet_text){ used, text.bytes };
        used += text.bytes;
    }
    words_carry(&from->words, &words->words, numbers);
    return words;
}

/* A dictionary of which less than half is used becomes a smaller one. */
static void
keep_words(const struct shrinking *of)
{
    struct parquet_column *column = of->column;
    struct parquet_words *words = column->words, *fewer;
    uint32_t *numbers = tnd_zalloc(words->words.count, sizeof *numbers), count = 0;
    uint64_t bytes = 0;

    for (uint64_t i = 0; i < column->value_count; i++)
        numbers[number_at(of, i)] = 1;
    for (uint32_t i = 0; i < words->words.count; i++)
        if (numbers[i] != 0) {
            numbers[i] = ++count;
            bytes += words->list[i].bytes;
        }
    if (count > 0 && count < words->words.count / 2 && bytes < words->bytes) {
        fewer = copy_words(words, numbers, count, bytes);
        for (uint64_t i = 0; i < column->value_count; i++)
            if (is_in_column(of))
                column->numbers[i] = numbers[column->numbers[i]] - 1;
            else
                put_value(of, i, numbers[number_at(of, i)] - 1);
        parquet_words_release(words);
        column->words = fewer;
    }
    free(numbers);
}

/* The bytes of a column without its words, and without its texts: see column.c. */
static uint64_t
plain_bytes(const struct shrinking *of)
{
    const struct parquet_column *column = of->column;

    return column->value_count * (column->nulls != NULL) +
           (column->splits != NULL ? column->row_count * sizeof *column->splits : 0) +
           (is_in_column(of) ? column->value_count * of->width : 0);
}

static void
keep_column(const struct shrinking *of)
{
    struct parquet_column *column = of->column;

    column->row_count = column->value_count = of->stay->count;
    if (column->splits != NULL)
        keep_lists(of);
    else if (of->tuples == NULL)
        keep_values(of);
    keep_nulls(of);
    if (column->words != NULL)
        keep_words(of);
    else if (column->texts != NULL)
        column->text_bytes = keep_texts(of, column->text_bytes);
    column->bytes =
        plain_bytes(of) + column->text_bytes + (column->words != NULL ? column->words->bytes : 0);
}

static size_t
width_of(const struct parquet_member *member)
{
    return member->column->words != NULL ? sizeof *member->column->numbers
                                         : parquet_value_bytes(member->dtype);
}

void
parquet_column_shrink(const struct parquet_member *member, const struct parquet_stay *stay)
{
    keep_column(
        &(struct shrinking){ .column = member->column, .width = width_of(member), .stay = stay });
}

void
parquet_tuples_shrink(struct parquet_tuples *tuples, const struct parquet_member *members,
                      uint32_t member_count, const struct parquet_stay *stay)
{
    keep_tuples(tuples, stay);
    for (uint32_t i = 0; i < member_count; i++)
        keep_column(&(struct shrinking){ .tuples = tuples,
                                         .field = &tuples->fields[i],
                                         .column = members[i].column,
                                         .width = width_of(&members[i]),
                                         .stay = stay });
}
