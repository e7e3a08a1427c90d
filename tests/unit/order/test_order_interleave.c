/* test_order_interleave.c - functions of outer elements, in turn. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "order_fixture.h"
#include "unit/test_file.h"

static void
the_order_of_tensorflow(void **state)
{
    (void)state;
    assert_order("{range: [1, 4]}, {interleave: {dataset: [{range: [0, $value]}], cycle_length: 1, "
                 "block_length: 2}}",
                 "0 0 1 0 1 2");
    assert_order(
        "{range: [2, 5]}, {interleave: {dataset: [{range: [0, $value]}], cycle_length: 8}}",
        "0 0 0 1 1 1 2 2 3");
    assert_order("{range: [6, 0, -1]}, {interleave: {dataset: [{range: [0, $value]}], "
                 "cycle_length: 2, block_length: 2}}",
                 "0 1 0 1 2 3 2 3 4 5 4 0 1 0 1 2 3 2 0 1 0");
    assert_order("{range: [1, 7]}, {interleave: {dataset: [{range: [0, $value]}], cycle_length: 3, "
                 "block_length: 2, num_parallel_calls: 2}}",
                 "0 0 1 0 1 0 1 2 2 3 0 1 0 1 2 3 2 3 4 4 5");
}

static void
functions_nest(void **state)
{
    (void)state;
    assert_order(
        "{range: 3}, {interleave: {dataset: [{range: [10, 13]}, {interleave: {dataset: [{range: "
        "[0, $value]}, {take: 3}], cycle_length: 2}}], cycle_length: 2, block_length: 3}}",
        "0 0 1 0 0 1 1 2 2 1 2 2 0 1 2 0 1 2 0 0 1 1 2 2 0 1 2");
}

static void
flat_map_takes_one_after_the_other(void **state)
{
    (void)state;
    assert_order("{range: 5}, {flat_map: [{range: [0, $value]}]}", "0 0 1 0 1 2 0 1 2 3");
    assert_order("{range: [1, 4]}, {flat_map: [{range: 5}, {batch: $value}]}",
                 "[0] [1] [2] [3] [4] [0 1] [2 3] [4] [0 1 2] [3 4]");
}

static void
every_call_shuffles_alike(void **state)
{
    (void)state;
    assert_order("seed: 6\nstreams: {case: {dataset: [{range: 3}, {flat_map: [{range: 5}, "
                 "{shuffle: {buffer_size: 5, seed: 2}}]}]}}",
                 "3 1 4 0 2 3 1 4 0 2 3 1 4 0 2");
    assert_order("seed: 6\nstreams: {case: {dataset: [{range: 2}, {flat_map: [{range: 4}, "
                 "{shuffle: {buffer_size: 4, seed: 2}}, {repeat: 2}]}]}}",
                 "0 2 1 3 3 0 1 2 0 2 1 3 3 0 1 2");
}

static void
slots_are_opened_when_visited(void **state)
{
    struct fixture fixture;

    (void)state;
    fixture_open(
        &fixture,
        "{range: 100}, {interleave: {dataset: [{range: 10}], cycle_length: 4, block_length: 2}}");
    fixture_epoch(&fixture, 4, 4);
    assert_int_equal(fixture.pulled[0], 2);
    assert_int_equal(fixture.opened[1], 2);
    fixture_close(&fixture);
}

/* What was pulled and not asked for is given up. */
static void
batches_of_several_datasets_take_turns(void **state)
{
    (void)state;
    assert_order("{range: 3}, {interleave: {dataset: [{range: 5}, {batch: 2}], cycle_length: 2}}",
                 "[0 1] [0 1] [2 3] [2 3] [4] [4] [0 1] [2 3] [4]");
    assert_order("{range: 9}, {interleave: {dataset: [{range: 99}, {batch: 2}], cycle_length: 2}}, "
                 "{take: 3}",
                 "[0 1] [0 1] [2 3]");
    assert_order("{range: 9}, {interleave: {dataset: [{range: 99}, {batch: 2}], cycle_length: 2}}, "
                 "{skip: 3}, {take: 2}",
                 "[2 3] [4 5]");
}

static void
captured_elements_go_along(void **state)
{
    struct fixture fixture;

    (void)state;
    fixture_open(&fixture, "{range: [1, 4]}, {batch: 2}, {flat_map: [{range: 2}]}");
    fixture.graph->root->body->captures = true;
    fixture.graph->root->width = 3;
    fixture.graph->root->run_words = 4;
    for (size_t chunk = 1; chunk < 5; chunk++)
        assert_string_equal(fixture_epoch(&fixture, 100, chunk), "0@[1 2] 1@[1 2] 0@[3] 1@[3]");
    fixture_epoch(&fixture, 1, 1);
    fixture_close(&fixture);
}

static void
failures_of_outer_and_inner_are_passed_on(void **state)
{
    struct fixture fixture;

    (void)state;
    fixture_open(&fixture,
                 "{range: [20, 24]}, {interleave: {dataset: [{range: 3}], cycle_length: 2}}");
    fixture.failing = 1;
    assert_string_equal(fixture_epoch(&fixture, 100, 100), "0 0 ! 2 ! 2 0 0 ! 2 ! 2");
    fixture.failing = 21;
    assert_string_equal(fixture_epoch(&fixture, 100, 100), "0 ! 0 1 1 2 2 0 1 2");
    fixture.failing = -1;
    fixture.bad = 21;
    assert_string_equal(fixture_epoch(&fixture, 100, 100), "0 ! 0 1 1 2 2 0 1 2");
    assert_string_equal(tnd_error_text(), "21 is bad");
    fixture.skip_bad = true;
    assert_string_equal(fixture_epoch(&fixture, 100, 100), "0 0 1 1 2 2 0 1 2");
    fixture_close(&fixture);
}

static void
a_long_cycle_costs_nothing_by_itself(void **state)
{
    (void)state;
    assert_order("{range: 3}, {interleave: {dataset: [{range: 2}], cycle_length: 1000000000000}}",
                 "0 0 0 1 1 1");
}

static void
rounds_are_passed_over(void **state)
{
    static const char *const inputs[] = {
        "{range: [5, 9]}",
        "{range: [9, 2, -1]}",
        "{range: 5}, {skip: 1}",
        "{range: [1, 24, 7]}, {repeat: 2}",
        "{range: [3, 5]}, {repeat: 3}",
        "{range: 8}, {shuffle: {buffer_size: 3, seed: 1, reshuffle_each_iteration: false}}",
        "{range: 0}",
        "{range: [18, 23, 4]}",
    };
    static const char *const bodies[] = {
        "{range: [0, $value]}",
        "{range: [0, $value]}, {shuffle: {buffer_size: 3, seed: 2}}",
        "{range: [0, $value]}, {batch: 2}",
        "{range: $value}, {interleave: {dataset: [{range: [0, $value]}], cycle_length: 2}}",
        "{range: [0, $value]}, {filter: 'value % 3 != 1'}",
    };

    (void)state;
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++)
        for (size_t k = 0; k < sizeof bodies / sizeof *bodies; k++)
            for (int cycle = 1; cycle < 5; cycle++)
                for (int block = 1; block < 4; block++)
                    for (int64_t failing = -1; failing < 16; failing += 8) {
                        char stages[400];

                        snprintf(stages, sizeof stages,
                                 "%s, {interleave: {dataset: [%s], cycle_length: %d, "
                                 "block_length: %d}}",
                                 inputs[i], bodies[k], cycle, block);
                        /* Where a shuffle meets a failure depends on what is asked; and they would
                         * be many. */
                        if (failing < 0 || (strstr(stages, "shuffle") == NULL && k != 3))
                            assert_passes_over(stages, failing);
                    }
}

/* 8,000,000 rows, of datasets that end at various times. */
static void
few_elements_are_made_for_many_rounds(void **state)
{
    struct fixture fixture;
    uint64_t passed;

    (void)state;
    fixture_open(&fixture, "{range: [999990, 1000000]}, {interleave: {dataset: [{range: [0, "
                           "$value]}], cycle_length: 4, block_length: 3}}");
    fixture_epoch(&fixture, 0, 1);
    assert_int_equal(order_pass_over(fixture.iterator, 8000000, &passed), ORDER_OK);
    assert_in_range(fixture.made, 1, 2000);
    fixture_close(&fixture);
}

TEST_FILE(test_order_interleave)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_order_of_tensorflow),
        cmocka_unit_test(functions_nest),
        cmocka_unit_test(flat_map_takes_one_after_the_other),
        cmocka_unit_test(every_call_shuffles_alike),
        cmocka_unit_test(slots_are_opened_when_visited),
        cmocka_unit_test(batches_of_several_datasets_take_turns),
        cmocka_unit_test(captured_elements_go_along),
        cmocka_unit_test(failures_of_outer_and_inner_are_passed_on),
        cmocka_unit_test(a_long_cycle_costs_nothing_by_itself),
        cmocka_unit_test(rounds_are_passed_over),
        cmocka_unit_test(few_elements_are_made_for_many_rounds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
