/* test_order_window.c - windows over the input. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/memory.h"
#include "order_fixture.h"
#include "unit/test_file.h"

static void
the_windows_of_tensorflow(void **state)
{
    (void)state;
    assert_order("{range: 7}, {window: 3}", "[0 1 2] [3 4 5] [6]");
    assert_order("{range: 7}, {window: {size: 3, shift: 1, drop_remainder: true}}",
                 "[0 1 2] [1 2 3] [2 3 4] [3 4 5] [4 5 6]");
    assert_order("{range: 5}, {window: {size: 3, shift: 1}}", "[0 1 2] [1 2 3] [2 3 4] [3 4] [4]");
    assert_order("{range: 8}, {window: {size: 3, shift: 1, stride: 2, drop_remainder: true}}",
                 "[0 2 4] [1 3 5] [2 4 6] [3 5 7]");
    assert_order("{range: 10}, {window: {size: 2, shift: 4}}", "[0 1] [4 5] [8 9]");
    assert_order("{range: 0}, {window: 3}", "");
}

static void
windows_of_batches_share_them(void **state)
{
    (void)state;
    assert_order("{range: 6}, {batch: 2}, {window: {size: 2, shift: 1}}",
                 "[[0 1] [2 3]] [[2 3] [4 5]] [[4 5]]");
}

/* The windows that `size`, `shift` and `stride` give of `rows` numbers, one by one. */
static char *
windows_one_by_one(int rows, int size, int shift, int stride, int failing)
{
    char *text = tnd_strdup("");

    for (int begin = 0; begin < rows; begin += shift) {
        char *window = tnd_strdup("");

        for (int i = begin; i < begin + size * stride && i < rows; i += stride) {
            char *longer = i == failing ? tnd_strdup("!")
                           : window[0] == '!'
                               ? tnd_strdup("!")
                               : tnd_sprintf("%s%s%d", window, i > begin ? " " : "", i);

            free(window);
            window = longer;
        }
        for (char *before = text; before != NULL; before = NULL) {
            text = tnd_sprintf(window[0] == '!' ? "%s%s%s" : "%s%s[%s]", before,
                               begin > 0 ? " " : "", window);
            free(before);
        }
        free(window);
    }
    return text;
}

/* More elements than are held together. */
static void
windows_go_on_over_any_number_of_elements(void **state)
{
    static const int forms[][3] = { { 7, 3, 1 }, { 40, 1, 1 }, { 40, 39, 1 }, { 20, 20, 1 },
                                    { 5, 9, 1 }, { 10, 2, 3 }, { 1, 1, 1 } };

    (void)state;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        for (int failing = -1; failing < 400; failing += 61)
            for (size_t chunk = 1; chunk < 30; chunk += 9) {
                const int *form = forms[i];
                char *stages = tnd_sprintf("{range: 401}, {window: {size: %d, shift: %d, stride: "
                                           "%d}}",
                                           form[0], form[1], form[2]);
                /* It may lie between windows, or in more than are read. */
                bool hidden = form[1] > form[0] || form[0] * form[2] > 9 * form[1];
                char *expected =
                    windows_one_by_one(401, form[0], form[1], form[2], hidden ? -1 : failing);
                struct fixture fixture;

                fixture_open(&fixture, stages);
                fixture.failing = hidden ? -1 : failing;
                assert_string_equal(fixture_epoch(&fixture, 1000, chunk), expected);
                fixture_epoch(&fixture, 1, 1);
                fixture_close(&fixture);
                free(expected);
                free(stages);
            }
}

/* Though the elements after them replace those before them. */
static void
windows_that_are_kept_stay_what_they_were(void **state)
{
    enum { COUNT = 300 };
    struct fixture fixture;
    uint64_t words[COUNT];
    size_t at = 0, count;

    (void)state;
    fixture_open(&fixture, "{range: 1000}, {batch: 1}, {window: {size: 6, shift: 2}}");
    fixture_epoch(&fixture, 0, 1);
    while (at < COUNT) {
        assert_int_equal(order_next(fixture.iterator, words + at, COUNT - at, &count), ORDER_OK);
        at += count;
    }
    for (size_t i = 0; i < COUNT; i++) {
        const struct run *window = run_of_word(words[i]);

        assert_int_equal(window->element_count, 6);
        for (size_t k = 0; k < 6; k++)
            if (i > 0 && k < 4)
                assert_int_equal(window->words[k], run_of_word(words[i - 1])->words[k + 2]);
    }
    run_words_release(words, COUNT, 1, 1);
    fixture_close(&fixture);
}

static void
elements_between_windows_are_pulled_with_the_first(void **state)
{
    struct fixture fixture;

    (void)state;
    fixture_open(&fixture, "{range: 100}, {window: {size: 2, shift: 10}}");
    fixture_epoch(&fixture, 1, 1);
    assert_int_equal(fixture.pulled[0], 10);
    fixture_close(&fixture);
}

static void
windows_asked_for_together_pull_what_those_do_that_are_asked_for_alone(void **state)
{
    static const char *const windows[] = { "{size: 4, shift: 1}", "{size: 5, shift: 3}",
                                           "{size: 2, shift: 3}",
                                           "{size: 3, shift: 2, stride: 2}" };

    (void)state;
    for (size_t i = 0; i < sizeof windows / sizeof *windows; i++)
        for (size_t count = 1; count < 90; count += 11)
            for (int failing = -1; failing < 60; failing += 20) {
                char *stages = tnd_sprintf("{range: 1000}, {window: %s}", windows[i]);
                uint64_t pulled[2];

                for (int all = 0; all < 2; all++) {
                    struct fixture fixture;

                    fixture_open(&fixture, stages);
                    fixture.failing = failing;
                    fixture_epoch(&fixture, count, all ? count : 1);
                    pulled[all] = fixture.pulled[0];
                    fixture_close(&fixture);
                }
                assert_int_equal(pulled[1], pulled[0]);
                free(stages);
            }
}

static void
no_window_is_pulled_that_comes_after_one_that_fails(void **state)
{
    uint64_t pulled[2], words[50];

    (void)state;
    for (int all = 0; all < 2; all++) {
        struct fixture fixture;
        size_t count;

        fixture_open(&fixture, "{range: 1000}, {window: {size: 4, shift: 1}}");
        fixture.failing = 5;
        fixture_epoch(&fixture, 2, 1);
        for (int failures = 0; failures < 3; failures++)
            assert_int_equal(order_next(fixture.iterator, words, all ? 50 : 1, &count),
                             ORDER_FAILED);
        pulled[all] = fixture.pulled[0];
        fixture_close(&fixture);
    }
    assert_int_equal(pulled[1], pulled[0]);
}

static void
a_failure_fails_the_windows_it_is_in(void **state)
{
    struct fixture fixture;

    (void)state;
    fixture_open(&fixture, "{range: 6}, {batch: 1}, {window: {size: 2, shift: 1}}");
    fixture.failing = 2;
    assert_string_equal(fixture_epoch(&fixture, 100, 1), "[[0] [1]] ! ! [[3] [4]] [[4] [5]] [[5]]");
    fixture_epoch(&fixture, 1, 1);
    fixture_close(&fixture);
}

static void
windows_passed_over_are_those_that_are_made(void **state)
{
    static const char *const windows[] = {
        "window: 4",
        "window: {size: 4, drop_remainder: true}",
        "window: {size: 6, shift: 1}",
        "window: {size: 6, shift: 1, drop_remainder: true}",
        "window: {size: 3, shift: 2, stride: 3}",
        "window: {size: 3, shift: 2, stride: 3, drop_remainder: true}",
        "window: {size: 2, shift: 5}",
        "window: {size: 2, shift: 5, drop_remainder: true}",
        "window: {size: 2, shift: 7, stride: 4, drop_remainder: true}",
        "window: {size: 9, shift: 1}",
        "window: {size: 9, shift: 1, drop_remainder: true}",
        "window: {size: 1, shift: 1}",
        "window: {size: 4, shift: 2, drop_remainder: true}}, {window: {size: 3, shift: 1}",
        "batch: 2}, {window: {size: 3, shift: 1}",
    };

    (void)state;
    for (size_t i = 0; i < sizeof windows / sizeof *windows; i++)
        for (int64_t failing = -1; failing < 42; failing += 1 + (failing > 3) * 6)
            for (int rows = 38; rows < 42; rows++) {
                char *stages = tnd_sprintf("{range: %d}, {%s}", rows, windows[i]);

                assert_passes_over(stages, failing);
                free(stages);
            }
}

static void
a_window_far_away_is_reached_without_those_before_it(void **state)
{
    struct fixture fixture;
    uint64_t passed;

    (void)state;
    fixture_open(&fixture, "{range: 1000000}, {window: {size: 5, shift: 2, stride: 2}}");
    fixture_epoch(&fixture, 0, 1);
    assert_int_equal(order_pass_over(fixture.iterator, 499995, &passed), ORDER_OK);
    assert_int_equal(passed, 499995);
    assert_in_range(fixture.made, 1, 100);
    assert_string_equal(fixture_rest(&fixture, 7),
                        "[999990 999992 999994 999996 999998] [999992 999994 999996 999998] "
                        "[999994 999996 999998] [999996 999998] [999998]");
    fixture_close(&fixture);
}

/* Of every stage that holds elements. */
static void
what_there_is_no_room_for_is_refused_with_its_size(void **state)
{
    static const struct {
        const char *stages, *words;
    } cases[] = {
        { "{range: 9000}, {window: 9000}", "window: 1281 elements need 30744 bytes" },
        { "{range: 9000}, {batch: 9000}", "use a smaller batch_size" },
        { "{range: 9000}, {shuffle: {buffer_size: 9000, seed: 1}}", "use a smaller buffer_size" },
        { "{range: 9000}, {batch: 1}, {bucket_by_sequence_length: {column: value, "
          "bucket_boundaries: [2], bucket_batch_sizes: [9000, 9000]}}",
          "use a smaller bucket_batch_sizes" },
        { "{range: 9000}, cache", "or keep it in a file" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct fixture fixture;
        const char *elements;

        fixture_open(&fixture, cases[i].stages);
        fixture.services.memory_limit = 30 << 10;
        elements = fixture_epoch(&fixture, 10000, 1000);
        if (strchr(elements, '!') == NULL || strstr(tnd_error_text(), cases[i].words) == NULL)
            fail_msg("%s: %s", cases[i].stages, tnd_error_text());
        fixture_close(&fixture);
    }
}

/* What fits is held, though twice the room there was would not fit. */
static void
what_there_is_room_for_is_held(void **state)
{
    static const char *const stages[] = {
        "{range: 1280}, {window: 1280}",
        "{range: 1900}, {batch: 1900}",
        "{range: 1900}, {shuffle: {buffer_size: 1900, seed: 1}}",
        "{range: 1800}, cache",
    };

    (void)state;
    for (size_t i = 0; i < sizeof stages / sizeof *stages; i++) {
        struct fixture fixture;
        const char *elements;

        fixture_open(&fixture, stages[i]);
        fixture.services.memory_limit = 30 << 10;
        elements = fixture_epoch(&fixture, 10000, 1000);
        if (strchr(elements, '!') != NULL)
            fail_msg("%s: %s", stages[i], tnd_error_text());
        fixture_close(&fixture);
    }
}

TEST_FILE(test_order_window)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_windows_of_tensorflow),
        cmocka_unit_test(windows_of_batches_share_them),
        cmocka_unit_test(windows_go_on_over_any_number_of_elements),
        cmocka_unit_test(windows_that_are_kept_stay_what_they_were),
        cmocka_unit_test(elements_between_windows_are_pulled_with_the_first),
        cmocka_unit_test(windows_asked_for_together_pull_what_those_do_that_are_asked_for_alone),
        cmocka_unit_test(no_window_is_pulled_that_comes_after_one_that_fails),
        cmocka_unit_test(a_failure_fails_the_windows_it_is_in),
        cmocka_unit_test(windows_passed_over_are_those_that_are_made),
        cmocka_unit_test(a_window_far_away_is_reached_without_those_before_it),
        cmocka_unit_test(what_there_is_room_for_is_held),
        cmocka_unit_test(what_there_is_no_room_for_is_refused_with_its_size),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
