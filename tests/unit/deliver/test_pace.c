/* test_pace.c - which silences of a trainer are pauses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "deliver/pace.h"
#include "unit/test_file.h"

#define MS INT64_C(1000000)

/* Go on for so many steps of that length. */
static void
steps(struct pace *pace, uint64_t *taken, uint64_t count, int64_t step_ns)
{
    for (uint64_t i = 0; i < count; i++)
        pace_note(pace, ++*taken, step_ns);
}

static void
a_long_step_among_short_ones_is_a_pause(void **state)
{
    struct pace pace = { 0 };
    uint64_t taken = 0;

    (void)state;
    for (int i = 0; i < 3; i++) {
        steps(&pace, &taken, 49, 20 * MS);
        steps(&pace, &taken, 1, 1500 * MS);
    }
    assert_int_equal(pace.pauses, 2); /* the third is not over */
    steps(&pace, &taken, 1, 20 * MS);
    assert_int_equal(pace.pauses, 3);
    assert_int_equal(pace.paused_ns, 4500 * MS);
    assert_int_equal(pace.every, 50);
    assert_int_equal(pace.mean_step_ns, 20 * MS);
}

static void
two_long_steps_in_a_row_are_one_pause(void **state)
{
    struct pace pace = { 0 };
    uint64_t taken = 0;

    (void)state;
    steps(&pace, &taken, 10, 20 * MS);
    steps(&pace, &taken, 2, 1000 * MS);
    steps(&pace, &taken, 1, 20 * MS);
    assert_int_equal(pace.pauses, 1);
    assert_int_equal(pace.paused_ns, 2000 * MS);
}

static void
a_new_pace_is_no_row_of_pauses(void **state)
{
    struct pace pace = { 0 };
    uint64_t taken = 0;

    (void)state;
    steps(&pace, &taken, 100, 20 * MS);
    steps(&pace, &taken, 100, 600 * MS);
    assert_int_equal(pace.pauses, 0);
    assert_int_equal(pace.mean_step_ns, 600 * MS);
    /* What is long is now measured by the new pace. */
    steps(&pace, &taken, 1, 2000 * MS);
    steps(&pace, &taken, 1, 600 * MS);
    assert_int_equal(pace.pauses, 0);
    steps(&pace, &taken, 1, 9000 * MS);
    steps(&pace, &taken, 1, 600 * MS);
    assert_int_equal(pace.pauses, 1);
}

static void
steps_that_no_look_can_tell_apart_are_no_pauses(void **state)
{
    struct pace pace = { 0 };
    uint64_t taken = 0;

    (void)state;
    steps(&pace, &taken, 10, MS);
    steps(&pace, &taken, 1, 499 * MS);
    steps(&pace, &taken, 1, MS);
    assert_int_equal(pace.pauses, 0);
}

TEST_FILE(test_pace)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_long_step_among_short_ones_is_a_pause),
        cmocka_unit_test(two_long_steps_in_a_row_are_one_pause),
        cmocka_unit_test(a_new_pace_is_no_row_of_pauses),
        cmocka_unit_test(steps_that_no_look_can_tell_apart_are_no_pauses),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
