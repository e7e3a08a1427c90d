/* test_history.c - an hour of many figures. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "history.h"
#include "unit/test_file.h"

static const uint64_t START = 1000000;

static float
value_at(const struct history *history, const char *name, uint64_t second)
{
    const struct history_series *series = history_find(history, name);

    return series != NULL ? series->values[second % HISTORY_SECONDS] : -1;
}

static void
values_stay_where_they_were_noted_and_gaps_are_none(void **state)
{
    struct history history;

    (void)state;
    assert_int_equal(history_open(&history), 0);
    history_advance(&history, START);
    history_note(&history, "a", 1);
    history_advance(&history, START + 3);
    history_note(&history, "a", 3);
    assert_true(value_at(&history, "a", START) == 1);
    assert_true(isnan(value_at(&history, "a", START + 1)));
    assert_true(isnan(value_at(&history, "a", START + 2)));
    assert_true(value_at(&history, "a", START + 3) == 3);
    assert_true(history_mean(&history, history_find(&history, "a"), 60) == 2);
    assert_true(history_mean(&history, history_find(&history, "a"), 1) == 3);
    assert_null(history_find(&history, "b"));
    history_advance(&history, START + 3 + HISTORY_SECONDS);
    assert_true(isnan(value_at(&history, "a", START + 3)));
    assert_true(history_mean(&history, history_find(&history, "a"), HISTORY_SECONDS) == 0);
    history_close(&history);
}

static void
a_sum_begins_anew_each_second(void **state)
{
    struct history history;

    (void)state;
    assert_int_equal(history_open(&history), 0);
    for (uint64_t s = 0; s < 3; s++) {
        history_advance(&history, START + s);
        for (int node = 0; node < 4; node++)
            history_add(&history, "all", 10);
        assert_true(value_at(&history, "all", START + s) == 40);
    }
    history_close(&history);
}

/* The clock shows a second twice and leaves one out, and is set back by a few seconds. */
static void
each_look_has_a_second_of_its_own(void **state)
{
    static const uint64_t shown[] = { 0, 1, 1, 3, 4, 6, 6, 2, 3 };
    struct history history;

    (void)state;
    assert_int_equal(history_open(&history), 0);
    for (uint64_t look = 0; look < sizeof shown / sizeof *shown; look++) {
        history_advance(&history, START + shown[look]);
        history_add(&history, "all", 10);
        history_add(&history, "all", 10);
        assert_int_equal(history.second, START + look);
        assert_true(value_at(&history, "all", START + look) == 20);
    }
    history_close(&history);
}

static void
a_clock_that_is_set_back_begins_anew(void **state)
{
    struct history history;

    (void)state;
    assert_int_equal(history_open(&history), 0);
    history_advance(&history, START);
    history_note(&history, "a", 1);
    history_advance(&history, START - 600);
    assert_int_equal(history.second, START - 600);
    assert_true(history_mean(&history, history_find(&history, "a"), HISTORY_SECONDS) == 0);
    history_note(&history, "a", 2);
    assert_true(history_mean(&history, history_find(&history, "a"), HISTORY_SECONDS) == 2);
    assert_true(history_find(&history, "a")->last == START - 600);
    history_close(&history);
}

/* A job of 4,096 trainers has two series for each, and some for each of 512 nodes. */
static void
as_many_series_as_a_large_job_has_are_kept(void **state)
{
    struct history history;
    char name[32];

    (void)state;
    assert_int_equal(history_open(&history), 0);
    history_advance(&history, START);
    for (int i = 0; i < 2 * 4096 + 4 * 512; i++) {
        snprintf(name, sizeof name, "series %d", i);
        history_note(&history, name, i);
    }
    assert_int_equal(history.count, 2 * 4096 + 4 * 512);
    assert_true(value_at(&history, "series 0", START) == 0);
    assert_true(value_at(&history, "series 9999", START) == 9999);
    history_close(&history);
}

static void
when_all_are_taken_the_silent_give_way_and_the_others_stay(void **state)
{
    struct history history;
    char name[32];

    (void)state;
    assert_int_equal(history_open(&history), 0);
    history_advance(&history, START);
    history_note(&history, "silent", 1);
    for (int s = 0; s < 3; s++) {
        history_advance(&history, START + 1 + (uint64_t)s);
        for (int i = 0; i < HISTORY_SERIES - 1; i++) {
            snprintf(name, sizeof name, "series %d", i);
            history_note(&history, name, i);
        }
    }
    history_note(&history, "one more", 5);
    assert_null(history_find(&history, "silent"));
    assert_true(value_at(&history, "one more", START + 3) == 5);
    history_note(&history, "one too many", 6);
    assert_null(history_find(&history, "one too many"));
    assert_non_null(history_find(&history, "series 0"));
    assert_int_equal(history.count, HISTORY_SERIES);
    history_close(&history);
}

static void
names_that_do_not_fit_are_left_out(void **state)
{
    struct history history;
    char name[HISTORY_NAME_BYTES + 1];

    (void)state;
    for (size_t i = 0; i < HISTORY_NAME_BYTES; i++)
        name[i] = 'a';
    name[HISTORY_NAME_BYTES] = '\0';
    assert_int_equal(history_open(&history), 0);
    history_advance(&history, START);
    history_note(&history, name, 1);
    history_note(&history, "", 1);
    assert_int_equal(history.count, 0);
    history_close(&history);
}

TEST_FILE(test_history)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_stay_where_they_were_noted_and_gaps_are_none),
        cmocka_unit_test(a_sum_begins_anew_each_second),
        cmocka_unit_test(each_look_has_a_second_of_its_own),
        cmocka_unit_test(a_clock_that_is_set_back_begins_anew),
        cmocka_unit_test(as_many_series_as_a_large_job_has_are_kept),
        cmocka_unit_test(when_all_are_taken_the_silent_give_way_and_the_others_stay),
        cmocka_unit_test(names_that_do_not_fit_are_left_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
