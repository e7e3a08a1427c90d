/* test_health.c - what is counted of the values of a column. */
#include "session/health.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "unit/test_file.h"

struct counted {
    uint64_t values, nan, infinite, zeros;
};

static void
assert_counted(enum tundish_dtype dtype, const void *values, int64_t count, struct counted expected)
{
    struct column_spec spec = { .dtype = dtype, .kind = TUNDISH_DENSE, .rank = 1 };
    struct output_column column = { .spec = &spec, .values = values, .value_count = count };
    struct tnd_stats_column found = { 0 };

    health_count(&column, 0, &found);
    assert_int_equal(tnd_stats_get(&found.values), expected.values);
    assert_int_equal(tnd_stats_get(&found.nan), expected.nan);
    assert_int_equal(tnd_stats_get(&found.infinite), expected.infinite);
    assert_int_equal(tnd_stats_get(&found.zeros), expected.zeros);
    assert_int_equal(tnd_stats_get(&found.rows), 0);
}

/* Of each: 1, 0, -0, the largest, inf, -inf, NaN, a NaN with a sign and another payload. */
static void
nan_and_infinities_of_each_width(void **state)
{
    static const uint16_t half[] = { 0x3c00, 0, 0x8000, 0x7bff, 0x7c00, 0xfc00, 0x7e00, 0xfc01 };
    static const uint16_t brain[] = { 0x3f80, 0, 0x8000, 0x7f7f, 0x7f80, 0xff80, 0x7fc0, 0xff81 };
    static const uint32_t single[] = { 0x3f800000, 0,          0x80000000, 0x7f7fffff,
                                       0x7f800000, 0xff800000, 0x7fc00000, 0xff800001 };
    static const uint64_t two[] = {
        UINT64_C(0x3ff0000000000000), 0,
        UINT64_C(0x8000000000000000), UINT64_C(0x7fefffffffffffff),
        UINT64_C(0x7ff0000000000000), UINT64_C(0xfff0000000000000),
        UINT64_C(0x7ff8000000000000), UINT64_C(0xfff0000000000001),
    };
    struct counted expected = { .values = 8, .nan = 2, .infinite = 2, .zeros = 2 };

    (void)state;
    assert_counted(TUNDISH_FLOAT16, half, 8, expected);
    assert_counted(TUNDISH_BFLOAT16, brain, 8, expected);
    assert_counted(TUNDISH_FLOAT32, single, 8, expected);
    assert_counted(TUNDISH_FLOAT64, two, 8, expected);
}

/* The bits of a float's NaN are a number in an integer. */
static void
integers_have_zeros_alone(void **state)
{
    static const uint16_t words[] = { 0, 0x7e00, 0x8000, 0xffff };
    static const uint8_t flags[] = { 0, 1, 1, 0 };

    (void)state;
    assert_counted(TUNDISH_UINT16, words, 4, (struct counted){ .values = 4, .zeros = 1 });
    assert_counted(TUNDISH_INT64, words, 1, (struct counted){ .values = 1 });
    assert_counted(TUNDISH_BOOL, flags, 4, (struct counted){ .values = 4, .zeros = 2 });
    assert_counted(TUNDISH_FLOAT32, NULL, 0, (struct counted){ 0 });
}

static void
texts_have_lengths(void **state)
{
    static const struct byte_view texts[] = { { .size = 5 }, { .size = 0 }, { .size = 9 } };
    struct column_spec spec = { .dtype = TUNDISH_STRING, .kind = TUNDISH_DENSE, .rank = 1 };
    struct output_column column = { .spec = &spec, .values = texts, .value_count = 3 };
    struct tnd_stats_column found = { 0 };

    (void)state;
    health_count(&column, 0, &found);
    assert_int_equal(tnd_stats_get(&found.zeros), 1);
    assert_int_equal(tnd_stats_get(&found.rows), 3);
    assert_int_equal(tnd_stats_get(&found.lengths), 14);
    assert_int_equal(tnd_stats_get(&found.shortest), 0);
    assert_int_equal(tnd_stats_get(&found.longest), 9);
}

static void
ragged_rows_have_lengths(void **state)
{
    static const float values[] = { 1, 2, 3, 4, 5 };
    static const int64_t splits[] = { 0, 2, 5 };
    struct column_spec spec = { .dtype = TUNDISH_FLOAT32, .kind = TUNDISH_RAGGED, .rank = 2 };
    struct output_column column = { .spec = &spec,
                                    .values = values,
                                    .value_count = 5,
                                    .splits_count = 1,
                                    .splits = { splits },
                                    .splits_lengths = { 3 } };
    struct tnd_stats_column found = { 0 };

    (void)state;
    health_count(&column, 0, &found);
    assert_int_equal(tnd_stats_get(&found.values), 5);
    assert_int_equal(tnd_stats_get(&found.rows), 2);
    assert_int_equal(tnd_stats_get(&found.shortest), 2);
    assert_int_equal(tnd_stats_get(&found.longest), 3);
}

/* Of many values each is seen by one of the looks that follow each other. */
static void
later_looks_see_the_other_values(void **state)
{
    enum { COUNT = 3 * HEALTH_VALUES - 5 };
    static uint8_t values[COUNT];
    struct column_spec spec = { .dtype = TUNDISH_UINT8, .kind = TUNDISH_DENSE, .rank = 1 };
    struct output_column column = { .spec = &spec, .values = values, .value_count = COUNT };
    struct tnd_stats_column found = { 0 };

    (void)state;
    for (uint64_t look = 0; look < 3; look++) {
        uint64_t before = tnd_stats_get(&found.values);

        health_count(&column, look, &found);
        assert_true(tnd_stats_get(&found.values) - before <= HEALTH_VALUES);
    }
    assert_int_equal(tnd_stats_get(&found.values), COUNT);
    assert_int_equal(tnd_stats_get(&found.zeros), COUNT);
}

/* One of the threads that come at a time looks, and none before it is time. */
static void
one_thread_looks_at_a_time(void **state)
{
    struct tnd_stats_column values = { 0 };
    struct column_spec spec = { .dtype = TUNDISH_INT64, .kind = TUNDISH_DENSE, .rank = 1 };
    struct output_column column = { .spec = &spec };
    struct health health = { .columns = { &values }, .count = 1 };

    (void)state;
    assert_true(health_is_due(&health, 5));
    assert_false(health_is_due(&health, INT64_MAX - 1));
    health_look(&health, &column, 5);
    assert_false(health_is_due(&health, 6));
    assert_true(health_is_due(&health, INT64_MAX - 1));
}

TEST_FILE(test_health)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nan_and_infinities_of_each_width),
        cmocka_unit_test(integers_have_zeros_alone),
        cmocka_unit_test(texts_have_lengths),
        cmocka_unit_test(ragged_rows_have_lengths),
        cmocka_unit_test(later_looks_see_the_other_values),
        cmocka_unit_test(one_thread_looks_at_a_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
