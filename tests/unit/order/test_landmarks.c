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
    assert_in_range(passed, 0, count);
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

/* A scalar is its own length. */
#define BUCKETS(input)                                                                             \
    input ", {bucket_by_sequence_length: {column: value, bucket_boundaries: [100, 350, 700], "     \
          "bucket_batch_sizes: [2, 3, 1, 2]}}"

#define CHOOSE(datasets, choice)                                                                   \
    "{choose_from_datasets: {datasets: " datasets ", choice_dataset: " choice "}}"

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
        "{range: 3000}, {group_by_window: {key: 'value % 5', window_size: 3}}",
        "{range: 3000}, {group_by_window: {key: 'value % 70', window_size: 2}}, {batch: 1}",
        "{range: 900}, {group_by_window: {key: 'value % 7', window_size: 3}}, {repeat: 4}",
        "{range: 5000}, {filter: 'value % 3 != 1'}, "
        "{group_by_window: {key: 'value % 11', window_size: 4}}",
        "{range: 900}, {shuffle: {buffer_size: 9, seed: 3}}, "
        "{group_by_window: {key: 'value % 2', window_size: 2}}, {repeat: 4}",
        "{range: 3000}, {batch: 2}, {group_by_window: {key: 'value % 5', window_size: 3}}",
        "{range: 3000}, {batch: 2}, unbatch",
        "{range: 9000}, {batch: 2}, {batch: 3}, unbatch",
        "{range: 900}, {shuffle: {buffer_size: 9, seed: 3}}, {batch: 3}, unbatch, {repeat: 4}",
        CHOOSE("[[{range: 3000}], [{range: [3000, 6000]}]]", "[{range: 2}, repeat]"),
        CHOOSE("[[{range: 3000}, {shuffle: {buffer_size: 9, seed: 3}}], [{range: [3000, 6000]}]]",
               "[{range: 2}, {repeat: 1500}]"),
        CHOOSE("[[{range: 300}], [{range: 5000}]]",
               "[{range: 2}, repeat], stop_on_empty_dataset: false"),
        BUCKETS("{range: 3000}"),
        BUCKETS("{range: 900}") ", {repeat: 4}, {batch: 1}",
        BUCKETS("{range: 900}, {shuffle: {buffer_size: 9, seed: 3}}") ", {repeat: 4}",
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
    /* The same, in a later pass: and to where the first one ends. */
    assert_in_range(looked_at("{range: 30000}, {filter: 'value % 30 == 1'}, "
                              "{shuffle: {buffer_size: 5, seed: 1}}, {repeat: 9}",
                              8500),
                    1, 5000);
    assert_in_range(looked_at("{range: 30000}, {filter: 'value % 30 == 1'}, {repeat: 9}, "
                              "{shuffle: {buffer_size: 5, seed: 1}}",
                              8500),
                    1, 10000);
}

/* From anywhere. */
static void
filters_leap_on_the_way(void **state)
{
    static const char pipeline[] = "{range: 30000}, {filter: 'value % 3 == 1'}";
    struct order_landmarks landmarks = { 0 };
    struct fixture fixture;
    uint64_t passed, evaluated;

    (void)state;
    open_noted(&fixture, pipeline, &landmarks);
    fixture_epoch(&fixture, 200000, 1000);
    fixture_close(&fixture);
    open_noted(&fixture, pipeline, &landmarks);
    assert_string_equal(fixture_epoch(&fixture, 3, 1), "1 4 7");
    for (uint64_t at = 3; at < 9000; at += 997) {
        uint64_t words[2];
        size_t count;

        evaluated = fixture.evaluated;
        assert_int_equal(order_pass_over(fixture.iterator, 996, &passed), ORDER_OK);
        assert_int_equal(passed, 996);
        assert_in_range(fixture.evaluated - evaluated, 0, 1024);
        assert_int_equal(order_next(fixture.iterator, words, 1, &count), ORDER_OK);
        assert_int_equal(words[0], 3 * (at + 996) + 1);
    }
    fixture_close(&fixture);
    order_landmarks_close(&landmarks);
}

static void
few_are_looked_at_again(void **state)
{
    static const char lengths[] = BUCKETS("{range: 30000}");

    (void)state;
    assert_in_range(looked_at("{range: 30000}, {group_by_window: {key: 'value % 5', "
                              "window_size: 3}}",
                              8000),
                    1, 1024);
    assert_in_range(looked_at("{range: 30000}, {group_by_window: {key: 'value % 97', "
                              "window_size: 8}}, {batch: 2}",
                              1500),
                    1, 2500);
    assert_in_range(
        looked_at(CHOOSE("[[{range: 30000}], [{range: 30000}]]", "[{range: 2}, {repeat: 15000}]"),
                  20000),
        1, 1024);
    assert_in_range(looked_at(lengths, 9000), 1, 1024);
}

/* As a file may bring it: whatever the bytes of a state are, nothing but elements follow. */
static void
any_state_may_come(void **state)
{
    static const char *const pipelines[] = {
        "{range: 1500}, {batch: 1}, {group_by_window: {key: 'value % 7', window_size: 4}}",
        BUCKETS("{range: 1500}, {batch: 2}"),
        CHOOSE("[[{range: 300}, {batch: 1}], [{range: 5000}, {batch: 1}]]",
               "[{range: 2}, {repeat: 3000}], stop_on_empty_dataset: false"),
        ("{sample_from_datasets: {datasets: [[{range: 300}, {batch: 1}], "
         "[{range: 5000}, {batch: 1}]], seed: 1}}"),
        "{range: 3000}, {batch: 4}, {rebatch: 3}",
    };

    (void)state;
    for (size_t i = 0; i < sizeof pipelines / sizeof *pipelines; i++) {
        struct order_landmarks landmarks = { .step = 16 };
        struct fixture fixture;
        size_t bytes;

        open_noted(&fixture, pipelines[i], &landmarks);
        fixture_epoch(&fixture, 10000, 100);
        fixture_close(&fixture);
        bytes = order_landmarks_state_bytes(&landmarks.lists[0]);
        assert_true(bytes > 40);
        for (size_t at = bytes - 20; at < bytes; at++)
            for (int bit = 0; bit < 8; bit++) {
                uint8_t *byte = &landmarks.lists[0].states[at];
                uint64_t passed, ended = landmarks.lists[0].state_ends[0];

                *byte ^= (uint8_t)(1 << bit);
                open_noted(&fixture, pipelines[i], &landmarks);
                fixture_epoch(&fixture, 0, 1);
                (void)order_pass_over(fixture.iterator, 1000000, &passed);
                fixture_close(&fixture);
                *byte ^= (uint8_t)(1 << bit);
                assert_int_equal(landmarks.lists[0].state_ends[0], ended);
            }
        order_landmarks_close(&landmarks);
    }
}

/* Put `state` into all landmarks of the list. */
static void
forge(struct order_landmark_list *list, const struct order_state_writer *state)
{
    list->states = tnd_realloc(list->states, list->count, state->count);
    for (uint32_t i = 0; i < list->count; i++) {
        memcpy(list->states + i * state->count, state->bytes, state->count);
        list->state_ends[i] = (i + 1) * state->count;
    }
    list->state_room = list->count * state->count;
}

static void
states_that_cannot_be_are_not_taken(void **state)
{
    static const char pipeline[] =
        "{range: 3000}, {group_by_window: {key: 'value % 5', window_size: 3}}";
    /* Elements held; then of each window key, size, and the numbers of its elements. Signed numbers
     * are doubled. */
    static const uint64_t lies[][12] = {
        { 1, 2, 3, 1, 5, 7 },          /* more bytes */
        { 2, 2, 3, 1, 5 },             /* fewer are held */
        { 1, 2, 4, 1, 5 },             /* a window of another size */
        { 1, 2, 3, 2, 5 },             /* fewer numbers */
        { 3, 2, 3, 3, 5, 1, 1 },       /* a window is full */
        { 0, 2, 3, 0 },                /* or empty */
        { 2, 2, 3, 1, 5, 2, 3, 1, 6 }, /* two of one key */
        { 2, 2, 3, 1, 5, 4, 3, 1, 5 }, /* one element in two */
        { 2, 2, 3, 2, 5, 0 },          /* ... in one */
        { 1, 2, 3, 1, 1000000 },       /* beyond those taken */
        { 2, 2, 3, 2, 5, UINT64_MAX }, /* ... */
        { 1, 2, 3, UINT64_MAX, 5 },    /* too many */
        { UINT64_MAX, 2, 3, 1, 5 },    /* ... */
    };
    static const size_t counts[] = { 6, 5, 5, 5, 7, 4, 9, 9, 6, 5, 6, 5, 5 };

    (void)state;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        struct order_landmarks landmarks = { 0 };
        struct order_state_writer writer = { 0 };
        struct fixture plain, fixture;
        char *expected, *got;

        fixture_open(&plain, pipeline);
        expected = after(&plain, 0, 900);
        fixture_close(&plain);
        open_noted(&fixture, pipeline, &landmarks);
        free(after(&fixture, 0, 900));
        fixture_close(&fixture);
        for (size_t k = 0; k < counts[i]; k++)
            order_state_put(&writer, lies[i][k]);
        forge(&landmarks.lists[0], &writer);
        open_noted(&fixture, pipeline, &landmarks);
        got = after(&fixture, 0, 900);
        assert_string_equal(got, expected);
        assert_int_equal(landmarks.leapt, 0);
        fixture_close(&fixture);
        free(got);
        free(expected);
        order_state_close(&writer);
        order_landmarks_close(&landmarks);
    }
}

/* Few of a long state, and none of one that is longer than may be kept. */
static void
long_states_are_noted_seldom(void **state)
{
    static uint8_t bytes[LANDMARK_STATE_BYTES + 1];
    struct order_landmarks landmarks = { .list_count = 1 };
    struct order_landmark_list *list = &landmarks.lists[0];
    struct order_landmark got;
    uint64_t last = 0;

    (void)state;
    list->step = LANDMARK_STEP;
    for (uint64_t i = 1; i <= 100000; i++) {
        bool is_long = i > 80000;

        order_landmarks_note(&landmarks, list,
                             &(struct order_landmark){ i * LANDMARK_STEP, i, bytes,
                                                       is_long ? sizeof bytes : 30000 });
    }
    assert_true(order_landmarks_state_bytes(list) <= LANDMARK_LIST_BYTES);
    assert_true(list->step >= 30000);
    for (uint32_t i = 0; i < list->count; i++) {
        assert_int_equal(list->passed[i], (i + 1) * list->step / LANDMARK_STEP);
        last = list->passed[i] <= 80000 ? list->passed[i] : last;
    }
    assert_true(order_landmarks_before(list, 99999, &got));
    assert_int_equal(got.state_bytes, 30000);
    assert_int_equal(got.passed, last);
    order_landmarks_close(&landmarks);
}

/* Rows that only content counts. */
static void
rows_of_content_are_not_counted_again(void **state)
{
    struct order_landmarks landmarks = { 0 };
    uint64_t evaluated[2];

    (void)state;
    for (int again = 0; again < 2; again++) {
        struct fixture fixture;
        uint64_t passed;

        open_noted(&fixture, "{range: 8000}, {batch: 3}, {unbatch: {}}", &landmarks);
        fixture.graph->root->cuts_content = true;
        fixture.graph->root->width = 2;
        fixture.graph->root->run_words = 1;
        fixture_epoch(&fixture, 0, 1);
        assert_int_equal(order_pass_over(fixture.iterator, 7000, &passed), ORDER_OK);
        evaluated[again] = fixture.evaluated;
        fixture_epoch(&fixture, 0, 1);
        fixture_close(&fixture);
    }
    assert_int_equal(evaluated[0], 7000 / 3 + 1);
    assert_in_range(evaluated[1], 1, LANDMARK_STEP);
    order_landmarks_close(&landmarks);
}

static void
numbers_come_back(void **state)
{
    static const uint64_t numbers[] = { 0, 1, 127, 128, 16383, 16384, 1ull << 62, UINT64_MAX };
    static const int64_t others[] = { 0, -1, 1, -64, 64, INT64_MIN, INT64_MAX };
    static const uint8_t bad[][11] = {
        { 0x80 },
        { 0x80, 0 },
        { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2 },
        { 0xff },
    };
    static const size_t counts[] = { 1, 2, 10, 1 };
    struct order_state_writer writer = { 0 };
    struct order_state_reader reader;

    (void)state;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        order_state_put(&writer, numbers[i]);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        order_state_put_signed(&writer, others[i]);
    reader = (struct order_state_reader){ writer.bytes, writer.bytes + writer.count, false };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        assert_true(order_state_get(&reader) == numbers[i]);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_true(order_state_get_signed(&reader) == others[i]);
    assert_true(order_state_is_whole(&reader));
    assert_int_equal(order_state_get(&reader), 0);
    assert_false(order_state_is_whole(&reader));
    order_state_close(&writer);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        reader = (struct order_state_reader){ bad[i], bad[i] + counts[i], false };
        assert_int_equal(order_state_get(&reader), 0);
        assert_true(reader.is_bad);
    }
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
    assert_non_null(strstr(tnd_error_text(), "had at least 560 more elements"));
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
    struct order_landmarks landmarks = { .list_count = 1 };
    struct order_landmark_list *list = &landmarks.lists[0];
    struct order_landmark got;

    (void)state;
    list->step = LANDMARK_STEP;
    for (uint64_t i = 1; i <= 5 * LANDMARKS_AT_MOST; i++)
        order_landmarks_note(&landmarks, list,
                             &(struct order_landmark){ i * LANDMARK_STEP, i * 2, NULL, 0 });
    assert_int_equal(list->step, 8 * LANDMARK_STEP);
    assert_int_equal(list->count, 5 * LANDMARKS_AT_MOST / 8);
    assert_int_equal(order_landmarks_reach(list), 5 * LANDMARKS_AT_MOST * 2);
    for (uint64_t count = 0; count < 200; count++) {
        bool is_there = order_landmarks_before(list, count, &got);

        assert_int_equal(is_there, count > 16);
        if (is_there) {
            assert_int_equal(got.passed, (count - 1) / 16 * 16);
            assert_int_equal(got.taken, got.passed / 2 * LANDMARK_STEP);
        }
    }
    order_landmarks_close(&landmarks);
}

TEST_FILE(test_landmarks)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_follows_is_the_same),
        cmocka_unit_test(few_are_decided_again),
        cmocka_unit_test(filters_leap_on_the_way),
        cmocka_unit_test(few_are_looked_at_again),
        cmocka_unit_test(any_state_may_come),
        cmocka_unit_test(states_that_cannot_be_are_not_taken),
        cmocka_unit_test(long_states_are_noted_seldom),
        cmocka_unit_test(rows_of_content_are_not_counted_again),
        cmocka_unit_test(numbers_come_back),
        cmocka_unit_test(inputs_that_are_drawn_from_are_passed_over),
        cmocka_unit_test(a_list_ends_where_something_is_bad),
        cmocka_unit_test(a_shorter_input_is_told),
        cmocka_unit_test(passes_that_differ_have_lists_of_their_own),
        cmocka_unit_test(a_long_list_gets_larger_steps),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
