/* test_order_batch.c - elements side by side. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "order_fixture.h"
#include "unit/test_file.h"

static void
the_last_batch_is_short_or_dropped(void **state)
{
    (void)state;
    assert_order("{range: 7}, {batch: 3}", "[0 1 2] [3 4 5] [6]");
    assert_order("{range: 7}, {batch: {batch_size: 3, drop_remainder: true}}", "[0 1 2] [3 4 5]");
    assert_order("{range: 3}, {batch: 10}", "[0 1 2]");
    assert_order("{range: 3}, {batch: {batch_size: 10, drop_remainder: true}}", "");
    assert_order("{range: 0}, {batch: 10}", "");
}

static void
batches_may_be_batched_repeated_and_zipped(void **state)
{
    (void)state;
    assert_order("{range: 12}, {batch: 2}, {batch: 4}",
                 "[[0 1] [2 3] [4 5] [6 7]] [[8 9] [10 11]]");
    assert_order("{range: 5}, {batch: 2}, {repeat: 2}", "[0 1] [2 3] [4] [0 1] [2 3] [4]");
    assert_order("{range: 5}, {repeat: 2}, {batch: 3}", "[0 1 2] [3 4 0] [1 2 3] [4]");
    assert_order("{zip: [[{range: {stop: 4, name: a}}, {batch: 2}], [{range: {stop: 2, name: "
                 "b}}]]}, {batch: 2}",
                 "[([0 1] 0) ([2 3] 1)]");
}

static void
all_kinds_are_one_to_the_order(void **state)
{
    (void)state;
    assert_order("{range: 5}, {padded_batch: 2}", "[0 1] [2 3] [4]");
    assert_order("{range: 5}, {ragged_batch: {batch_size: 2, drop_remainder: true}}",
                 "[0 1] [2 3]");
}

static void
a_failure_takes_its_batch_along(void **state)
{
    struct fixture fixture;

    (void)state;
    fixture_open(&fixture, "{range: 8}, {batch: 1}, {batch: 3}");
    fixture.failing = 4;
    assert_string_equal(fixture_epoch(&fixture, 100, 100), "[[0] [1] [2]] ! [[5] [6] [7]]");
    fixture_close(&fixture);
}

static void
a_batch_is_pulled_and_no_more(void **state)
{
    struct fixture fixture;

    (void)state;
    fixture_open(&fixture, "{range: 100}, {batch: 7}");
    fixture_epoch(&fixture, 2, 2);
    assert_int_equal(fixture.pulled[0], 14);
    fixture_close(&fixture);
}

static void
a_size_is_memory_only_when_elements_come(void **state)
{
    (void)state;
    assert_order("{range: 3}, {batch: 4000000000000}", "[0 1 2]");
}

static void
a_partial_batch_is_given_up_at_close(void **state)
{
    struct fixture fixture;

    (void)state;
    fixture_open(&fixture,
                 "{range: 5}, {batch: 1}, {batch: {batch_size: 3, drop_remainder: true}}");
    fixture_epoch(&fixture, 100, 100);
    fixture_epoch(&fixture, 1, 1);
    fixture_close(&fixture);
}

static void
a_size_of_zero_is_refused(void **state)
{
    (void)state;
    assert_order("{range: 2}, {flat_map: [{range: 2}, {batch: $value}]}", "! [0] [1]");
}

TEST_FILE(test_order_batch)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_batch_is_short_or_dropped),
        cmocka_unit_test(batches_may_be_batched_repeated_and_zipped),
        cmocka_unit_test(all_kinds_are_one_to_the_order),
        cmocka_unit_test(a_failure_takes_its_batch_along),
        cmocka_unit_test(a_batch_is_pulled_and_no_more),
        cmocka_unit_test(a_size_is_memory_only_when_elements_come),
        cmocka_unit_test(a_partial_batch_is_given_up_at_close),
        cmocka_unit_test(a_size_of_zero_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
