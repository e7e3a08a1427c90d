/* test_hold.c - a verdict that changes back and forth is shown for some seconds at least. */
#include "unit/test_file.h"
#include "watch/hold.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define SECOND INT64_C(1000000000)

static struct watch_diagnosis
show(struct watch_held *held, int64_t now_ns, enum watch_level level, enum watch_cause cause)
{
    struct watch_diagnosis diagnosis = { .level = level, .cause = cause };

    snprintf(diagnosis.sentence, sizeof diagnosis.sentence, "%lld", (long long)now_ns);
    watch_hold(held, now_ns, &diagnosis);
    return diagnosis;
}

static void
causes_that_take_turns_change_the_verdict_rarely(void **state)
{
    struct watch_held held = { 0 };
    int changes = 0;
    enum watch_cause last = WATCH_CAUSE_NONE;

    (void)state;
    for (int64_t i = 1; i <= 12; i++) {
        enum watch_cause now = show(&held, i * SECOND, WATCH_WAITING,
                                    i % 2 != 0 ? WATCH_CAUSE_SLOTS : WATCH_CAUSE_PROCESSORS)
                                   .cause;

        changes += now != last;
        last = now;
    }
    assert_int_equal(changes, 4); /* at 1 s, and then three seconds apart */
}

static void
figures_of_the_same_cause_are_new(void **state)
{
    struct watch_held held = { 0 };

    (void)state;
    show(&held, SECOND, WATCH_WAITING, WATCH_CAUSE_SLOTS);
    assert_string_equal(show(&held, SECOND + 1, WATCH_WAITING, WATCH_CAUSE_SLOTS).sentence,
                        "1000000001");
}

static void
what_has_failed_or_hangs_is_shown_at_once(void **state)
{
    struct watch_held held = { 0 };

    (void)state;
    show(&held, SECOND, WATCH_WAITING, WATCH_CAUSE_SLOTS);
    assert_int_equal(show(&held, SECOND + 1, WATCH_FAILED, WATCH_CAUSE_ERROR).level, WATCH_FAILED);
    assert_int_equal(show(&held, SECOND + 2, WATCH_FINE, WATCH_CAUSE_TRAINER).level, WATCH_FINE);
}

TEST_FILE(test_hold)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(causes_that_take_turns_change_the_verdict_rarely),
        cmocka_unit_test(figures_of_the_same_cause_are_new),
        cmocka_unit_test(what_has_failed_or_hangs_is_shown_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
