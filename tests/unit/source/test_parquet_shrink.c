/* test_parquet_shrink.c - rows that stay in tuples are the same, and the others' memory is gone. */
#include "unit/test_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "core/memory.h"
#include "source/parquet/bits.h"
#include "source/parquet/shrink.h"

enum { ROWS = 1000, STAY = 90, EACH = 11 };

/* Every eleventh row stays. */
static void
shrink(struct parquet_tuples *tuples, const struct parquet_member *members, uint32_t count)
{
    uint32_t rows[STAY];

    for (uint32_t i = 0; i < STAY; i++)
        rows[i] = i * EACH;
    parquet_tuples_shrink(tuples, members, count, &(struct parquet_stay){ rows, STAY });
    assert_int_equal(tuples->bytes, (uint64_t)STAY * tuples->stride);
}

/* Text i is its number. */
static uint8_t *
make_texts(struct parquet_text *list, uint32_t count)
{
    uint8_t *texts = tnd_zalloc((size_t)count * 8 + PARQUET_SLACK, 1);

    for (uint32_t i = 0; i < count; i++) {
        int bytes = snprintf((char *)texts + (size_t)i * 8, 8, "%u", i);

        list[i] = (struct parquet_text){ i * 8, (uint32_t)bytes };
    }
    return texts;
}

static void
assert_text(const uint8_t *base, struct parquet_text text, uint32_t number)
{
    char expected[16];

    assert_int_equal(text.bytes, snprintf(expected, sizeof expected, "%u", number));
    assert_memory_equal(base + text.offset, expected, text.bytes);
}

static void
numbers_and_nulls_stay(void **state)
{
    struct parquet_column column = { .row_count = ROWS,
                                     .value_count = ROWS,
                                     .values = tnd_zalloc(ROWS, sizeof(int64_t)),
                                     .nulls = tnd_zalloc(ROWS + 8, 1),
                                     .bytes = ROWS * (sizeof(int64_t) + 1) };
    struct parquet_member member = { .column = &column, .dtype = TUNDISH_INT64 };
    struct parquet_tuples *tuples;

    (void)state;
    for (uint32_t i = 0; i < ROWS; i++) {
        ((int64_t *)column.values)[i] = 5 * (int64_t)i - 7;
        column.nulls[i] = i % 3 == 0;
    }
    tuples = parquet_tuples_open(&member, 1, ROWS);
    shrink(tuples, &member, 1);
    for (uint32_t i = 0; i < STAY; i++) {
        assert_int_equal((int64_t)parquet_tuple_value(tuples, &tuples->fields[0], i),
                         5 * (int64_t)(i * EACH) - 7);
        assert_int_equal(column.nulls[i], i * EACH % 3 == 0);
    }
    assert_int_equal(column.bytes, STAY);
    parquet_tuples_close(tuples);
    parquet_column_close(&column);
}

static void
texts_lose_those_of_other_rows(void **state)
{
    struct parquet_text *list = tnd_zalloc(ROWS, sizeof *list);
    uint64_t texts_bytes = ROWS * 8 + PARQUET_SLACK;
    struct parquet_column column = { .row_count = ROWS,
                                     .value_count = ROWS,
                                     .values = list,
                                     .texts = make_texts(list, ROWS),
                                     .text_bytes = texts_bytes,
                                     .bytes = ROWS * sizeof *list + texts_bytes };
    struct parquet_member member = { .column = &column, .dtype = TUNDISH_STRING };
    struct parquet_tuples *tuples = parquet_tuples_open(&member, 1, ROWS);

    (void)state;
    assert_int_equal(column.bytes, texts_bytes);
    shrink(tuples, &member, 1);
    for (uint32_t i = 0; i < STAY; i++) {
        uint64_t bits = parquet_tuple_value(tuples, &tuples->fields[0], i);
        struct parquet_text text;

        memcpy(&text, &bits, sizeof text);
        assert_text(column.texts, text, i * EACH);
    }
    assert_true(column.bytes <= STAY * 3 + PARQUET_SLACK);
    parquet_tuples_close(tuples);
    parquet_column_close(&column);
}

/* Each its own would take more than all have now. */
static void
a_text_of_many_rows_stays_one(void **state)
{
    struct parquet_text *list = tnd_zalloc(ROWS, sizeof *list);
    struct parquet_column column = { .row_count = ROWS,
                                     .value_count = ROWS,
                                     .values = list,
                                     .texts = tnd_zalloc(500 + PARQUET_SLACK, 1),
                                     .text_bytes = 500 + PARQUET_SLACK,
                                     .bytes = ROWS * sizeof *list + 500 + PARQUET_SLACK };
    struct parquet_member member = { .column = &column, .dtype = TUNDISH_STRING };
    const uint8_t *texts = column.texts;
    struct parquet_tuples *tuples;

    (void)state;
    for (uint32_t i = 0; i < ROWS; i++)
        list[i] = (struct parquet_text){ 0, 500 };
    tuples = parquet_tuples_open(&member, 1, ROWS);
    shrink(tuples, &member, 1);
    assert_ptr_equal(column.texts, texts);
    assert_int_equal(column.bytes, 500 + PARQUET_SLACK);
    parquet_tuples_close(tuples);
    parquet_column_close(&column);
}

static struct parquet_words *
make_words(uint32_t count)
{
    struct parquet_words *words = tnd_zalloc(1, sizeof *words);

    words->list = tnd_zalloc(count, sizeof *words->list);
    *words = (struct parquet_words){ .words = { .count = count },
                                     .holds = 1,
                                     .list = words->list,
                                     .texts = make_texts(words->list, count),
                                     .bytes = count * (8 + sizeof *words->list) };
    return words;
}

/* Whoever holds the larger dictionary reads on. */
static void
dictionaries_lose_words_that_no_row_has(void **state)
{
    struct parquet_words *words = make_words(ROWS);
    struct parquet_column column = { .row_count = ROWS,
                                     .value_count = ROWS,
                                     .numbers = tnd_zalloc(ROWS + 8, sizeof(uint32_t)),
                                     .words = words,
                                     .bytes = ROWS * sizeof(uint32_t) + words->bytes };
    struct parquet_member member = { .column = &column, .dtype = TUNDISH_STRING };
    struct parquet_tuples *tuples;

    (void)state;
    for (uint32_t i = 0; i < ROWS; i++)
        column.numbers[i] = (i + 500) % ROWS;
    parquet_words_hold(words);
    tuples = parquet_tuples_open(&member, 1, ROWS);
    shrink(tuples, &member, 1);
    assert_int_equal(column.words->words.count, STAY);
    assert_int_equal(column.bytes, column.words->bytes);
    assert_true(column.bytes < words->bytes / 2);
    for (uint32_t i = 0; i < STAY; i++) {
        uint64_t number = parquet_tuple_value(tuples, &tuples->fields[0], i);

        assert_text(column.words->texts, column.words->list[number], (i * EACH + 500) % ROWS);
    }
    assert_text(words->texts, words->list[999], 999);
    parquet_words_release(words);
    parquet_tuples_close(tuples);
    parquet_column_close(&column);
}

/* Row i has i % 4 values, which are i. */
static void
lists_lose_those_of_other_rows(void **state)
{
    struct parquet_text *list = tnd_zalloc(ROWS, sizeof *list);
    struct parquet_text *values = tnd_zalloc(ROWS * 4, sizeof *values);
    struct parquet_column column = { .row_count = ROWS,
                                     .values = values,
                                     .texts = make_texts(list, ROWS),
                                     .text_bytes = ROWS * 8 + PARQUET_SLACK,
                                     .splits = tnd_zalloc(ROWS + 1, sizeof(uint64_t)),
                                     .nulls = tnd_zalloc(ROWS * 4, 1) };
    struct parquet_member member = { .column = &column, .dtype = TUNDISH_STRING };
    struct parquet_tuples *tuples;

    (void)state;
    for (uint32_t i = 0; i < ROWS; i++) {
        for (uint32_t k = 0; k < i % 4; k++) {
            column.nulls[column.value_count] = i % 2 == 1 && k == 0;
            values[column.value_count++] = list[i];
        }
        column.splits[i + 1] = column.value_count;
    }
    free(list);
    column.bytes = ROWS * sizeof(uint64_t) + column.value_count * (sizeof *values + 1) + ROWS * 8 +
                   PARQUET_SLACK;
    tuples = parquet_tuples_open(&member, 1, ROWS);
    shrink(tuples, &member, 1);
    for (uint32_t i = 0, at = 0; i < STAY; i++) {
        uint32_t row = i * EACH;

        assert_int_equal(column.splits[i], at);
        assert_int_equal(column.splits[i + 1], at + row % 4);
        for (uint32_t k = 0; k < row % 4; k++, at++) {
            assert_text(column.texts, ((const struct parquet_text *)column.values)[at], row);
            assert_int_equal(column.nulls[at], row % 2 == 1 && k == 0);
        }
    }
    assert_true(column.bytes < ROWS * 8 / 2);
    parquet_tuples_close(tuples);
    parquet_column_close(&column);
}

TEST_FILE(test_parquet_shrink)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_and_nulls_stay),
        cmocka_unit_test(texts_lose_those_of_other_rows),
        cmocka_unit_test(a_text_of_many_rows_stays_one),
        cmocka_unit_test(dictionaries_lose_words_that_no_row_has),
        cmocka_unit_test(lists_lose_those_of_other_rows),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
