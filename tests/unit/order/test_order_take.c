/* test_order_take.c - no more than is wanted is pulled. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "order_fixture.h"
#include "unit/test_file.h"

static void
it_ends_after_its_count(void **state)
{
    (void)state;
    assert_order("{range: 10}, {skip: 3}, {take: 4}", "3 4 5 6");
    assert_order("{range: 3}, {take: 9}", "0 1 2");
    assert_order("{range: 4}, {take: -1}", "0 1 2 3");
    assert_order("{range: 4}, {take: 0}", "");
}

static void
it_pulls_no_more_than_its_count(void **state)
{
    struct fixture fixture;

    (void)state;
    fixture_open(&fixture, "{range: 100}, {take: 4}");
    fixture_epoch(&fixture, 100, 100);
    assert_int_equal(fixture.pulled[0], 4);
    fixture_close(&fixture);
    fixture_open(&fixture, "{range: 100}, {batch: 3}, {take: 2}");
    fixture_epoch(&fixture, 100, 100);
    assert_int_equal(fixture.pulled[0], 6);
    fixture_close(&fixture);
}

static void
taking_none_makes_no_iterator(void **state)
{
    struct fixture fixture;

    (void)state;
    fixture_open(&fixture, "{range: 100}, {take: 0}");
    fixture_epoch(&fixture, 100, 100);
    assert_int_equal(fixture.opened[0], 0);
    fixture_close(&fixture);
}

static void
batches_beyond_it_are_not_leaked(void **state)
{
    struct fixture fixture;

    (void)state;
    fixture_open(&fixture,
                 "{range: 100}, {batch: 3}, {shuffle: {buffer_size: 9, seed: 1}}, {take: 2}");
    fixture_epoch(&fixture, 100, 1);
    fixture_close(&fixture);
}

TEST_FILE(test_order_take)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_ends_after_its_count),
        cmocka_unit_test(it_pulls_no_more_than_its_count),
        cmocka_unit_test(taking_none_makes_no_iterator),
        cmocka_unit_test(batches_beyond_it_are_not_leaked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
