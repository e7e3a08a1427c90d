/* test_parquet_tuples.c - columns that become tuples give the values that they had. */
#include "unit/test_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "core/memory.h"
#include "source/parquet/tuples.h"

enum { ROWS = 1000, TAKEN = 300 };

/* Row i of a column: numbers from `base` on, `range` of them, in no order. */
static uint64_t
number_at(uint64_t base, uint64_t range, uint64_t row)
{
    return row == 0 ? base : row == 1 ? base + range : base + row * 0x9E3779B97F4A7C15 % range;
}

static struct parquet_column
column_of(uint64_t base, uint64_t range, size_t width)
{
    struct parquet_column column = { .row_count = ROWS,
                                     .value_count = ROWS,
                                     .values = tnd_alloc(ROWS * width) };

    column.bytes = ROWS * width;
    for (uint64_t i = 0; i < ROWS; i++) {
        uint64_t number = number_at(base, range, i);

        memcpy((uint8_t *)column.values + i * width, &number, width);
    }
    return column;
}

static void
rows_here_and_there(struct parquet_row *rows)
{
    for (uint32_t i = 0; i < TAKEN; i++)
        rows[i] = (struct parquet_row){ (uint64_t)i * 7919 % ROWS, TAKEN - 1 - i };
}

static void
assert_taken(const struct parquet_tuples *tuples, uint32_t index, uint64_t base, uint64_t range,
             size_t width)
{
    struct parquet_row rows[TAKEN];
    uint8_t *taken = tnd_zalloc(TAKEN, width);

    rows_here_and_there(rows);
    parquet_tuples_expect(tuples, rows, TAKEN);
    parquet_tuples_take(tuples, &tuples->fields[index], rows, TAKEN, width, taken);
    for (uint32_t i = 0; i < TAKEN; i++) {
        uint64_t expected = number_at(base, range, rows[i].row);
        uint64_t one = parquet_tuple_value(tuples, &tuples->fields[index], rows[i].row);

        assert_memory_equal(taken + (size_t)rows[i].to * width, &expected, width);
        assert_memory_equal(&one, &expected, width);
    }
    free(taken);
}

static const struct {
    tundish_dtype dtype;
    uint64_t base, range;
    uint32_t bytes; /* that it takes */
} kinds[] = {
    { TUNDISH_INT64, 5, 0xFF, 1 },
    { TUNDISH_INT64, (uint64_t)-130, 0x100, 2 },
    { TUNDISH_INT64, (uint64_t)INT64_MIN, 0x10000, 4 },
    { TUNDISH_INT64, (uint64_t)INT64_MIN, UINT64_MAX, 8 },
    { TUNDISH_UINT64, (uint64_t)INT64_MAX - 3, 9, 8 },
    { TUNDISH_INT32, (uint64_t)-70000, 0xFFFF, 2 },
    { TUNDISH_UINT32, 0x7FFFFFF0, 0x20, 4 },
    { TUNDISH_INT16, (uint64_t)-4, 9, 1 },
    { TUNDISH_UINT8, 0, 0xFF, 1 },
    { TUNDISH_FLOAT64, 0, 3, 8 },
    { TUNDISH_FLOAT32, 0, 3, 4 },
    { TUNDISH_BOOL, 0, 1, 1 },
};

enum { KINDS = sizeof kinds / sizeof *kinds };

static void
numbers_take_the_bytes_that_their_range_needs_and_stay_the_same(void **state)
{
    struct parquet_column columns[KINDS];
    struct parquet_member members[KINDS];
    struct parquet_tuples *tuples;

    (void)state;
    for (uint32_t i = 0; i < KINDS; i++) {
        columns[i] = column_of(kinds[i].base, kinds[i].range, parquet_value_bytes(kinds[i].dtype));
        members[i] = (struct parquet_member){ .column = &columns[i], .dtype = kinds[i].dtype };
    }
    tuples = parquet_tuples_open(members, KINDS, ROWS);
    for (uint32_t i = 0; i < KINDS; i++) {
        assert_int_equal(tuples->fields[i].bytes, kinds[i].bytes);
        assert_taken(tuples, i, kinds[i].base, kinds[i].range, parquet_value_bytes(kinds[i].dtype));
        assert_null(columns[i].values);
        assert_int_equal(columns[i].bytes, 0);
        parquet_column_close(&columns[i]);
    }
    assert_int_equal(tuples->bytes, (uint64_t)ROWS * tuples->stride);
    parquet_tuples_close(tuples);
}

/* Words of a dictionary that nobody looks into: their numbers are what is kept. */
static void
words_become_their_numbers(void **state)
{
    const uint32_t counts[] = { 256, 257, 70000 };
    const uint32_t bytes[] = { 1, 2, 4 };

    (void)state;
    for (size_t k = 0; k < 3; k++) {
        struct parquet_words *words = tnd_zalloc(1, sizeof *words);
        struct parquet_column column = column_of(0, counts[k] - 1, sizeof(uint32_t));
        struct parquet_member member = { .column = &column, .dtype = TUNDISH_STRING };
        struct parquet_tuples *tuples;

        *words = (struct parquet_words){ .words = { .count = counts[k] }, .holds = 1 };
        column.words = words;
        column.numbers = column.values;
        column.values = NULL;
        tuples = parquet_tuples_open(&member, 1, ROWS);
        assert_int_equal(tuples->fields[0].bytes, bytes[k]);
        assert_taken(tuples, 0, 0, counts[k] - 1, sizeof(uint32_t));
        assert_null(column.numbers);
        assert_ptr_equal(column.words, words);
        parquet_tuples_close(tuples);
        parquet_column_close(&column);
    }
}

/* Of the integers of few words none: they are in the cache soon. */
static void
integers_of_many_words_go_beside_their_numbers(void **state)
{
    static const int key;
    const uint32_t counts[] = { 4096, 4097, 4097 }, bytes[] = { 0, 2, 4 };

    (void)state;
    for (size_t k = 0; k < 3; k++) {
        struct parquet_words *words = tnd_zalloc(1, sizeof *words);
        struct parquet_column column = column_of(0, counts[k] - 1, sizeof(uint32_t));
        int32_t *made = tnd_alloc(counts[k] * sizeof *made);
        const struct parquet_member member = {
            .column = &column, .dtype = TUNDISH_STRING, .made = made, .key = &key
        };
        struct parquet_tuples *tuples;
        const struct parquet_field *field;

        for (uint32_t i = 0; i < counts[k]; i++)
            made[i] = 70000 - (int32_t)i;
        made[2] = k == 2 ? WORDS_UNMADE : 70000;
        *words = (struct parquet_words){ .words = { .count = counts[k] }, .holds = 1 };
        column.words = words;
        column.numbers = column.values;
        column.values = NULL;
        tuples = parquet_tuples_open(&member, 1, ROWS);
        field = parquet_tuples_made(tuples, 0);
        assert_int_equal(field->bytes, bytes[k]);
        for (uint32_t i = 0; i < TAKEN && bytes[k] > 0; i++) {
            const struct parquet_row row = { .row = (uint64_t)i * 7919 % ROWS };
            uint64_t number = parquet_tuple_value(tuples, &tuples->fields[0], row.row);
            int32_t taken;

            parquet_tuples_take(tuples, field, &row, 1, sizeof taken, &taken);
            assert_int_equal(taken, made[number]);
        }
        assert_taken(tuples, 0, 0, counts[k] - 1, sizeof(uint32_t));
        assert_ptr_equal(field->key, &key);
        free(made);
        parquet_tuples_close(tuples);
        parquet_column_close(&column);
    }
}

static void
lists_stay_columns(void **state)
{
    struct parquet_column column = column_of(0, 9, sizeof(int64_t));
    struct parquet_member member = { .column = &column, .dtype = TUNDISH_INT64 };
    struct parquet_tuples *tuples;

    (void)state;
    column.splits = tnd_zalloc(ROWS + 1, sizeof *column.splits);
    tuples = parquet_tuples_open(&member, 1, ROWS);
    assert_int_equal(tuples->fields[0].bytes, 0);
    assert_non_null(column.values);
    parquet_tuples_close(tuples);
    parquet_column_close(&column);
}

TEST_FILE(test_parquet_tuples)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_take_the_bytes_that_their_range_needs_and_stay_the_same),
        cmocka_unit_test(words_become_their_numbers),
        cmocka_unit_test(integers_of_many_words_go_beside_their_numbers),
        cmocka_unit_test(lists_stay_columns),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
