/* test_clock.c - deadlines under a clock that the test turns. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/clock.h"
#include "unit/test_file.h"

static int64_t
read_hand(void *context)
{
    return *(int64_t *)context;
}

static void
the_machines_clock_does_not_go_back(void **state)
{
    int64_t before_ns = tnd_clock_ns();

    (void)state;
    for (int i = 0; i < 1000; i++) {
        int64_t now_ns = tnd_clock_ns();

        assert_true(now_ns >= before_ns);
        before_ns = now_ns;
    }
}

static void
an_installed_clock_rules_until_it_is_taken_out(void **state)
{
    int64_t hand_ns = 1000;
    const struct tnd_clock clock = { .now_ns = read_hand, .context = &hand_ns };
    int64_t deadline_ns;

    (void)state;
    tnd_clock_install(&clock);
    assert_int_equal(tnd_clock_ns(), 1000);
    assert_int_equal(tnd_clock_coarse_ns(), 1000);
    assert_true(tnd_clock_wall_ns() > INT64_C(1700000000000000000));
    deadline_ns = tnd_clock_deadline_ns(500);
    assert_int_equal(tnd_clock_left_ns(deadline_ns), 500);
    hand_ns = 1400;
    assert_int_equal(tnd_clock_left_ns(deadline_ns), 100);
    hand_ns = 1501;
    assert_int_equal(tnd_clock_left_ns(deadline_ns), 0);
    tnd_clock_install(NULL);
    assert_true(tnd_clock_ns() > 1501);
    assert_true(tnd_clock_coarse_ns() > 1501);
}

static void
deadlines_beyond_the_end_of_time_never_come(void **state)
{
    (void)state;
    assert_true(tnd_clock_deadline_ns(-1) == TND_CLOCK_NEVER);
    assert_true(tnd_clock_deadline_ns(INT64_MAX) == TND_CLOCK_NEVER);
    assert_true(tnd_clock_left_ns(TND_CLOCK_NEVER) == TND_CLOCK_NEVER);
}

TEST_FILE(test_clock)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_machines_clock_does_not_go_back),
        cmocka_unit_test(an_installed_clock_rules_until_it_is_taken_out),
        cmocka_unit_test(deadlines_beyond_the_end_of_time_never_come),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
