/* test_order_shuffle.c - TensorFlow's order for given seeds, and when it draws them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "order_fixture.h"
#include "unit/test_file.h"

static void
the_vectors_of_tensorflow(void **state)
{
    (void)state;
    assert_order("seed: 1\nstreams: {case: {dataset: [{range: 10}, {shuffle: {buffer_size: 3, "
                 "seed: 2, reshuffle_each_iteration: false}}]}}",
                 "2 3 0 5 6 4 7 8 9 1 | 2 3 0 5 6 4 7 8 9 1");
    assert_order("seed: 1\nstreams: {case: {dataset: [{range: 10}, {shuffle: {buffer_size: 10, "
                 "seed: 2}}]}}",
                 "2 6 1 3 9 5 0 8 7 4 | 1 6 0 5 2 7 4 3 9 8 | 2 3 7 8 0 5 9 6 4 1");
    assert_order("seed: 2\nstreams: {case: {dataset: [{range: 10}, {shuffle: {buffer_size: 10, "
                 "seed: 2}}]}}",
                 "3 0 8 1 5 4 7 2 6 9 | 4 6 9 0 1 8 2 7 3 5");
    assert_order("{range: 10}, {shuffle: {buffer_size: 10, seed: 42}}",
                 "5 9 6 4 7 1 2 8 3 0 | 3 7 6 5 8 4 0 1 9 2");
}

static void
a_buffer_of_any_size(void **state)
{
    (void)state;
    assert_order("seed: 1\nstreams: {case: {dataset: [{range: 10}, {shuffle: {buffer_size: 2, "
                 "seed: 2}}]}}",
                 "0 2 1 3 5 6 4 7 8 9 | 1 0 2 3 4 5 6 7 9 8");
    assert_order("{range: 6}, {shuffle: {buffer_size: 1, seed: 5}}", "0 1 2 3 4 5 | 0 1 2 3 4 5");
    assert_order("{range: 7}, {shuffle: {buffer_size: 100, seed: 11}}",
                 "1 6 2 4 0 3 5 | 4 0 6 1 5 2 3");
    assert_order("{range: 7}, {shuffle: {buffer_size: -2, seed: 11}}",
                 "1 6 2 4 0 3 5 | 4 0 6 1 5 2 3");
    assert_order("{range: 0}, {shuffle: {buffer_size: 3, seed: 1}}, {repeat: 2}", "");
}

static void
a_repeat_behind_it_is_fused(void **state)
{
    (void)state;
    assert_order("{range: 5}, {shuffle: {buffer_size: 5, seed: 3}}, {repeat: 3}",
                 "4 3 2 1 0 3 4 1 2 0 3 1 0 4 2");
    assert_order("{range: 5}, {shuffle: {buffer_size: 4, seed: 3}}, {repeat: 2}",
                 "0 3 2 1 4 0 4 1 2 3 | 0 1 3 4 2 0 1 4 2 3");
    assert_order("{range: 7}, {shuffle: {buffer_size: 3, seed: 3}}, {repeat: 3}",
                 "0 1 2 3 5 4 6 0 3 4 5 2 1 6 2 1 3 0 5 4 6");
    assert_order("{range: 5}, {shuffle: {buffer_size: -2, seed: 3}}, {repeat: 3}",
                 "4 3 2 1 0 3 4 1 2 0 3 1 0 4 2");
    assert_order("seed: 4\nstreams: {case: {dataset: [{range: 4}, {shuffle: {buffer_size: 3, "
                 "seed: 8}}, repeat, {take: 25}]}}",
                 "2 0 1 3 1 0 2 3 0 3 1 2 0 1 3 2 0 2 3 1 2 1 0 3 0");
}

/* The window spans four epochs at most, and only the oldest is drawn from. */
static void
fused_epochs_do_not_mix(void **state)
{
    struct fixture fixture;
    const char *printed;

    (void)state;
    fixture_open(&fixture, "{range: 3}, {shuffle: {buffer_size: 100, seed: 3}}, {repeat: 50}");
    printed = fixture_epoch(&fixture, 1, 1000);
    assert_int_equal(strlen(printed), 1);
    assert_int_equal(fixture.opened[0], 4);
    assert_int_equal(fixture.pulled[0], 10);
    printed = fixture_epoch(&fixture, 1000, 7);
    for (int epoch = 0; epoch < 50; epoch++) {
        int seen = 0;

        for (int i = 0; i < 3; i++)
            seen |= 1 << (printed[2 * (3 * epoch + i)] - '0');
        assert_int_equal(seen, 7);
    }
    fixture_close(&fixture);
}

static void
iterators_of_a_take_behind_it_count(void **state)
{
    (void)state;
    assert_order("{range: 9}, {shuffle: {buffer_size: 4, seed: 6}}, {take: 4}, {repeat: 2}",
                 "2 4 5 3 0 1 2 5 | 2 0 1 5 1 2 3 5");
    assert_order("seed: 2\nstreams: {case: {dataset: [{range: 9}, {shuffle: {buffer_size: 9, "
                 "seed: 6}}, {take: 4}, {repeat: 3}]}}",
                 "8 6 7 4 7 3 4 5 0 5 1 6");
}

static void
a_repeat_before_it_mixes_epochs(void **state)
{
    (void)state;
    assert_order("{range: 5}, {repeat: 3}, {shuffle: {buffer_size: 7, seed: 3}}",
                 "0 2 0 1 0 3 3 4 1 2 2 4 3 4 1 | 1 0 3 1 3 1 2 0 4 0 4 4 3 2 2");
}

static void
two_in_a_row(void **state)
{
    (void)state;
    assert_order("{range: 12}, {shuffle: {buffer_size: 5, seed: 1}}, "
                 "{shuffle: {buffer_size: 3, seed: 2}}",
                 "3 6 7 4 2 0 8 5 11 10 9 1 | 3 4 0 1 9 11 6 8 5 10 7 2");
}

static void
it_moves_batches_as_wholes(void **state)
{
    (void)state;
    assert_order("seed: 10\nstreams: {case: {dataset: [{range: 11}, {shuffle: {buffer_size: 6, "
                 "seed: 1}}, {batch: 3}, {shuffle: {buffer_size: 2, seed: 5}}]}}",
                 "[4 7 3] [2 5 1] [8 6] [0 10 9] | [0 1 7] [2 9 10] [5 8 6] [3 4]");
}

static void
its_input_is_made_and_pulled_on_first_need(void **state)
{
    struct fixture fixture;

    (void)state;
    fixture_open(&fixture, "{range: 100}, {shuffle: {buffer_size: 10, seed: 3}}");
    fixture_epoch(&fixture, 0, 1);
    assert_int_equal(fixture.opened[0], 0);
    fixture_epoch(&fixture, 5, 5);
    assert_int_equal(fixture.opened[0], 1);
    assert_int_equal(fixture.pulled[0], 10 + 4);
    fixture_close(&fixture);
}

static void
a_failure_stands_where_its_element_was_pulled(void **state)
{
    struct fixture fixture;

    (void)state;
    fixture_open(&fixture, "{range: 8}, {shuffle: {buffer_size: 1, seed: 3}}");
    fixture.failing = 5;
    assert_string_equal(fixture_epoch(&fixture, 100, 100), "0 1 2 3 4 ! 6 7");
    assert_string_equal(tnd_error_text(), "test.yaml:1:29: range: cannot read 5");
    fixture_close(&fixture);
    fixture_open(&fixture, "{range: 8}, {shuffle: {buffer_size: 4, seed: 3}}");
    fixture.failing = 2;
    assert_int_equal(fixture_epoch(&fixture, 100, 100)[0], '!');
    fixture_close(&fixture);
}

static void
held_batches_are_given_up_at_close(void **state)
{
    struct fixture fixture;

    (void)state;
    fixture_open(&fixture, "{range: 100}, {batch: 2}, {shuffle: {buffer_size: 5, seed: 3}}, "
                           "{repeat: 3}");
    fixture_epoch(&fixture, 7, 3);
    fixture_close(&fixture);
}

static void
a_buffer_of_zero_is_refused(void **state)
{
    (void)state;
    assert_order("{range: 2}, {flat_map: [{range: 2}, {shuffle: {buffer_size: $value, seed: 1}}]}",
                 "! 0 1");
    assert_non_null(strstr(tnd_error_text(), "buffer_size"));
}

TEST_FILE(test_order_shuffle)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_vectors_of_tensorflow),
        cmocka_unit_test(a_buffer_of_any_size),
        cmocka_unit_test(a_repeat_behind_it_is_fused),
        cmocka_unit_test(fused_epochs_do_not_mix),
        cmocka_unit_test(iterators_of_a_take_behind_it_count),
        cmocka_unit_test(a_repeat_before_it_mixes_epochs),
        cmocka_unit_test(two_in_a_row),
        cmocka_unit_test(it_moves_batches_as_wholes),
        cmocka_unit_test(its_input_is_made_and_pulled_on_first_need),
        cmocka_unit_test(a_failure_stands_where_its_element_was_pulled),
        cmocka_unit_test(held_batches_are_given_up_at_close),
        cmocka_unit_test(a_buffer_of_zero_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
