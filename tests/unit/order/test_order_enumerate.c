/* test_order_enumerate.c - numbers beside elements. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "order_fixture.h"
#include "unit/test_file.h"

static void
it_counts_anew_in_each_iterator(void **state)
{
    (void)state;
    assert_order("{range: 3}, enumerate", "0:0 1:1 2:2 | 0:0 1:1 2:2");
    assert_order("{range: 3}, {enumerate: 10}, {batch: 2}", "[10:0 11:1] [12:2]");
    assert_order("{range: 4}, {enumerate: 1}, {enumerate: 5}", "5:1:0 6:2:1 7:3:2 8:4:3");
}

static void
an_ordinal_goes_on_over_iterators(void **state)
{
    struct fixture fixture;

    (void)state;
    fixture_open(&fixture, "{range: 3}");
    fixture_append(&fixture, &order_ordinal, NULL);
    assert_string_equal(fixture_epoch(&fixture, 100, 2), "0:0 1:1 2:2");
    assert_string_equal(fixture_epoch(&fixture, 2, 2), "3:0 4:1");
    assert_string_equal(fixture_epoch(&fixture, 100, 100), "5:0 6:1 7:2");
    fixture_close(&fixture);
}

TEST_FILE(test_order_enumerate)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_counts_anew_in_each_iterator),
        cmocka_unit_test(an_ordinal_goes_on_over_iterators),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
