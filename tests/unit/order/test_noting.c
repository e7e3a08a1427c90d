/* test_noting.c - the order of stages that note how far their inputs were taken is the same
 * wherever it is gone on with, also where such stages are inputs of others.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/memory.h"
#include "order_fixture.h"
#include "unit/test_file.h"

#define SAMPLE(datasets, more) "{sample_from_datasets: {datasets: " datasets ", seed: 1" more "}}"

/* 60 of 90 numbers. */
#define SOME "[{range: [0, 90]}, {filter: 'value % 3 != 1'}]"
#define INTERLEAVE(dataset, more) "{interleave: {dataset: " dataset more "}}"

static const char *const pipelines[] = {
    "{range: 15}, " INTERLEAVE(SOME, ", cycle_length: 4"),
    "{range: 15}, " INTERLEAVE(SOME, ", cycle_length: 4, block_length: 3"),
    "{range: 3}, " INTERLEAVE("[{range: 400}, {filter: 'value % 3 != 1'}]", ", cycle_length: 8"),
    "{range: 30}, {filter: 'value % 2 == 1'}, " INTERLEAVE(SOME, ", cycle_length: 3"),
    "{range: [1, 40]}, " INTERLEAVE("[{range: [0, $value]}, {filter: 'value % 5 != 1'}]",
                                    ", cycle_length: 5, block_length: 2"),
    "{range: 15}, {flat_map: " SOME "}",
    "{range: 9}, {flat_map: [{range: 40}, {flat_map: [{range: $value}, {filter: 'value % 2 == "
    "0'}]}]}",
    "{range: 15}, {shuffle: {buffer_size: 4, seed: 1}}, " INTERLEAVE(SOME, ", cycle_length: 4"),
    "{range: 15}, {shuffle: {buffer_size: 4, seed: 1}}, " INTERLEAVE(
        "[{range: [0, 90]}, {filter: 'value % 3 != 1'}, {shuffle: {buffer_size: 9, seed: 3}}]",
        ", cycle_length: 2"),
    "{range: 15}, " INTERLEAVE(SOME, ", cycle_length: 4") ", {shuffle: {buffer_size: 30, seed: 2}}",
    "{range: 5}, " INTERLEAVE(SOME, ", cycle_length: 2") ", {shuffle: {buffer_size: 9, seed: 2}}, "
                                                         "{repeat: 4}",
    "{range: 15}, " INTERLEAVE(SOME, ", cycle_length: 4") ", {filter: 'value > 7'}, {batch: 3}",
    "{range: 300}, {batch: 20}, " INTERLEAVE("[{range: 60}, {filter: 'value % 3 != 1'}]",
                                             ", cycle_length: 3"),
    SAMPLE("[[{range: 400}], [{range: [400, 900]}]]", ""),
    SAMPLE("[[{range: 400}], [{range: [400, 900]}], [{range: [900, 910]}]]",
           ", weights: [0.3, 0.6, 0.1]"),
    SAMPLE("[[{range: 40}], [{range: [400, 1200]}]]", ", stop_on_empty_dataset: true"),
    SAMPLE("[[{range: 900}, {filter: 'value % 3 != 1'}], [{range: 500}, {filter: 'value % 2 == "
           "1'}]]",
           ", weights: [0.8, 0.2]"),
    SAMPLE("[[{range: 300}, {shuffle: {buffer_size: 20, seed: 3}}, repeat], [{range: 900}]]",
           ", weights: [0.5, 0.5]") ", {take: 1200}",
    SAMPLE("[[{range: 300}], [{range: [300, 420]}, {shuffle: {buffer_size: 7, seed: 3}}]]",
           "") ", {repeat: 3}",
    SAMPLE("[[{range: 500}], [{range: [500, 900]}]]", "") ", {filter: 'value % 3 != 1'}",
    SAMPLE("[[{range: 500}], [{range: [500, 900]}]]", "") ", {shuffle: {buffer_size: 30, seed: 2}}",
    SAMPLE("[[{range: 500}], [{range: [500, 900]}]]", "") ", {shard: {num_shards: 3, index: 1}}",
    SAMPLE("[[{range: 900}, {shard: {num_shards: 2, index: 1}}], [{range: 300}, {repeat: 2}]]", ""),
    SAMPLE("[[{range: 900}, {batch: 4}, {rebatch: 3}], [{range: 600}, {batch: 5}]]",
           "") ", {rebatch: 7}",
    SAMPLE("[[{range: 300}, {filter: 'value % 3 != 1'}], [{range: [300, 420]}]]",
           "") ", {shuffle: {buffer_size: 9, seed: 3}}, {repeat: 5}",
    "{range: 400}, {filter: 'value % 3 != 1'}, {shuffle: {buffer_size: 9, seed: 3}}, {repeat: 5}",
    "{range: 400}, {filter: 'value % 3 != 1'}, {repeat: 5}, {shuffle: {buffer_size: 9, seed: 3}}",
    "{range: 999}, {filter: 'value % 3 != 1'}, {batch: 2}, {shuffle: {buffer_size: 9, seed: 3}}",
    ("{range: 400}, {shuffle: {buffer_size: 5, seed: 1}}, {filter: 'value % 3 != 1'}, "
     "{shuffle: {buffer_size: 9, seed: 3}}, {repeat: 5}"),
    "{range: 60}, {filter: 'value % 3 != 1'}, {shuffle: {buffer_size: 50, seed: 3}}, {repeat: 40}",
    "{range: 1100}, {batch: 4}, {rebatch: 3}",
    "{range: 1100}, {batch: 7}, {rebatch: 2}, {rebatch: 3}",
    "{range: 1100}, {batch: 2}, {rebatch: {batch_size: 5, drop_remainder: true}}",
    "{range: 1100}, {batch: 4}, {rebatch: [1, 3, 2]}",
    "{range: 1100}, {filter: 'value % 3 != 1'}, {batch: 4}, {rebatch: 3}",
    "{range: 900}, {batch: 3}, unbatch, {batch: 4}, {rebatch: 3}",
    "{range: 900}, {batch: 4}, {rebatch: 3}, unbatch",
    "{range: 300}, {shuffle: {buffer_size: 9, seed: 3}}, {batch: 4}, {rebatch: 3}, {repeat: 4}",
    "{range: 900}, {batch: 4}, {shard: {num_shards: 2, index: 1}}, {rebatch: 3}",
    "{range: 900}, {batch: 4}, {rebatch: 3}, {shard: {num_shards: 2, index: 0}}",
    "{concatenate: [[{range: 500}, {batch: 4}], [{range: [500, 900]}, {batch: 6}]]}, {rebatch: 5}",
};

/* What comes after the first `count` elements of the pass after `passes` others. */
static char *
rest_after(struct fixture *fixture, int passes, uint64_t count)
{
    uint64_t passed;

    for (int pass = 0; pass < passes; pass++)
        fixture_epoch(fixture, 100000, 100);
    fixture_epoch(fixture, 0, 1);
    assert_int_not_equal(order_pass_over(fixture->iterator, count, &passed), ORDER_FAILED);
    return tnd_strdup(fixture_rest(fixture, 10));
}

static void
assert_same_counts(const struct fixture *one, const struct fixture *other)
{
    for (uint32_t i = 0; i < one->graph->node_count; i++) {
        assert_int_equal(one->instance->iterator_counts[i], other->instance->iterator_counts[i]);
        assert_int_equal(one->instance->element_counts[i], other->instance->element_counts[i]);
    }
}

static void
assert_goes_on(const char *pipeline, struct order_landmarks *landmarks, int passes, uint64_t count)
{
    struct fixture plain, noted;
    char *expected, *got;

    fixture_open(&plain, pipeline);
    expected = rest_after(&plain, passes, count);
    fixture_open(&noted, pipeline);
    noted.services.landmarks = landmarks;
    got = rest_after(&noted, passes, count);
    if (strcmp(got, expected) != 0)
        fail_msg("%s: after %d in pass %d: %s, not %s", pipeline, (int)count, passes, got,
                 expected);
    assert_same_counts(&noted, &plain);
    free(got);
    free(expected);
    fixture_close(&noted);
    fixture_close(&plain);
}

/* By a run that makes all elements. */
static void
note_all(const char *pipeline, struct order_landmarks *landmarks, int passes)
{
    struct fixture fixture;

    fixture_open(&fixture, pipeline);
    fixture.services.landmarks = landmarks;
    for (int pass = 0; pass <= passes; pass++)
        fixture_epoch(&fixture, 100000, 7);
    fixture_close(&fixture);
}

/* Under a sanitizer, which takes long, each pipeline has one of the steps. */
#if defined __SANITIZE_THREAD__ || defined __SANITIZE_ADDRESS__
enum { APART = 3 };
#else
enum { APART = 1 };
#endif

static void
the_order_goes_on_the_same_at_any_cut(void **state)
{
    static const uint32_t steps[] = { 1, 5, 32 };

    (void)state;
    for (size_t i = 0; i < sizeof pipelines / sizeof *pipelines; i++)
        for (size_t k = i % APART; k < sizeof steps / sizeof *steps; k += APART)
            for (int passes = 0; passes < 2; passes++) {
                struct order_landmarks landmarks = { .step = steps[k] };

                note_all(pipelines[i], &landmarks, passes);
                assert_true(landmarks.noted > 0);
                for (uint64_t count = 0; count < 1300; count += 1 + count / 3)
                    assert_goes_on(pipelines[i], &landmarks, passes, count);
                assert_true(landmarks.leapt > 0);
                order_landmarks_close(&landmarks);
            }
}

/* A resume without notes makes them, as far as it goes. */
static void
notes_are_made_on_the_way_to_a_place(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof pipelines / sizeof *pipelines; i++) {
        struct order_landmarks landmarks = { .step = 8 };

        for (uint64_t count = 50; count < 400; count += 50)
            assert_goes_on(pipelines[i], &landmarks, 0, count);
        assert_true(landmarks.noted > 0);
        assert_true(landmarks.leapt > 0);
        order_landmarks_close(&landmarks);
    }
}

/* How many elements are made to stand after `count`, if a first run made them all. */
static uint64_t
made_again(const char *pipeline, uint64_t count)
{
    struct order_landmarks landmarks = { 0 };
    struct fixture fixture;
    uint64_t passed, made;

    note_all(pipeline, &landmarks, 0);
    fixture_open(&fixture, pipeline);
    fixture.services.landmarks = &landmarks;
    fixture_epoch(&fixture, 0, 1);
    assert_int_equal(order_pass_over(fixture.iterator, count, &passed), ORDER_OK);
    made = fixture.made;
    assert_true(landmarks.leapt + 2 * LANDMARK_STEP >= count);
    fixture_close(&fixture);
    order_landmarks_close(&landmarks);
    return made;
}

static void
few_are_made_again(void **state)
{
    (void)state;
    assert_in_range(made_again("{range: 60000}, {batch: 4}, {rebatch: 3}", 15000), 0,
                    4 * LANDMARK_STEP);
    assert_in_range(made_again(SAMPLE("[[{range: 9000}], [{range: 9000}]]", ""), 12000), 0, 0);
    assert_in_range(
        made_again(SAMPLE("[[{range: 9000}, {filter: 'value % 3 != 1'}], [{range: 9000}]]", ""),
                   12000),
        0, 4 * LANDMARK_STEP);
    /* Those of the datasets that are open, and an outer element for each of the others. */
    assert_in_range(
        made_again("{range: 60}, " INTERLEAVE("[{range: 900}, {filter: 'value % 3 != 1'}]",
                                              ", cycle_length: 4"),
                   30000),
        0, 4 * 900 + 60 + 4 * LANDMARK_STEP);
    assert_in_range(
        made_again("{range: 60}, {flat_map: [{range: 900}, {filter: 'value % 3 != 1'}]}", 30000), 0,
        900 + 60 + 4 * LANDMARK_STEP);
}

/* Notes that were made while draws were only counted hold up to a failure. */
static void
what_is_noted_beyond_a_failure_is_taken_back(void **state)
{
    static const char pipeline[] =
        SAMPLE("[[{range: 3000}], [{range: [3000, 6000]}]]", ", weights: [0.5, 0.5]");

    (void)state;
    for (uint64_t count = 1; count < 4000; count += 444) {
        struct order_landmarks landmarks = { .step = 8 };
        struct fixture fixture;
        uint64_t passed;

        fixture_open(&fixture, pipeline);
        fixture.services.landmarks = &landmarks;
        fixture.failing = 1000;
        fixture_epoch(&fixture, 0, 1);
        (void)order_pass_over(fixture.iterator, count, &passed);
        fixture_rest(&fixture, 10);
        assert_int_equal(landmarks.list_count, 1);
        assert_in_range(order_landmarks_reach(&landmarks.lists[0]), 0, 2200);
        fixture_close(&fixture);
        order_landmarks_close(&landmarks);
    }
}

/* Put `state` into all landmarks of the list. */
static void
forge(struct order_landmark_list *list, const struct order_state_writer *state)
{
    list->states = tnd_realloc(list->states, list->count, state->count + 1);
    for (uint32_t i = 0; i < list->count; i++) {
        if (state->count > 0)
            memcpy(list->states + i * state->count, state->bytes, state->count);
        list->state_ends[i] = (i + 1) * state->count;
    }
    list->state_room = list->count * state->count;
}

/* As a file may bring them. What is no state of the stage leaves the order as it is; what could be
 * one, but is not, fails or brings elements. */
static void
assert_lie(const char *pipeline, const uint64_t *numbers, size_t count, bool could_be)
{
    struct order_landmarks landmarks = { .step = 16 };
    struct order_state_writer writer = { 0 };
    struct fixture fixture;
    uint64_t passed;

    note_all(pipeline, &landmarks, 0);
    for (size_t i = 0; i < count; i++)
        order_state_put(&writer, numbers[i]);
    forge(&landmarks.lists[0], &writer);
    if (!could_be) {
        assert_goes_on(pipeline, &landmarks, 0, 100);
        assert_int_equal(landmarks.leapt, 0);
    }
    fixture_open(&fixture, pipeline);
    fixture.services.landmarks = &landmarks;
    fixture_epoch(&fixture, 0, 1);
    (void)order_pass_over(fixture.iterator, 100, &passed);
    fixture_rest(&fixture, 10);
    fixture_close(&fixture);
    order_state_close(&writer);
    order_landmarks_close(&landmarks);
}

/* Rows that are left out are counted where they are met: by a run that resumes, too. */
static void
nothing_is_noted_beyond_what_is_left_out(void **state)
{
    static const struct {
        const char *pipeline;
        uint64_t most;
    } cases[] = {
        { "{range: 3}, {flat_map: [{range: [0, 900]}, {filter: 'value % 3 != 1'}]}", 200 },
        { "{range: [298, 900]}, {flat_map: [{range: [0, $value]}, {filter: 'value % 3 != 1'}]}",
          400 },
        { "{range: [299, 900]}, {flat_map: [{range: [400, 500]}, {filter: 'value % 3 != 1'}]}",
          67 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct order_landmarks landmarks = { .step = 8 };
        struct fixture fixture;

        fixture_open(&fixture, cases[i].pipeline);
        fixture.services.landmarks = &landmarks;
        fixture.bad = 300;
        fixture.skip_bad = true;
        fixture_epoch(&fixture, 100000, 7);
        assert_int_equal(landmarks.list_count, 1);
        assert_in_range(order_landmarks_reach(&landmarks.lists[0]), 1, cases[i].most);
        fixture_close(&fixture);
        order_landmarks_close(&landmarks);
    }
}

static void
states_that_cannot_be_are_not_taken(void **state)
{
    static const char sampled[] = SAMPLE("[[{range: 90}], [{range: 900}]]", "");
    static const char stopping[] =
        SAMPLE("[[{range: 90}], [{range: 900}]]", ", stop_on_empty_dataset: true");
    static const char rebatched[] = "{range: 900}, {batch: 4}, {rebatch: 3}";
    /* At the last landmark before the hundredth element 96 have passed, if no input was empty. */
    static const uint64_t lies[][5] = {
        { 48, 0, 47, 0 },         /* fewer elements together */
        { 48, 0, 49, 0 },         /* more */
        { 96, 0, UINT64_MAX, 0 }, /* ... */
        { 48, 0, 48 },            /* one number is missing */
        { 48, 0, 48, 0, 0 },      /* one too many */
        { 48, 2, 48, 0 },         /* an end is met or is not */
        { 48, 1, 48, 1 },         /* none is left */
        { 0 },
    };
    static const size_t counts[] = { 4, 4, 4, 3, 5, 4, 4, 0 };
    static const char interleaved[] =
        "{range: 9}, " INTERLEAVE(SOME, ", cycle_length: 2, block_length: 3");
    /* At that landmark two are open, and nothing of a block was taken. */
    static const uint64_t places[][10] = {
        { 0, 0, 2, 1, 2, 1, 48, 2 },             /* one number is missing */
        { 0, 0, 2, 1, 2, 1, 48, 2, 48, 0 },      /* one too many */
        { 0, 0, 2, 1, 3, 1, 48, 2, 48, 0 },      /* more datasets than in a cycle */
        { 3, 0, 2, 1, 2, 1, 48, 2, 48 },         /* the turn of none of them */
        { 0, 3, 2, 1, 2, 1, 48, 2, 48 },         /* a whole block was taken, and no more */
        { 0, 2, 2, 1, 2, 0, 1, 96 },             /* some of a block of an empty one */
        { 0, 0, 2, 1, 2, 1, 48, 1, 48 },         /* two datasets of the same element */
        { 0, 0, 2, 1, 2, 1, 48, 3, 48 },         /* of one that was not pulled */
        { 0, 0, 2, 2, 2, 1, 48, 2, 48 },         /* the input is at an end or is not */
        { 0, 0, 2, 1, 2, 1, 48, 2, 49 },         /* more than passed */
        { 0, 0, 2, 1, UINT64_MAX, 1, 48, 2, 48 } /* ... */
    };
    static const size_t place_counts[] = { 8, 10, 10, 9, 9, 8, 9, 9, 9, 9, 9 };
    static const size_t batch_counts[] = { 2, 1, 3 };
    static const uint64_t batches[][3] = {
        { 0, 2 },     /* rows of no batch */
        { 72 },       /* one number is missing */
        { 72, 0, 0 }, /* one too many */
    };

    (void)state;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        assert_lie(sampled, lies[i], counts[i], false);
        assert_lie(stopping, lies[i], counts[i], false);
    }
    assert_lie(stopping, (const uint64_t[]){ 48, 1, 48, 0 }, 4, false);
    assert_lie(sampled, (const uint64_t[]){ 48, 1, 48, 0 }, 4, true);
    assert_lie(sampled, (const uint64_t[]){ 96, 0, 0, 0 }, 4, true);
    for (size_t i = 0; i < sizeof place_counts / sizeof *place_counts; i++)
        assert_lie(interleaved, places[i], place_counts[i], false);
    assert_lie(interleaved, (const uint64_t[]){ 0, 0, UINT64_MAX, 1, 2, 1, 48, 2, 48 }, 9, true);
    assert_lie(interleaved, (const uint64_t[]){ 0, 0, 2, 0, 2, 1, 48, 2, 48 }, 9, true);
    assert_lie(interleaved, (const uint64_t[]){ 0, 0, 8, 1, 2, 5, 66, 2, 30 }, 9, true);
    for (size_t i = 0; i < sizeof batches / sizeof *batches; i++)
        assert_lie(rebatched, batches[i], batch_counts[i], false);
    assert_lie(rebatched, (const uint64_t[]){ 72, 4 }, 2, true);
    assert_lie(rebatched, (const uint64_t[]){ UINT64_MAX, 1 }, 2, true);
    assert_lie(rebatched, (const uint64_t[]){ 0, 0 }, 2, true);
}

TEST_FILE(test_noting)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_order_goes_on_the_same_at_any_cut),
        cmocka_unit_test(notes_are_made_on_the_way_to_a_place),
        cmocka_unit_test(few_are_made_again),
        cmocka_unit_test(what_is_noted_beyond_a_failure_is_taken_back),
        cmocka_unit_test(nothing_is_noted_beyond_what_is_left_out),
        cmocka_unit_test(states_that_cannot_be_are_not_taken),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
