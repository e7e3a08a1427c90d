/* test_order_filter.c - elements that a predicate lets pass. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "order_fixture.h"
#include "unit/test_file.h"

static void
it_keeps_those_for_which_it_holds(void **state)
{
    (void)state;
    assert_order("{range: 12}, {filter: 'value % 3 == 1'}", "1 4 7 10");
    assert_order("{range: 5}, {filter: 'value > 100'}", "");
    assert_order("{range: 12}, {batch: 2}, {filter: 'value % 4 == 0'}", "[0 1] [4 5] [8 9]");
}

static void
no_more_is_pulled_than_is_needed_where_it_shows(void **state)
{
    struct fixture fixture;

    (void)state;
    fixture_open(
        &fixture,
        "{range: 1000}, {shuffle: {buffer_size: 1, seed: 1}}, {filter: 'value % 10 == 4'}");
    fixture_epoch(&fixture, 3, 3);
    assert_int_equal(fixture.pulled[0], 25);
    fixture_close(&fixture);
}

static void
elsewhere_many_are_looked_at_at_once(void **state)
{
    struct fixture fixture;

    (void)state;
    fixture_open(&fixture, "{range: 100000}, {filter: 'value % 10 == 4'}");
    fixture_epoch(&fixture, 1000, 1);
    assert_in_range(fixture.pulled[0], 9985, 9985 + 1024);
    assert_int_equal(fixture.evaluated, fixture.pulled[0]);
    fixture_close(&fixture);
}

static void
bad_elements_fail_one_by_one(void **state)
{
    struct fixture fixture;

    (void)state;
    fixture_open(&fixture, "{range: 12}, {batch: 1}, {filter: 'value % 3 == 1'}");
    fixture.bad = 5;
    assert_string_equal(fixture_epoch(&fixture, 100, 100), "[1] [4] ! [7] [10]");
    assert_string_equal(tnd_error_text(), "5 is bad");
    fixture.bad = 7;
    assert_string_equal(fixture_epoch(&fixture, 100, 1), "[1] [4] ! [10]");
    fixture.skip_bad = true;
    assert_string_equal(fixture_epoch(&fixture, 100, 100), "[1] [4] [10]");
    fixture_close(&fixture);
}

static void
failures_of_the_input_stand_where_they_were(void **state)
{
    struct fixture fixture;

    (void)state;
    fixture_open(&fixture, "{range: 12}, {filter: 'value % 3 == 1'}");
    fixture.failing = 6;
    assert_string_equal(fixture_epoch(&fixture, 100, 100), "1 4 ! 7 10");
    fixture_close(&fixture);
}

static void
what_was_looked_at_is_given_up_at_close(void **state)
{
    struct fixture fixture;

    (void)state;
    fixture_open(&fixture, "{range: 12}, {batch: 1}, {filter: 'value % 3 == 1'}");
    fixture_epoch(&fixture, 1, 1);
    fixture_close(&fixture);
}

TEST_FILE(test_order_filter)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_keeps_those_for_which_it_holds),
        cmocka_unit_test(no_more_is_pulled_than_is_needed_where_it_shows),
        cmocka_unit_test(elsewhere_many_are_looked_at_at_once),
        cmocka_unit_test(bad_elements_fail_one_by_one),
        cmocka_unit_test(failures_of_the_input_stand_where_they_were),
        cmocka_unit_test(what_was_looked_at_is_given_up_at_close),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
