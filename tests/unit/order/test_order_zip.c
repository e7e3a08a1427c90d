/* test_order_zip.c - rows of several inputs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "order_fixture.h"
#include "unit/test_file.h"

static void
it_ends_with_the_shortest(void **state)
{
    (void)state;
    assert_order(
        "{zip: [[{range: {stop: 5, name: a}}], [{range: {start: 10, stop: 13, name: b}}]]}",
        "(0 10) (1 11) (2 12)");
    assert_order("{zip: [[{range: {stop: 3, name: a}}], [{range: {stop: 2, name: b}}, repeat]]}",
                 "(0 0) (1 1) (2 0)");
}

static void
batches_left_over_are_given_up(void **state)
{
    (void)state;
    assert_order("{zip: [[{range: {stop: 9, name: a}}, {batch: 2}], [{range: {start: 10, stop: 13, "
                 "name: b}}], [{range: {stop: 9, name: c}}, {batch: 1}, {batch: 1}]]}",
                 "([0 1] 10 [[0]]) ([2 3] 11 [[1]]) ([4 5] 12 [[2]])");
}

static void
others_are_advanced_once_more_and_no_further(void **state)
{
    struct fixture fixture;

    (void)state;
    fixture_open(&fixture,
                 "{zip: [[{range: {stop: 100, name: a}}, {shuffle: {buffer_size: 1, seed: 1}}], "
                 "[{range: {stop: 3, name: b}}, {shuffle: {buffer_size: 1, seed: 1}}], "
                 "[{range: {stop: 100, name: c}}, {shuffle: {buffer_size: 1, seed: 1}}]]}");
    fixture_epoch(&fixture, 100, 100);
    assert_int_equal(fixture.pulled[0], 4);
    assert_int_equal(fixture.pulled[1], 4 - 1);
    assert_int_equal(fixture.pulled[2], 4);
    fixture_close(&fixture);
}

static void
one_that_shows_lookahead_is_pulled_as_far_as_the_others_reach(void **state)
{
    struct fixture fixture;

    (void)state;
    fixture_open(&fixture, "{zip: [[{range: {stop: 2, name: a}}, {shuffle: {buffer_size: 2, seed: "
                           "1}}, {map: {a: a}}, repeat], "
                           "[{range: {stop: 7, name: b}}]]}");
    fixture_epoch(&fixture, 100, 100);
    assert_int_equal(fixture.opened[0], 4);
    fixture_close(&fixture);
}

static void
its_inputs_are_made_at_once(void **state)
{
    struct fixture fixture;

    (void)state;
    fixture_open(&fixture, "{zip: [[{range: {stop: 5, name: a}}], [{range: {stop: 3, name: b}}]]}");
    fixture_epoch(&fixture, 0, 1);
    assert_int_equal(fixture.opened[0], 1);
    assert_int_equal(fixture.opened[1], 1);
    fixture_close(&fixture);
}

static void
a_failure_advances_all(void **state)
{
    struct fixture fixture;

    (void)state;
    fixture_open(
        &fixture,
        "{zip: [[{range: {stop: 6, name: a}}], [{range: {start: 10, stop: 16, name: b}}]]}");
    fixture.failing = 12;
    assert_string_equal(fixture_epoch(&fixture, 100, 100), "(0 10) (1 11) ! (3 13) (4 14) (5 15)");
    fixture.failing = 3;
    assert_string_equal(fixture_epoch(&fixture, 100, 100), "(0 10) (1 11) (2 12) ! (4 14) (5 15)");
    fixture_close(&fixture);
}

TEST_FILE(test_order_zip)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_ends_with_the_shortest),
        cmocka_unit_test(batches_left_over_are_given_up),
        cmocka_unit_test(others_are_advanced_once_more_and_no_further),
        cmocka_unit_test(one_that_shows_lookahead_is_pulled_as_far_as_the_others_reach),
        cmocka_unit_test(its_inputs_are_made_at_once),
        cmocka_unit_test(a_failure_advances_all),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
