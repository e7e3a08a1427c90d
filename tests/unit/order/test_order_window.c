/* test_order_window.c - windows over the input. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "order_fixture.h"

static void
the_windows_of_tensorflow(void **state)
{
    (void)state;
    assert_order("{range: 7}, {window: 3}", "[0 1 2] [3 4 5] [6]");
    assert_order("{range: 7}, {window: {size: 3, shift: 1, drop_remainder: true}}",
                 "[0 1 2] [1 2 3] [2 3 4] [3 4 5] [4 5 6]");
    assert_order("{range: 5}, {window: {size: 3, shift: 1}}", "[0 1 2] [1 2 3] [2 3 4] [3 4] [4]");
    assert_order("{range: 8}, {window: {size: 3, shift: 1, stride: 2, drop_remainder: true}}",
                 "[0 2 4] [1 3 5] [2 4 6] [3 5 7]");
    assert_order("{range: 10}, {window: {size: 2, shift: 4}}", "[0 1] [4 5] [8 9]");
    assert_order("{range: 0}, {window: 3}", "");
}

static void
windows_of_batches_share_them(void **state)
{
    (void)state;
    assert_order("{range: 6}, {batch: 2}, {window: {size: 2, shift: 1}}",
                 "[[0 1] [2 3]] [[2 3] [4 5]] [[4 5]]");
}

static void
elements_between_windows_are_pulled_with_the_first(void **state)
{
    struct fixture fixture;

    (void)state;
    fixture_open(&fixture, "{range: 100}, {window: {size: 2, shift: 10}}");
    fixture_epoch(&fixture, 1, 1);
    assert_int_equal(fixture.pulled[0], 10);
    fixture_close(&fixture);
}

static void
a_failure_fails_the_windows_it_is_in(void **state)
{
    struct fixture fixture;

    (void)state;
    fixture_open(&fixture, "{range: 6}, {batch: 1}, {window: {size: 2, shift: 1}}");
    fixture.failing = 2;
    assert_string_equal(fixture_epoch(&fixture, 100, 1), "[[0] [1]] ! ! [[3] [4]] [[4] [5]] [[5]]");
    fixture_epoch(&fixture, 1, 1);
    fixture_close(&fixture);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_windows_of_tensorflow),
        cmocka_unit_test(windows_of_batches_share_them),
        cmocka_unit_test(elements_between_windows_are_pulled_with_the_first),
        cmocka_unit_test(a_failure_fails_the_windows_it_is_in),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
