/* test_order_concatenate.c - inputs one after the other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "order_fixture.h"
#include "unit/test_file.h"

static void
all_elements_of_all_inputs(void **state)
{
    (void)state;
    assert_order("{concatenate: [[{range: 3}], [{range: [10, 12]}], [{range: 0}], [{range: 1}]]}",
                 "0 1 2 10 11 0");
}

static void
batches_and_zips_keep_to_their_words(void **state)
{
    (void)state;
    assert_order(
        "{concatenate: [[{range: 3}, {batch: 2}], [{range: [10, 13]}, {batch: 2}]]}, {batch: 3}",
        "[[0 1] [2] [10 11]] [[12]]");
}

static void
later_inputs_are_made_on_first_need(void **state)
{
    struct fixture fixture;

    (void)state;
    fixture_open(&fixture, "{concatenate: [[{range: 3}], [{range: 3}], [{range: 3}]]}");
    fixture_epoch(&fixture, 3, 3);
    assert_int_equal(fixture.opened[1], 0);
    fixture_epoch(&fixture, 4, 3);
    assert_int_equal(fixture.opened[1], 1);
    assert_int_equal(fixture.opened[2], 0);
    fixture_close(&fixture);
}

static void
an_input_that_cannot_be_made_is_left_out(void **state)
{
    (void)state;
    assert_order("{range: 1}, {flat_map: [{concatenate: [[{range: 2}], [{range: 3}, {batch: "
                 "$value}], [{range: [5, 7]}]]}]}",
                 "0 1 ! 5 6");
}

TEST_FILE(test_order_concatenate)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_elements_of_all_inputs),
        cmocka_unit_test(batches_and_zips_keep_to_their_words),
        cmocka_unit_test(later_inputs_are_made_on_first_need),
        cmocka_unit_test(an_input_that_cannot_be_made_is_left_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
