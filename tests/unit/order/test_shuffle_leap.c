/* test_shuffle_leap.c - elements passed over at one go leave what is left as drawing them does, in
 * this epoch and the next. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/memory.h"
#include "order_fixture.h"
#include "unit/test_file.h"

enum { MANY = 2000, EPOCHS = 3 };

/* What follows `count` elements in a printed list; its end if there are fewer. */
static const char *
behind(const char *printed, int count)
{
    for (; count > 0 && *printed != '\0'; count--) {
        printed += strcspn(printed, " ");
        printed += *printed == ' ';
    }
    return printed;
}

static int
count_of(const char *printed)
{
    int count = 0;

    for (; *printed != '\0'; count++)
        printed = behind(printed, 1);
    return count;
}

static struct fixture
fixture_of(const char *stages, const char *more, int number)
{
    struct fixture fixture;
    char *rest = tnd_sprintf(more, number);
    char *pipeline = tnd_sprintf("seed: 5\nstreams: {case: {dataset: [%s%s]}}", stages, rest);

    fixture_open(&fixture, pipeline);
    free(pipeline);
    free(rest);
    return fixture;
}

/* Epochs of `stages`, of which `skipping` leaves out the first `skipped` of `taken`. */
static void
assert_same(const char *stages, int skipped, int taken)
{
    char *skip = tnd_sprintf(", {skip: %d}, {take: %%d}", skipped);
    struct fixture all = fixture_of(stages, ", {take: %d}", taken);
    struct fixture leaping = fixture_of(stages, skip, taken < 0 ? -1 : taken - skipped);

    for (int epoch = 0; epoch < EPOCHS; epoch++) {
        char *drawn = tnd_strdup(fixture_epoch(&all, MANY, 3));
        const char *leaped = fixture_epoch(&leaping, MANY, 5);

        if (strcmp(behind(drawn, skipped), leaped) != 0)
            fail_msg("%s: %d skipped of %d, epoch %d: %s instead of %s", stages, skipped, taken,
                     epoch, leaped, behind(drawn, skipped));
        free(drawn);
    }
    fixture_close(&all);
    fixture_close(&leaping);
    free(skip);
}

static void
assert_leaps(const char *stages)
{
    struct fixture fixture = fixture_of(stages, ", {take: %d}", MANY);
    int count = count_of(fixture_epoch(&fixture, MANY, 64));

    fixture_close(&fixture);
    for (int skipped = 1; skipped <= count + 1; skipped++) {
        assert_same(stages, skipped, -1);
        assert_same(stages, skipped, skipped); /* cut right where the leap ends */
        assert_same(stages, skipped, skipped + 1);
    }
}

#define SHUFFLED "{range: 5}, {shuffle: {buffer_size: 3}}, "
#define INNER(cycle) "{interleave: {dataset: [{range: 6}], cycle_length: " #cycle "}}, "

static void
within_an_epoch(void **state)
{
    (void)state;
    assert_leaps("{range: 40}, {shuffle: {buffer_size: 7}}");
    assert_leaps("{range: 40}, {shuffle: {buffer_size: 1}}");
    assert_leaps("{range: 9}, {shuffle: {buffer_size: 9, reshuffle_each_iteration: false}}");
    assert_leaps("{range: 9}, {shuffle: {buffer_size: 50}}");
    assert_leaps("{range: 9}, {shuffle: {buffer_size: -2}}");
    assert_leaps("{range: 0}, {shuffle: {buffer_size: 4}}");
    assert_leaps("{range: 40}, {shuffle: {buffer_size: 6}}, {shuffle: {buffer_size: 3}}");
}

static void
over_epochs(void **state)
{
    (void)state;
    assert_leaps("{range: 12}, {shuffle: {buffer_size: 5}}, {repeat: 4}");
    assert_leaps("{range: 5}, {shuffle: {buffer_size: 5}}, {repeat: 5}");
    assert_leaps("{range: 3}, {shuffle: {buffer_size: 20}}, {repeat: 9}");
    assert_leaps("{range: 3}, {shuffle: {buffer_size: -2}}, {repeat: 9}");
    assert_leaps("{range: 7}, {shuffle: {buffer_size: 4}}, {take: 5}, {repeat: 6}");
    assert_leaps("{range: 12}, {shuffle: {buffer_size: 5}}, repeat, {take: 50}");
}

static void
behind_other_random_stages(void **state)
{
    (void)state;
    assert_leaps(SHUFFLED INNER(2) "{shuffle: {buffer_size: 4}}");
    assert_leaps(SHUFFLED INNER(3) "{shuffle: {buffer_size: 4}}, {repeat: 3}");
    assert_leaps(SHUFFLED INNER(2) "{shuffle: {buffer_size: 40}}, {repeat: 3}");
    assert_leaps(SHUFFLED INNER(2) "{take: 11}, {shuffle: {buffer_size: 3}}, {repeat: 3}");
    assert_leaps(SHUFFLED "{repeat: 4}, {shuffle: {buffer_size: 6}}");
    assert_leaps(SHUFFLED INNER(2) "{repeat: 4}, {shuffle: {buffer_size: 6}}");
    assert_leaps(SHUFFLED "{take: 3}, {repeat: 6}, {shuffle: {buffer_size: 4}}");
    assert_leaps(SHUFFLED "{cache: {filename: \"\"}}, {shuffle: {buffer_size: 2}}, {repeat: 4}");
    assert_leaps(SHUFFLED "{filter: \"value % 2 == 1\"}, {shuffle: {buffer_size: 2}}, {repeat: 4}");
}

static void
of_batches(void **state)
{
    (void)state;
    assert_leaps("{range: 50}, {shuffle: {buffer_size: 7}}, {batch: 4}, "
                 "{shuffle: {buffer_size: 3}}, {unbatch: {}}");
    assert_leaps(
        "{range: 30}, {batch: 2}, {shuffle: {buffer_size: 4}}, {repeat: 2}, {unbatch: {}}");
}

/* A leap takes no more from its input than drawing does. */
static void
only_what_is_needed_is_passed(void **state)
{
    struct fixture fixture;

    (void)state;
    fixture_open(&fixture,
                 "{range: 100000}, {interleave: {dataset: [{range: 1}], cycle_length: 1, "
                 "block_length: 99}}, {shuffle: {buffer_size: 10, seed: 3}}, {skip: 500}");
    fixture_epoch(&fixture, 1, 1);
    assert_int_equal(fixture.pulled[0], 500 + 10);
    fixture_close(&fixture);
}

TEST_FILE(test_shuffle_leap)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(within_an_epoch),
        cmocka_unit_test(over_epochs),
        cmocka_unit_test(behind_other_random_stages),
        cmocka_unit_test(of_batches),
        cmocka_unit_test(only_what_is_needed_is_passed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
