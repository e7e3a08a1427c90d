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
assert_tuple(const struct parquet_kept *kept, const struct parquet_tuples *tuples, uint64_t row)
{
    assert_int_equal(tuples->stride, 1);
    assert_true(parquet_kept_has(kept, row));
    assert_int_equal(tuples->tuples[parquet_kept_place(kept, row)], row);
}

static void
rows_that_were_not_taken_stay(void **state)
{
    struct parquet_column column = make_numbers();
    struct parquet_member member = { .column = &column, .dtype = TUNDISH_INT64 };
    struct parquet_tuples *tuples = parquet_tuples_open(&member, 1, ROWS);
    struct parquet_taken *taken = parquet_taken_open(ROWS);
    struct parquet_kept kept = { 0 };

    (void)state;
    parquet_kept_open(&kept, taken);
    for (uint64_t turn = 2; turn <= 3; turn++) { /* the second time, tuples are gone already */
        uint32_t before = kept.tuple_count;
        struct parquet_kept chosen;

        for (uint64_t row = 0; row < ROWS; row += turn)
            if (parquet_kept_has(&kept, row))
                (void)parquet_taken_note(taken, &kept, row, false);
        chosen = parquet_kept_choose(&kept, taken, false);
        assert_int_equal(chosen.tuple_count + kept.spare, before);
        parquet_kept_shrink(&kept, &chosen, tuples, &member, 1);
        parquet_kept_count_spare(&kept, taken);
        assert_int_equal(kept.spare, 0);
        for (uint64_t row = 0; row < ROWS; row++)
            if (row % 2 == 0 || row % turn == 0)
                assert_false(parquet_kept_has(&kept, row));
            else
                assert_tuple(&kept, tuples, row);
    }
    assert_int_equal(kept.tuple_count, 43); /* odd, and no multiple of three */
    parquet_kept_close(&kept);
    parquet_taken_close(taken);
    parquet_tuples_close(tuples);
    parquet_column_close(&column);
}

/* Rows of dealt steps stay, though they were taken: they are of the next round. */
static void
rows_of_dealt_steps_stay(void **state)
{
    struct parquet_column column = make_numbers();
    struct parquet_member member = { .column = &column, .dtype = TUNDISH_INT64 };
    struct parquet_tuples *tuples = parquet_tuples_open(&member, 1, ROWS);
    struct parquet_taken *taken = parquet_taken_open(ROWS);
    struct parquet_kept kept = { 0 }, chosen;

    (void)state;
    parquet_kept_open(&kept, taken);
    for (uint64_t row = 0; row < ROWS; row++)
        assert_false(parquet_taken_note(taken, &kept, row, false));
    assert_int_equal(kept.spare, ROWS);
    assert_true(parquet_taken_is_over(taken));
    assert_true(parquet_taken_deal(taken, &kept, 7));
    assert_true(parquet_taken_deal(taken, &kept, 129));
    assert_false(parquet_taken_deal(taken, &kept, 129));
    assert_false(parquet_taken_is_over(taken));
    assert_int_equal(kept.spare, ROWS - 2);
    chosen = parquet_kept_choose(&kept, taken, false);
    parquet_kept_shrink(&kept, &chosen, tuples, &member, 1);
    assert_int_equal(kept.tuple_count, 2);
    assert_tuple(&kept, tuples, 7);
    assert_tuple(&kept, tuples, 129);
    /* Two steps have it: the first one's turn does not end the other's. */
    assert_true(parquet_taken_note(taken, &kept, 129, false));
    assert_false(parquet_taken_drop(taken, &kept, 3));
    chosen = parquet_kept_choose(&kept, taken, true);
    assert_int_equal(chosen.tuple_count, 2);
    parquet_kept_close(&chosen);
    assert_true(parquet_taken_drop(taken, &kept, 129));
    chosen = parquet_kept_choose(&kept, taken, true);
    assert_int_equal(chosen.tuple_count, 1);
    parquet_kept_close(&chosen);
    assert_int_equal(parquet_kept_count_others(&kept, taken), 1);
    parquet_kept_close(&kept);
    parquet_taken_close(taken);
    parquet_tuples_close(tuples);
    parquet_column_close(&column);
}

/* Of two steps that have a row, another server makes one, in any order. */
static void
a_step_that_is_over_has_its_rows_no_more(void **state)
{
    struct parquet_taken *taken = parquet_taken_open(ROWS);

    (void)state;
    for (int by_others = 0; by_others < 2; by_others++) {
        assert_true(parquet_taken_deal(taken, NULL, 7));
        assert_false(parquet_taken_deal(taken, NULL, 7));
        if (by_others == 0)
            (void)parquet_taken_note(taken, NULL, 7, false);
        assert_false(parquet_taken_end(taken, NULL, 7));
        assert_int_equal(taken->dealt_count, 1);
        if (by_others == 1)
            (void)parquet_taken_note(taken, NULL, 7, false);
        assert_true(parquet_taken_end(taken, NULL, 7) == (by_others == 0));
        assert_int_equal(taken->dealt_count, 0);
        assert_int_equal(taken->ended_count, 0);
    }
    parquet_taken_close(taken);
}

/* A row that was left over comes twice: it is not the one that ends the next round. */
static void
rows_left_over_come_in_the_next_round_too(void **state)
{
    struct parquet_taken *taken = parquet_taken_open(ROWS);

    (void)state;
    for (uint64_t row = 0; row < ROWS - 1; row++)
        assert_false(parquet_taken_note(taken, NULL, row, false));
    assert_true(parquet_taken_note(taken, NULL, 64, false));
    assert_int_equal(taken->unused, ROWS - 1);
    assert_false(parquet_taken_note(taken, NULL, ROWS - 1, false));
    assert_int_equal(taken->unused, ROWS - 1);
    assert_false(parquet_taken_note(taken, NULL, ROWS - 1, false));
    assert_int_equal(taken->unused, ROWS - 2);
    parquet_taken_close(taken);
}

/* An epoch that ended early has left rows: only those that a step still has come twice. */
static void
an_epoch_leaves_the_rows_that_steps_still_have(void **state)
{
    struct parquet_taken *taken = parquet_taken_open(ROWS);

    (void)state;
    for (uint64_t row = 0; row < 100; row++)
        assert_false(parquet_taken_note(taken, NULL, row, false));
    assert_true(parquet_taken_deal(taken, NULL, 120));
    assert_true(parquet_taken_note(taken, NULL, 64, true));
    assert_int_equal(taken->late_count, 1);
    assert_int_equal(taken->unused, ROWS - 1);
    assert_false(parquet_taken_note(taken, NULL, 120, false));
    assert_false(parquet_taken_note(taken, NULL, 110, false));
    assert_int_equal(taken->unused, ROWS - 2);
    parquet_taken_close(taken);
}

/* Of a row group that is to be decoded: a column shrinks by itself. */
static void
rows_that_are_expected_are_all_that_a_column_keeps(void **state)
{
    struct parquet_column column = make_numbers();
    struct parquet_member member = { .column = &column, .dtype = TUNDISH_INT64 };
    struct parquet_taken *taken = parquet_taken_open(ROWS);
    const struct parquet_row wanted = { .row = 128 };
    struct parquet_kept kept;

    (void)state;
    (void)parquet_taken_deal(taken, NULL, 3);
    (void)parquet_taken_deal(taken, NULL, 64);
    parquet_kept_expect(&kept, taken, &wanted, 1);
    parquet_kept_shrink_column(&kept, &member);
    assert_int_equal(kept.tuple_count, 3);
    assert_int_equal(column.value_count, 3);
    assert_int_equal(column.bytes, 3 * sizeof(int64_t));
    for (uint64_t row = 0; row < ROWS; row++)
        assert_true(parquet_kept_has(&kept, row) == (row == 3 || row == 64 || row == 128));
    for (uint64_t row = 3; row < ROWS; row += row == 3 ? 61 : 64)
        assert_int_equal(((const int64_t *)column.values)[parquet_kept_place(&kept, row)], row);
    parquet_kept_close(&kept);
    parquet_taken_close(taken);
    parquet_column_close(&column);
}

static void
all_rows_of_columns_lie_in_their_places(void **state)
{
    struct parquet_kept kept = { 0 };

    (void)state;
    assert_true(parquet_kept_has(&kept, 7));
    assert_int_equal(parquet_kept_place(&kept, 7), 7);
    parquet_kept_close(&kept);
}

TEST_FILE(test_parquet_taken)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_that_were_not_taken_stay),
        cmocka_unit_test(rows_of_dealt_steps_stay),
        cmocka_unit_test(a_step_that_is_over_has_its_rows_no_more),
        cmocka_unit_test(rows_left_over_come_in_the_next_round_too),
        cmocka_unit_test(an_epoch_leaves_the_rows_that_steps_still_have),
        cmocka_unit_test(rows_that_are_expected_are_all_that_a_column_keeps),
        cmocka_unit_test(all_rows_of_columns_lie_in_their_places),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
