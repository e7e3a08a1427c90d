/* test_order_group_by_window.c - batches of elements with the same key. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "order_fixture.h"
#include "unit/test_file.h"

static void
full_windows_come_first_then_what_is_left_by_key(void **state)
{
    (void)state;
    assert_order("{range: [5, 15]}, {group_by_window: {key: value % 3, window_size: 3}}",
                 "[5 8 11] [6 9 12] [7 10 13] [14]");
    assert_order("{range: [5, 12]}, {group_by_window: {key: value % 3, window_size: 9}}",
                 "[6 9] [7 10] [5 8 11]");
}

static void
each_window_asks_for_its_size(void **state)
{
    (void)state;
    assert_order("{range: 12}, {group_by_window: {key: value % 3, window_size_func: \"key + 1\"}}",
                 "[0] [3] [1 4] [6] [2 5 8] [9] [7 10] [11]");
}

static void
a_size_that_is_not_positive_fails_at_each_element(void **state)
{
    (void)state;
    assert_order("{range: 6}, {group_by_window: {key: value % 2, window_size_func: \"key + 0\"}}",
                 "! [1] ! [3] ! [5]");
    assert_non_null(strstr(tnd_error_text(), "greater than zero"));
}

static void
what_is_left_may_be_dropped(void **state)
{
    (void)state;
    assert_order("{range: 8}, {group_by_window: {key: value % 3, window_size: 2, drop_remainder: "
                 "true}}",
                 "[0 3] [1 4] [2 5]");
}

static void
each_pass_has_windows_of_its_own(void **state)
{
    (void)state;
    assert_order("{range: 5}, {group_by_window: {key: value % 2, window_size: 2}}, {repeat: 2}",
                 "[0 2] [1 3] [4] [0 2] [1 3] [4]");
    assert_order("{range: 3}, {group_by_window: {key: value % 2, window_size: 2}}",
                 "[0 2] [1] | [0 2] [1]");
}

static void
a_failure_takes_its_element_alone(void **state)
{
    struct fixture fixture;

    (void)state;
    fixture_open(&fixture, "{range: 7}, {group_by_window: {key: value % 2, window_size: 3}}");
    fixture.bad = 2;
    assert_string_equal(fixture_epoch(&fixture, 100, 1), "! [1 3 5] [0 4 6]");
    fixture_close(&fixture);
}

/* Batches are counted: the address sanitizer finds those that nobody gave up. */
static void
windows_are_given_up_at_close(void **state)
{
    struct fixture fixture;

    (void)state;
    fixture_open(&fixture,
                 "{range: 60}, {batch: 3}, {group_by_window: {key: value % 4, window_size: 5}}");
    fixture_epoch(&fixture, 0, 1);
    fixture_epoch(&fixture, 1, 1);
    fixture_epoch(&fixture, 2, 1);
    fixture_close(&fixture);
    fixture_open(&fixture, "{range: 60}, {batch: 3}, {group_by_window: {key: value % 4, "
                           "window_size: 50, drop_remainder: true}}");
    assert_string_equal(fixture_epoch(&fixture, 9, 1), "");
    fixture_close(&fixture);
}

TEST_FILE(test_order_group_by_window)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(full_windows_come_first_then_what_is_left_by_key),
        cmocka_unit_test(each_window_asks_for_its_size),
        cmocka_unit_test(a_size_that_is_not_positive_fails_at_each_element),
        cmocka_unit_test(what_is_left_may_be_dropped),
        cmocka_unit_test(each_pass_has_windows_of_its_own),
        cmocka_unit_test(a_failure_takes_its_element_alone),
        cmocka_unit_test(windows_are_given_up_at_close),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
