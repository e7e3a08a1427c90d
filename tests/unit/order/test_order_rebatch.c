/* test_order_rebatch.c - batches of other sizes, and TensorFlow's newer rebatching. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "order_fixture.h"
#include "unit/test_file.h"

static void
rows_are_joined_across_batches(void **state)
{
    (void)state;
    assert_order("{range: 11}, {batch: 4}, {rebatch: 3}", "[0 1 2] [3]+[4 5] [6 7]+[8] [9 10]");
    assert_order("{range: 11}, {batch: 4}, {rebatch: {batch_size: 3, drop_remainder: true}}",
                 "[0 1 2] [3]+[4 5] [6 7]+[8]");
    assert_order("{range: 11}, {batch: 2}, {rebatch: 5}", "[0 1]+[2 3]+[4] [5]+[6 7]+[8 9] [10]");
    assert_order("{range: 9}, {batch: 4}, {rebatch: [1, 3]}", "[0] [1 2 3] [4] [5 6 7] [8]");
}

static void
components_stay_together(void **state)
{
    (void)state;
    assert_order("{zip: [[{range: {stop: 4, name: a}}, {batch: 3}], [{range: {start: 10, stop: 14, "
                 "name: b}}, {batch: 3}]]}, {rebatch: 2}",
                 "([0 1] [10 11]) ([2] [12])+([3] [13])");
}

static void
branches_may_meet_in_a_batch(void **state)
{
    (void)state;
    assert_order(
        "{concatenate: [[{range: 5}, {batch: 4}], [{range: [10, 13]}, {batch: 4}]]}, {rebatch: 2}",
        "[0 1] [2 3] [4]+[10] [11 12]");
}

static void
a_joined_batch_may_be_cut_again(void **state)
{
    (void)state;
    assert_order("{range: 11}, {batch: 4}, {rebatch: 3}, {rebatch: 4}",
                 "[0 1 2]+[3] [4 5]+[6 7] [8]+[9 10]");
}

static void
carried_slices_take_the_sizes_in_turn(void **state)
{
    struct fixture fixture;
    const struct rebatch_arguments carried = { .batch = 7, .slices = 4, .rotation = 2 };

    (void)state;
    fixture_open(&fixture, "{range: 10}, {batch: 7}");
    fixture_append(&fixture, &order_deal_carry, &carried);
    assert_string_equal(fixture_epoch(&fixture, 100, 3), "[0 1] [2] [3 4] [5 6] [7 8] [9]");
    fixture_close(&fixture);
}

static void
a_size_of_zero_is_an_empty_slice_that_pulls_nothing(void **state)
{
    struct fixture fixture;
    const struct rebatch_arguments carried = { .batch = 4, .slices = 5 };
    const struct rebatch_arguments zero_first = { .batch = 1, .slices = 2, .rotation = 1 };

    (void)state;
    fixture_open(&fixture, "{range: 8}, {batch: 4}");
    fixture_append(&fixture, &order_deal_carry, &carried);
    assert_string_equal(fixture_epoch(&fixture, 100, 3), "[0] [1] [2] [3] [] [4] [5] [6] [7] []");
    fixture_epoch(&fixture, 5, 1);
    assert_int_equal(fixture.pulled[0], 8 + 4);
    fixture_close(&fixture);
    fixture_open(&fixture, "{range: 2}, {batch: 4}");
    fixture_append(&fixture, &order_deal_carry, &zero_first);
    assert_string_equal(fixture_epoch(&fixture, 100, 3), "[] [0] [] [1] []");
    fixture_close(&fixture);
}

static void
epochs_blur(void **state)
{
    struct fixture fixture;
    const struct rebatch_arguments carried = { .batch = 4, .slices = 2 };

    (void)state;
    fixture_open(&fixture, "{range: 5}, {batch: 4}, {repeat: 2}");
    fixture_append(&fixture, &order_deal_carry, &carried);
    assert_string_equal(fixture_epoch(&fixture, 100, 3), "[0 1] [2 3] [4]+[0] [1 2] [3]+[4]");
    fixture_close(&fixture);
}

static void
it_goes_on_behind_a_failure(void **state)
{
    struct fixture fixture;

    (void)state;
    fixture_open(&fixture, "{range: 12}, {batch: 2}, {rebatch: 3}");
    fixture.failing = 5;
    assert_string_equal(fixture_epoch(&fixture, 100, 1), "[0 1]+[2] ! [6 7]+[8] [9]+[10 11]");
    fixture_close(&fixture);
}

static void
an_early_close_gives_up_pieces_and_batch(void **state)
{
    struct fixture fixture;

    (void)state;
    fixture_open(&fixture, "{range: 120}, {batch: 4}, {rebatch: 6}, {rebatch: 5}");
    fixture_epoch(&fixture, 1, 1);
    fixture_close(&fixture);
}

TEST_FILE(test_order_rebatch)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_joined_across_batches),
        cmocka_unit_test(components_stay_together),
        cmocka_unit_test(branches_may_meet_in_a_batch),
        cmocka_unit_test(a_joined_batch_may_be_cut_again),
        cmocka_unit_test(carried_slices_take_the_sizes_in_turn),
        cmocka_unit_test(a_size_of_zero_is_an_empty_slice_that_pulls_nothing),
        cmocka_unit_test(epochs_blur),
        cmocka_unit_test(it_goes_on_behind_a_failure),
        cmocka_unit_test(an_early_close_gives_up_pieces_and_batch),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
