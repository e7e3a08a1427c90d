/* test_parquet_taken.c - rows that were taken lose their tuples, and all others keep theirs. */
#include "unit/test_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include "core/memory.h"
#include "source/parquet/taken.h"

enum { ROWS = 130 };

/* Row i has the value i. */
static struct parquet_column
make_numbers(void)
{
    struct parquet_column column = { .row_count = ROWS,
                                     .value_count = ROWS,
                                     .values = tnd_zalloc(ROWS, sizeof(int64_t)),
                                     .bytes = ROWS * sizeof(int64_t) };

    for (int64_t i = 0; i < ROWS; i++)
        ((int64_t *)column.values)[i] = i;
    return column;
}

/* Tuples hold numbers this small in a byte. */
static void
assert_tuple(const struct parquet_taken *taken, const struct parquet_tuples *tuples, uint64_t row)
{
    assert_int_equal(tuples->stride, 1);
    assert_true(parquet_taken_has_tuple(taken, row));
    assert_int_equal(tuples->tuples[parquet_taken_place(taken, row)], row);
}

static void
rows_that_were_not_taken_stay(void **state)
{
    struct parquet_column column = make_numbers();
    struct parquet_member member = { &column, TUNDISH_INT64 };
    struct parquet_tuples *tuples = parquet_tuples_open(&member, 1, ROWS);
    struct parquet_taken taken;

    (void)state;
    parquet_taken_open(&taken, ROWS);
    for (uint64_t turn = 2; turn <= 3; turn++) { /* the second time, tuples are gone already */
        for (uint64_t row = 0; row < ROWS; row += turn)
            if (parquet_taken_has_tuple(&taken, row))
                parquet_taken_note(&taken, row);
        parquet_taken_shrink(&taken, tuples, &member, 1);
        for (uint64_t row = 0; row < ROWS; row++)
            if (row % 2 == 0 || row % turn == 0)
                assert_false(parquet_taken_has_tuple(&taken, row));
            else
                assert_tuple(&taken, tuples, row);
    }
    assert_int_equal(taken.tuple_count, 43); /* odd, and no multiple of three */
    parquet_taken_close(&taken);
    parquet_tuples_close(tuples);
    parquet_column_close(&column);
}

static void
the_next_epoch_wants_all_again(void **state)
{
    struct parquet_taken taken;

    (void)state;
    parquet_taken_open(&taken, ROWS);
    for (uint64_t row = 0; row < 100; row++)
        parquet_taken_note(&taken, row);
    assert_int_equal(taken.unused, ROWS - 100);
    parquet_taken_note(&taken, 64);
    assert_int_equal(taken.unused, ROWS - 1);
    parquet_taken_close(&taken);
}

static void
nobody_counts_rows_of_columns(void **state)
{
    struct parquet_taken taken = { 0 };

    (void)state;
    parquet_taken_note(&taken, 7);
    assert_true(parquet_taken_has_tuple(&taken, 7));
    assert_int_equal(parquet_taken_place(&taken, 7), 7);
    parquet_taken_close(&taken);
}

TEST_FILE(test_parquet_taken)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_that_were_not_taken_stay),
        cmocka_unit_test(the_next_epoch_wants_all_again),
        cmocka_unit_test(nobody_counts_rows_of_columns),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
