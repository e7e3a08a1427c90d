/* test_helper_steps.c - the steps that a helper had a part in, as they are named. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "helpers/helper_steps.h"
#include "unit/test_file.h"

static struct helper_steps steps;

static int
forget(void **state)
{
    (void)state;
    helper_steps_close(&steps);
    return 0;
}

static void
add(uint64_t epoch, uint64_t number)
{
    helper_steps_add(&steps, (struct helper_step){ epoch, number });
}

static void
assert_text(const char *expected)
{
    char text[1024];

    assert_int_equal(helper_steps_text(&steps, 0, text, sizeof text), steps.count);
    assert_string_equal(text, expected);
}

static void
ranges_are_named(void **state)
{
    (void)state;
    assert_text("");
    for (uint64_t i = 3; i <= 17; i++)
        for (int parts = 0; parts < 3; parts++)
            add(0, i);
    add(0, 19);
    add(1, 0);
    add(1, 1);
    assert_text("epoch 0 step 3 to 17, 19, epoch 1 step 0 to 1");
    assert_int_equal(steps.steps, 18);
}

/* Several connections bring parts of steps that are near each other. */
static void
the_order_in_which_they_come_does_not_matter(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 101; i++)
        add(i * 37 % 101 / 50, i * 37 % 101 % 50);
    assert_text("epoch 0 step 0 to 49, epoch 1 step 0 to 49, epoch 2 step 0");
    assert_int_equal(steps.steps, 101);
}

/* All are within the ranges, whatever was joined. */
static void
many_are_named_roughly(void **state)
{
    enum { MANY = 5000 };
    uint32_t at = 0;

    (void)state;
    for (uint64_t i = 0; i < MANY; i++)
        add(i / 1000, i % 1000 * 3);
    assert_true(steps.count <= HELPER_RANGES_MAX);
    assert_true(steps.is_rough);
    for (uint64_t i = 0; i < MANY; i++) {
        struct helper_step step = { i / 1000, i % 1000 * 3 };

        while (at < steps.count && (steps.list[at].last.epoch < step.epoch ||
                                    (steps.list[at].last.epoch == step.epoch &&
                                     steps.list[at].last.number < step.number)))
            at++;
        assert_true(at < steps.count);
        assert_true(steps.list[at].first.epoch < step.epoch ||
                    (steps.list[at].first.epoch == step.epoch &&
                     steps.list[at].first.number <= step.number));
    }
}

static void
a_text_ends_where_its_room_does(void **state)
{
    char text[256];
    uint32_t next = 0;

    (void)state;
    for (uint64_t i = 0; i < 100; i++)
        add(UINT64_MAX - 100 + i, UINT64_MAX - i);
    for (int lines = 0; next < steps.count; lines++) {
        uint32_t from = next;

        next = helper_steps_text(&steps, from, text, sizeof text);
        assert_true(next > from);
        assert_true(strlen(text) < sizeof text);
        assert_memory_equal(text, "epoch 18446744073709551", 23);
    }
}

#define FORGETTING(test) cmocka_unit_test_teardown(test, forget)

TEST_FILE(test_helper_steps)
{
    const struct CMUnitTest tests[] = {
        FORGETTING(ranges_are_named),
        FORGETTING(the_order_in_which_they_come_does_not_matter),
        FORGETTING(many_are_named_roughly),
        FORGETTING(a_text_ends_where_its_room_does),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
