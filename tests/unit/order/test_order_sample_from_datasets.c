/* test_order_sample_from_datasets.c - which input is next, at random. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "order_fixture.h"
#include "unit/test_file.h"

static void
elements_of_each_input_keep_their_order(void **state)
{
    struct fixture fixture;
    const char *printed;
    int next[2] = { 0, 500 };

    (void)state;
    fixture_open(
        &fixture,
        "{sample_from_datasets: {datasets: [[{range: 400}], [{range: [500, 900]}]], seed: 4}}");
    printed = fixture_epoch(&fixture, 1000, 7);
    for (int i = 0; i < 800; i++) {
        int number = (int)strtol(printed, (char **)&printed, 10);

        assert_int_equal(number, next[number >= 500]++);
    }
    assert_int_equal(next[0], 400);
    assert_int_equal(next[1], 900);
    fixture_close(&fixture);
}

static void
weights_are_proportions(void **state)
{
    struct fixture fixture;
    const char *printed;
    int of_second = 0;

    (void)state;
    fixture_open(&fixture, "{sample_from_datasets: {datasets: [[{range: 1000}, repeat], [{range: "
                           "[1000, 1100]}, repeat]], weights: [3, 1], seed: 4}}");
    printed = fixture_epoch(&fixture, 8000, 1000);
    for (int i = 0; i < 8000; i++)
        of_second += strtol(printed, (char **)&printed, 10) >= 1000;
    assert_in_range(of_second, 1850, 2150);
    fixture_close(&fixture);
}

static void
draws_are_the_same_in_every_epoch_and_for_any_chunk(void **state)
{
    struct fixture fixture;
    char *first;

    (void)state;
    fixture_open(
        &fixture,
        "{sample_from_datasets: {datasets: [[{range: 40}], [{range: [50, 90]}]], seed: 4}}");
    first = strdup(fixture_epoch(&fixture, 1000, 1));
    assert_string_equal(fixture_epoch(&fixture, 1000, 13), first);
    free(first);
    fixture_close(&fixture);
}

/* The plan leaves out datasets of weight 0, but for the first if all have it. */
static void
nothing_is_drawn_where_there_is_no_weight(void **state)
{
    struct fixture fixture;

    (void)state;
    fixture_open(&fixture,
                 "{sample_from_datasets: {datasets: [[{range: 3}]], weights: [0.0], seed: 1}}");
    assert_string_equal(fixture_epoch(&fixture, 100, 100), "");
    assert_int_equal(fixture.opened[0], 0);
    fixture_close(&fixture);
}

static void
it_may_stop_at_the_first_end(void **state)
{
    struct fixture fixture;
    const char *printed;

    (void)state;
    fixture_open(&fixture, "{sample_from_datasets: {datasets: [[{range: 1}], [{range: [10, "
                           "1000]}]], seed: 1, stop_on_empty_dataset: true}}");
    printed = fixture_epoch(&fixture, 2000, 100);
    assert_true(strlen(printed) < 200);
    fixture_close(&fixture);
}

TEST_FILE(test_order_sample_from_datasets)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elements_of_each_input_keep_their_order),
        cmocka_unit_test(weights_are_proportions),
        cmocka_unit_test(draws_are_the_same_in_every_epoch_and_for_any_chunk),
        cmocka_unit_test(nothing_is_drawn_where_there_is_no_weight),
        cmocka_unit_test(it_may_stop_at_the_first_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
