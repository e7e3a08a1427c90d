/* test_order_skip.c - what is passed over is given up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "order_fixture.h"
#include "unit/test_file.h"

static void
it_leaves_out_the_first(void **state)
{
    (void)state;
    assert_order("{range: 10}, {skip: 7}", "7 8 9");
    assert_order("{range: 4}, {skip: 9}", "");
    assert_order("{range: 4}, {skip: -1}", "");
    assert_order("{range: 4}, {skip: 0}", "0 1 2 3");
}

static void
skipping_all_makes_no_iterator(void **state)
{
    struct fixture fixture;

    (void)state;
    fixture_open(&fixture, "{range: 100}, {skip: -1}");
    fixture_epoch(&fixture, 100, 100);
    assert_int_equal(fixture.opened[0], 0);
    fixture_close(&fixture);
}

static void
skipped_batches_are_given_up(void **state)
{
    (void)state;
    assert_order("{range: 11}, {batch: 2}, {shuffle: {buffer_size: 1, seed: 1}}, {skip: 4}",
                 "[8 9] [10]");
    assert_order("{range: 12}, {batch: 2}, {filter: 'value % 4 == 0'}, {skip: 2}", "[8 9]");
}

static void
batches_are_counted_in_rows(void **state)
{
    (void)state;
    assert_order("{range: 11}, {batch: 2}, {skip: 4}", "[8 9] [10]");
    assert_order("{range: 11}, {batch: 2}, {skip: 6}", "");
    assert_order("{range: 11}, {batch: {batch_size: 2, drop_remainder: true}}, {skip: 5}", "");
}

static void
a_failure_among_the_skipped_is_told(void **state)
{
    struct fixture fixture;

    (void)state;
    fixture_open(&fixture, "{range: 6}, {skip: 3}");
    fixture.failing = 1;
    assert_string_equal(fixture_epoch(&fixture, 100, 100), "! 4 5");
    fixture_close(&fixture);
}

static void
numbers_and_takes_are_passed_over_too(void **state)
{
    (void)state;
    assert_order("{range: 10}, {enumerate: 5}, {skip: 8}", "13:8 14:9");
    assert_order("{range: 10}, {take: 5}, {skip: 3}", "3 4");
    assert_order("{range: 10}, {skip: 5}, {prefetch: 2}, {skip: 3}", "8 9");
}

TEST_FILE(test_order_skip)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_leaves_out_the_first),
        cmocka_unit_test(skipping_all_makes_no_iterator),
        cmocka_unit_test(skipped_batches_are_given_up),
        cmocka_unit_test(batches_are_counted_in_rows),
        cmocka_unit_test(a_failure_among_the_skipped_is_told),
        cmocka_unit_test(numbers_and_takes_are_passed_over_too),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
