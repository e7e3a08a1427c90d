/* test_order_repeat.c - epochs, and the iterators they cost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "order_fixture.h"
#include "unit/test_file.h"

static void
it_goes_through_its_input_again(void **state)
{
    (void)state;
    assert_order("{range: 3}, {repeat: 2}", "0 1 2 0 1 2");
    assert_order("{range: 3}, {repeat: 1}", "0 1 2");
    assert_order("{range: 3}, {repeat: 0}", "");
    assert_order("{range: 3}, repeat, {take: 8}", "0 1 2 0 1 2 0 1");
}

static void
an_empty_input_repeated_for_ever_ends(void **state)
{
    (void)state;
    assert_order("{range: 0}, repeat", "");
    assert_order("{range: 0}, {repeat: 3}", "");
}

static void
a_count_makes_one_iterator_more_than_epochs(void **state)
{
    struct fixture fixture;

    (void)state;
    fixture_open(&fixture, "{range: 3}, {take: 9}, {repeat: 4}");
    fixture_epoch(&fixture, 100, 100);
    assert_int_equal(fixture.opened[0], 5);
    fixture_close(&fixture);
    fixture_open(&fixture, "{range: 3}, {repeat: 1}");
    fixture_epoch(&fixture, 100, 100);
    assert_int_equal(fixture.opened[0], 1);
    fixture_close(&fixture);
    fixture_open(&fixture, "{range: 3}, {repeat: 0}");
    fixture_epoch(&fixture, 100, 100);
    assert_int_equal(fixture.opened[0], 0);
    fixture_close(&fixture);
}

static void
the_next_iterator_is_made_when_the_last_element_has_gone(void **state)
{
    struct fixture fixture;

    (void)state;
    fixture_open(&fixture, "{range: 3}, {repeat: 4}");
    fixture_epoch(&fixture, 3, 100);
    assert_int_equal(fixture.opened[0], 1);
    fixture_epoch(&fixture, 4, 100);
    assert_int_equal(fixture.opened[0], 1 + 2);
    fixture_close(&fixture);
}

static void
a_failure_does_not_end_the_epoch(void **state)
{
    struct fixture fixture;

    (void)state;
    fixture_open(&fixture, "{range: 4}, {repeat: 2}");
    fixture.failing = 2;
    assert_string_equal(fixture_epoch(&fixture, 100, 100), "0 1 ! 3 0 1 ! 3");
    fixture_close(&fixture);
}

static void
skipping_over_it_counts_epochs(void **state)
{
    (void)state;
    assert_order("{range: 5}, {repeat: 4}, {skip: 12}", "2 3 4 0 1 2 3 4");
    assert_order("{range: 5}, {repeat: 2}, {skip: 12}", "");
}

TEST_FILE(test_order_repeat)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_goes_through_its_input_again),
        cmocka_unit_test(an_empty_input_repeated_for_ever_ends),
        cmocka_unit_test(a_count_makes_one_iterator_more_than_epochs),
        cmocka_unit_test(the_next_iterator_is_made_when_the_last_element_has_gone),
        cmocka_unit_test(a_failure_does_not_end_the_epoch),
        cmocka_unit_test(skipping_over_it_counts_epochs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
