/* test_order_sample_from_datasets.c - which input is next, at random. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/memory.h"
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

static void
draws_are_counted_where_elements_are_passed_over(void **state)
{
    static const char *const cases[] = {
        "[{range: 400}], [{range: [500, 900]}]], seed: 4",
        "[{range: 6}], [{range: [500, 509]}]], seed: 4",
        "[{range: 6}], [{range: [500, 530]}], [{range: [600, 620]}]], weights: [0.2, 0.5, 0.3], "
        "seed: 4",
        "[{range: 6}], [{range: [500, 530]}]], seed: 4, stop_on_empty_dataset: true",
        "[{range: 6}], [{range: 0}], [{range: [500, 520]}]], seed: 7",
        "[{range: 0}, repeat], [{range: [500, 520]}]], seed: 7",
        "[{range: 3}, {repeat: 2}], [{range: [500, 520]}]], seed: 7",
        "[{range: 6}, {shuffle: {buffer_size: 4, seed: 1, reshuffle_each_iteration: false}}], "
        "[{range: [500, 520]}]], seed: 3",
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int64_t failing = -1; failing < 8; failing += 2) {
            char *stages = tnd_sprintf("{sample_from_datasets: {datasets: [%s}}", cases[i]);

            assert_passes_over(stages, failing);
            free(stages);
        }
}

static void
a_draw_far_away_is_reached_without_the_elements_before_it(void **state)
{
    struct fixture fixture;
    uint64_t passed;
    char *last;

    (void)state;
    fixture_open(&fixture,
                 "{sample_from_datasets: {datasets: [[{range: 300000}], [{range: [1000000, "
                 "1100000]}], [{range: [2000000, 2000009]}, repeat]], weights: [0.6, 0.2, "
                 "0.2], seed: 1}}, {take: 400000}");
    fixture_epoch(&fixture, 0, 1);
    assert_int_equal(order_pass_over(fixture.iterator, 399990, &passed), ORDER_OK);
    assert_int_equal(passed, 399990);
    assert_in_range(fixture.made, 1, 10000);
    last = tnd_strdup(fixture_rest(&fixture, 3));
    fixture_epoch(&fixture, 0, 1);
    for (int i = 0; i < 39999; i++)
        assert_int_equal(order_pass_over(fixture.iterator, 10, &passed), ORDER_OK);
    assert_string_equal(fixture_rest(&fixture, 3), last);
    free(last);
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
        cmocka_unit_test(draws_are_counted_where_elements_are_passed_over),
        cmocka_unit_test(a_draw_far_away_is_reached_without_the_elements_before_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
