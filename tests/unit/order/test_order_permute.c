/* test_order_permute.c - all elements in random order, in constant memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "order_fixture.h"
#include "unit/test_file.h"

/* Is `printed` a permutation of 0 .. count - 1? */
static bool
is_permutation(const char *printed, long count)
{
    bool *seen = calloc((size_t)count, sizeof *seen);
    bool good = true;

    for (long i = 0; i < count && good; i++) {
        long number = strtol(printed, (char **)&printed, 10);

        good = number >= 0 && number < count && !seen[number];
        if (good)
            seen[number] = true;
    }
    free(seen);
    return good && *printed == '\0';
}

static void
it_is_a_permutation_of_any_count(void **state)
{
    static const int counts[] = { 0, 1, 2, 3, 10, 1000, 65536, 65537, 70001, 100000 };

    (void)state;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        struct fixture fixture;
        char pipeline[100];

        snprintf(pipeline, sizeof pipeline, "{range: %d}, {permute: 3}", counts[i]);
        fixture_open(&fixture, pipeline);
        assert_true(is_permutation(fixture_epoch(&fixture, 200000, 1000), counts[i]));
        fixture_close(&fixture);
    }
}

static void
it_reaches_into_functions(void **state)
{
    struct fixture fixture;
    const char *printed;
    size_t found[3] = { 0 };

    (void)state;
    fixture_open(&fixture, "{range: 50}, {flat_map: {dataset: [{range: 3}]}}, {permute: 3}");
    printed = fixture_epoch(&fixture, 1000, 10);
    assert_null(strstr(printed, "0 1 2 0 1 2 0 1 2"));
    for (; *printed != '\0'; printed++)
        if (*printed != ' ')
            found[*printed - '0']++;
    for (int i = 0; i < 3; i++)
        assert_int_equal(found[i], 50);
    fixture_close(&fixture);
}

static void
every_epoch_has_another_order(void **state)
{
    struct fixture fixture;
    char *first;

    (void)state;
    fixture_open(&fixture, "{range: 1000}, {permute: 3}");
    first = strdup(fixture_epoch(&fixture, 2000, 10));
    assert_string_not_equal(fixture_epoch(&fixture, 2000, 10), first);
    free(first);
    fixture_close(&fixture);
}

static void
the_order_hangs_on_seed_and_epoch_alone(void **state)
{
    struct fixture fixture;
    char *first;

    (void)state;
    fixture_open(&fixture, "{range: 100000}, {permute: 3}, {take: 9}");
    first = strdup(fixture_epoch(&fixture, 9, 9));
    fixture_close(&fixture);
    fixture_open(&fixture, "{range: 100000}, {permute: 3}, {take: 9}");
    assert_string_equal(fixture_epoch(&fixture, 9, 2), first);
    free(first);
    fixture_close(&fixture);
}

static void
any_place_is_reached_at_once(void **state)
{
    struct fixture fixture, from_start;
    char *skipped;

    (void)state;
    fixture_open(&fixture, "{range: 100000}, {permute: 3}, {skip: 70000}, {take: 5}");
    skipped = strdup(fixture_epoch(&fixture, 5, 5));
    fixture_close(&fixture);
    fixture_open(&from_start, "{range: 100000}, {permute: 3}, {take: 70005}");
    assert_string_equal(strstr(fixture_epoch(&from_start, 70005, 1000), skipped), skipped);
    fixture_close(&from_start);
    free(skipped);
}

static void
stages_that_can_be_indexed_may_stand_before_it(void **state)
{
    struct fixture fixture;

    (void)state;
    fixture_open(&fixture, "{range: 1000}, {skip: 10}, {take: 600}, {shard: {num_shards: 3, index: "
                           "2}}, {enumerate: 5}, {prefetch: 1}, {permute: 1}, {permute: 1}, "
                           "{shuffle: {buffer_size: 1000, seed: 1}}, {take: 4}");
    fixture_epoch(&fixture, 4, 4);
    fixture_close(&fixture);
}

static void
others_are_refused(void **state)
{
    struct fixture fixture;

    (void)state;
    fixture_open(&fixture, "{range: 10}, {repeat: 2}, {permute: 1}");
    assert_string_equal(fixture_epoch(&fixture, 4, 4), "!!");
    assert_non_null(strstr(tnd_error_text(), "random access"));
    fixture_close(&fixture);
}

static void
neighbours_are_torn_apart(void **state)
{
    struct fixture fixture;
    const char *printed;

    (void)state;
    long near = 0, before = 0;
    fixture_open(&fixture, "{range: 100000}, {permute: 7}");
    printed = fixture_epoch(&fixture, 100000, 1000);
    for (int i = 0; i < 100000; i++) {
        long number = strtol(printed, (char **)&printed, 10);

        near += labs(number - before) < 1000;
        before = number;
    }
    assert_in_range(near, 1800, 2180); /* 1999 expected, 44 a standard deviation */
    fixture_close(&fixture);
}

TEST_FILE(test_order_permute)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_a_permutation_of_any_count),
        cmocka_unit_test(it_reaches_into_functions),
        cmocka_unit_test(every_epoch_has_another_order),
        cmocka_unit_test(the_order_hangs_on_seed_and_epoch_alone),
        cmocka_unit_test(any_place_is_reached_at_once),
        cmocka_unit_test(stages_that_can_be_indexed_may_stand_before_it),
        cmocka_unit_test(others_are_refused),
        cmocka_unit_test(neighbours_are_torn_apart),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
