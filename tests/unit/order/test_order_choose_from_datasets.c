/* test_order_choose_from_datasets.c - which input is next, by a dataset of numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "order_fixture.h"
#include "unit/test_file.h"

static void
choices_are_followed(void **state)
{
    (void)state;
    assert_order("{choose_from_datasets: {datasets: [[{range: 3}], [{range: [10, 13]}], [{range: "
                 "[20, 23]}]], choice_dataset: [{range: 3}, repeat, {take: 7}]}}",
                 "0 10 20 1 11 21 2");
}

static void
it_stops_at_an_empty_input_or_passes_it_by(void **state)
{
    (void)state;
    assert_order("{choose_from_datasets: {datasets: [[{range: 1}], [{range: [10, 13]}]], "
                 "choice_dataset: [{range: 2}, repeat]}}",
                 "0 10");
    assert_order("{choose_from_datasets: {datasets: [[{range: 1}], [{range: [10, 14]}]], "
                 "choice_dataset: [{range: 2}, {repeat: 3}], stop_on_empty_dataset: false}}",
                 "0 10 11 12");
    assert_order("{choose_from_datasets: {datasets: [[{range: 1}], [{range: [10, 14]}]], "
                 "choice_dataset: [{range: 2}, repeat], stop_on_empty_dataset: false}}",
                 "0 10 11 12 13");
}

static void
a_choice_out_of_range_fails(void **state)
{
    struct fixture fixture;

    (void)state;
    fixture_open(&fixture, "{choose_from_datasets: {datasets: [[{range: 3}], [{range: [10, 13]}]], "
                           "choice_dataset: [{range: 3}]}}");
    assert_string_equal(fixture_epoch(&fixture, 100, 100), "0 10 !");
    assert_non_null(strstr(tnd_error_text(), "2"));
    fixture_close(&fixture);
}

static void
inputs_are_pulled_by_need(void **state)
{
    struct fixture fixture;

    (void)state;
    fixture_open(
        &fixture,
        "{choose_from_datasets: {datasets: [[{range: 30}], [{range: [10, 13]}]], choice_dataset: "
        "[{range: 2}, {shuffle: {buffer_size: 1, seed: 1}}, {repeat: 9}]}}");
    fixture_epoch(&fixture, 3, 100);
    assert_int_equal(fixture.pulled[0], 2);
    assert_int_equal(fixture.pulled[1], 1);
    assert_int_equal(fixture.opened[2], 2);
    fixture_close(&fixture);
}

TEST_FILE(test_order_choose_from_datasets)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(choices_are_followed),
        cmocka_unit_test(it_stops_at_an_empty_input_or_passes_it_by),
        cmocka_unit_test(a_choice_out_of_range_fails),
        cmocka_unit_test(inputs_are_pulled_by_need),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
