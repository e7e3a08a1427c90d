/* test_landmarks.c - elements that a filter has decided on before are passed over, and all that
 * follows is as it was.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/memory.h"
#include "order_fixture.h"
#include "unit/test_file.h"

static void
open_noted(struct fixture *fixture, const char *pipeline, struct order_landmarks *landmarks)
{
    fixture_open(fixture, pipeline);
    fixture->services.landmarks = landmarks;
}

/* The elements after the first `count` of the epoch after `epochs` others. */
static char *
after(struct fixture *fixture, int epochs, uint64_t count)
{
    uint64_t passed;

    for (int epoch = 0; epoch < epochs; epoch++)
        fixture_epoch(fixture, 100000, 100);
    fixture_epoch(fixture, 0, 1);
    assert_int_not_equal(order_pass_over(fixture->iterator, count, &passed), ORDER_FAILED);
    assert_in_range(passed, count < 700 ? count : 0, count);
    return tnd_strdup(fixture_rest(fixture, 10));
}

/* What later passes see. */
static void
assert_same_counts(const struct fixture *one, const struct fixture *other)
{
    for (uint32_t i = 0; i < one->graph->node_count; i++) {
        assert_int_equal(one->instance->iterator_counts[i], other->instance->iterator_counts[i]);
        assert_int_equal(one->instance->element_counts[i], other->instance->element_counts[i]);
    }
}

static void
what_follows_is_the_same(void **state)
{
    static const char *const pipelines[] = {
        "{range: 3000}, {filter: 'value % 3 == 1'}",
        "{range: 9000}, {filter: 'value > 8000'}",
        "{range: 3000}, {filter: 'value > 1500'}, {filter: 'value % 2 == 1'}, {batch: 1}",
        "{range: 3000}, {shuffle: {buffer_size: 50, seed: 1}}, {filter: 'value % 3 != 1'}",
        "{range: 900}, {filter: 'value % 3 != 1'}, {repeat: 4}, {take: 1500}",
        "{range: 3000}, {filter: 'value % 3 != 1'}, {shuffle: {buffer_size: 50, seed: 1}}",
        "{range: 900}, {shuffle: {buffer_size: 9, seed: 3}}, {filter: 'value % 3 != 1'}, "
        "{repeat: 4}, {batch: 1}",
        "{range: 900}, {shuffle: {buffer_size: 9, seed: 3}}, {filter: 'value % 3 != 1'}, "
        "{shuffle: {buffer_size: 5, seed: 1}}, {repeat: 3}",
    };

    (void)state;
    for (size_t i = 0; i < sizeof pipelines / sizeof *pipelines; i++)
        for (uint64_t count = 0; count < 800; count += 199)
            for (int epochs = 0; epochs < 2; epochs++) {
                struct order_landmarks landmarks = { 0 };
                struct fixture plain, first, again;
                char *expected, *got;

                fixture_open(&plain, pipelines[i]);
                expected = after(&plain, epochs, count);
                open_noted(&first, pipelines[i], &landmarks);
                got = after(&first, epochs, count);
                assert_string_equal(got, expected);
                free(got);
                fixture_close(&first);
                assert_true(landmarks.noted > 0);
                open_noted(&again, pipelines[i], &landmarks);
                got = after(&again, epochs, count);
                if (strcmp(got, expected) != 0)
                    fail_msg("%s, after %d in epoch %d", pipelines[i], (int)count, epochs);
                assert_same_counts(&again, &plain);
                free(got);
                free(expected);
                fixture_close(&again);
                fixture_close(&plain);
                order_landmarks_close(&landmarks);
            }
}

/* How many elements are looked at to stand after `count`, if a first run made them all. */
static uint64_t
looked_at(const char *pipeline, uint64_t count)
{
    struct order_landmarks landmarks = { 0 };
    struct fixture first, again;
    uint64_t passed, evaluated;

    open_noted(&first, pipeline, &landmarks);
    fixture_epoch(&first, 200000, 1000);
    fixture_close(&first);
    open_noted(&again, pipeline, &landmarks);
    fixture_epoch(&again, 0, 1);
    assert_int_equal(order_pass_over(again.iterator, count, &passed), ORDER_OK);
    evaluated = again.evaluated;
    fixture_close(&again);
    order_landmarks_close(&landmarks);
    return evaluated;
}

static void
few_are_decided_again(void **state)
{
    (void)state;
    /* The rest of a step, and what is looked at ahead. */
    assert_in_range(looked_at("{range: 30000}, {filter: 'value % 3 == 1'}", 9000), 1, 1024);
    assert_in_range(looked_at("{range: 30000}, {shuffle: {buffer_size: 99, seed: 1}}, "
                              "{filter: 'value % 3 == 1'}, {batch: 5}",
                              1800),
                    1, 1024);
    /* Both steps, of the second 3 * 256 elements before the first. */
    assert_in_range(looked_at("{range: 60000}, {filter: 'value % 3 == 1'}, "
                              "{filter: 'value % 2 == 1'}",
                              9000),
                    1, 3000);
    /* What may still be held, at about log(50) times as many draws. */
    assert_in_range(looked_at("{range: 30000}, {filter: 'value % 3 == 1'}, "
                              "{shuffle: {buffer_size: 50, seed: 1}}",
                              9000),
                    1, 5000);
}

static void
inputs_that_are_drawn_from_are_passed_over(void **state)
{
    (void)state;
    assert_in_range(
        looked_at("datasets: {some: [{range: 30000}, {filter: 'value % 3 == 1'}], "
                  "all: [{range: 30000}]}\n"
                  "streams: {case: {dataset: [{sample_from_datasets: {datasets: [some, all], "
                  "seed: 1}}]}}",
                  12000),
        1, 2048);
}

/* What fails or is left out is met again: it counts. */
static void
a_list_ends_where_something_is_bad(void **state)
{
    static const char pipeline[] = "{range: 3000}, {batch: 1}, {filter: 'value % 3 == 1'}";

    (void)state;
    for (int skips = 0; skips < 3; skips++) {
        struct order_landmarks landmarks = { 0 };
        struct fixture fixture;

        open_noted(&fixture, pipeline, &landmarks);
        if (skips < 2)
            fixture.bad = 1000;
        else
            fixture.failing = 1000;
        fixture.skip_bad = skips == 1;
        fixture_epoch(&fixture, 9999, 7);
        assert_int_equal(landmarks.list_count, 1);
        assert_int_equal(landmarks.lists[0].count, 3);
        fixture_close(&fixture);
        order_landmarks_close(&landmarks);
    }
}

/* Of a list that is longer than the input, the rest cannot be known. */
static void
a_shorter_input_is_told(void **state)
{
    struct order_landmarks landmarks = { 0 };
    struct fixture fixture;
    uint64_t passed;

    (void)state;
    open_noted(&fixture, "{range: 3000}, {filter: 'value % 3 == 1'}", &landmarks);
    fixture_epoch(&fixture, 9999, 7);
    fixture_close(&fixture);
    open_noted(&fixture, "{range: 2000}, {filter: 'value % 3 == 1'}", &landmarks);
    fixture_epoch(&fixture, 0, 7);
    assert_int_equal(order_pass_over(fixture.iterator, 900, &passed), ORDER_FAILED);
    assert_non_null(strstr(tnd_error_text(), "had 2560 elements, and there are 2000"));
    fixture_close(&fixture);
    order_landmarks_close(&landmarks);
}

static void
passes_that_differ_have_lists_of_their_own(void **state)
{
    struct order_landmarks landmarks = { 0 };
    struct fixture fixture;

    (void)state;
    open_noted(&fixture, "{range: 600}, {filter: 'value % 3 == 1'}", &landmarks);
    for (int epoch = 0; epoch < 3; epoch++)
        fixture_epoch(&fixture, 9999, 7);
    assert_int_equal(landmarks.list_count, 1);
    fixture_close(&fixture);
    order_landmarks_close(&landmarks);
    open_noted(&fixture,
               "{range: 600}, {shuffle: {buffer_size: 9, seed: 1}}, {filter: 'value % 3 == 1'}",
               &landmarks);
    for (int epoch = 0; epoch < 2 * LANDMARK_LISTS; epoch++)
        fixture_epoch(&fixture, 9999, 7);
    assert_int_equal(landmarks.list_count, LANDMARK_LISTS);
    /* The last ones stay. */
    for (uint32_t i = 0; i < LANDMARK_LISTS; i++)
        assert_true(landmarks.lists[i].last_used > LANDMARK_LISTS);
    fixture_close(&fixture);
    order_landmarks_close(&landmarks);
}

static void
a_long_list_gets_larger_steps(void **state)
{
    static uint64_t passed[LANDMARKS_AT_MOST];
    struct order_landmarks landmarks = { .list_count = 1 };
    struct order_landmark_list *list = &landmarks.lists[0];
    uint64_t taken, got;

    (void)state;
    *list = (struct order_landmark_list){ .step = LANDMARK_STEP,
                                          .passed = passed,
                                          .room = LANDMARKS_AT_MOST };
    for (uint64_t i = 1; i <= 5 * LANDMARKS_AT_MOST; i++)
        order_landmarks_note(&landmarks, list, i * LANDMARK_STEP, i * 2);
    assert_int_equal(list->step, 8 * LANDMARK_STEP);
    assert_int_equal(list->count, 5 * LANDMARKS_AT_MOST / 8);
    assert_int_equal(order_landmarks_reach(list), 5 * LANDMARKS_AT_MOST * 2);
    for (uint64_t count = 0; count < 200; count++) {
        bool is_there = order_landmarks_before(list, count, &taken, &got);

        assert_int_equal(is_there, count > 16);
        if (is_there) {
            assert_int_equal(got, (count - 1) / 16 * 16);
            assert_int_equal(taken, got / 2 * LANDMARK_STEP);
        }
    }
}

TEST_FILE(test_landmarks)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_follows_is_the_same),
        cmocka_unit_test(few_are_decided_again),
        cmocka_unit_test(inputs_that_are_drawn_from_are_passed_over),
        cmocka_unit_test(a_list_ends_where_something_is_bad),
        cmocka_unit_test(a_shorter_input_is_told),
        cmocka_unit_test(passes_that_differ_have_lists_of_their_own),
        cmocka_unit_test(a_long_list_gets_larger_steps),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
