/* test_array_loops.c - loops over columns give what a loop of single values gives. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "column/array_loops.h"
#include "column/bin_loops.h"
#include "column/flush.h"
#include "content/numbers/bins.h"
#include "unit/test_file.h"

enum { VALUES = 100, BOUNDARIES = 100 };

static uint32_t drawn;

static uint32_t
draw(uint32_t below)
{
    drawn = drawn * 1664525 + 1013904223;
    return (drawn >> 8) % below;
}

/* std::upper_bound, which TensorFlow calls. */
static int32_t
upper_bound(const float *boundaries, int64_t count, float x)
{
    const float *first = boundaries;

    while (count > 0) {
        int64_t half = count / 2;

        if (x < first[half]) {
            count = half;
        } else {
            first += half + 1;
            count -= half + 1;
        }
    }
    return (int32_t)(first - boundaries);
}

static int
compare(const void *a, const void *b)
{
    const float *left = a, *right = b;

    return (*left > *right) - (*left < *right);
}

static void
values_find_their_bins(void **state)
{
    (void)state;
    for (uint32_t round = 0; round < 3000; round++) {
        uint32_t count = draw(round % 2 == 0 ? BOUNDARIES : 18), values = draw(VALUES);
        float boundaries[BOUNDARIES + 1], x[VALUES + 1];
        int32_t bins[VALUES + 1];

        for (uint32_t i = 0; i < count; i++)
            boundaries[i] = (float)draw(50);
        if (round % 7 != 0) /* else they do not rise */
            qsort(boundaries, count, sizeof *boundaries, compare);
        if (round % 11 == 0 && count > 0)
            boundaries[count - 1] = NAN;
        for (uint32_t i = 0; i < values; i++)
            x[i] = draw(20) == 0 ? NAN : draw(20) == 0 ? INFINITY : (float)draw(52) - 1;
        bins_loop(boundaries, count, x, values, bins);
        for (uint32_t i = 0; i < values; i++)
            assert_int_equal(bins[i], upper_bound(boundaries, count, x[i]));
    }
}

/* Numbers and boundaries of all sizes, and those that are nearly or exactly equal to a boundary. */
static float
any_float(void)
{
    static const float special[] = { NAN,    -NAN,    INFINITY, -INFINITY, 0,        -0.0F,
                                     1e-40F, -1e-40F, FLT_MIN,  FLT_MAX,   -FLT_MAX, 1 };
    uint32_t bits = draw(1 << 16) << 16 | draw(1 << 16);
    float any;

    if (draw(8) == 0)
        return special[draw(sizeof special / sizeof *special)];
    if (draw(2) == 0)
        return (float)draw(2000) / 500 - 2;
    memcpy(&any, &bits, sizeof any);
    return any;
}

static void
fill_boundaries(uint32_t round, float *boundaries, uint32_t count)
{
    float scale = powf(10, (float)draw(70) - 40);

    for (uint32_t i = 0; i < count; i++)
        boundaries[i] = round % 3 == 0   ? any_float()
                        : round % 3 == 1 ? ((float)i - (float)(count / 3)) * scale
                                         : (float)draw(100000) * scale;
    if (round % 9 != 0)
        qsort(boundaries, count, sizeof *boundaries, compare);
}

static void
cells_find_the_same_bins(void **state)
{
    enum { MANY = 1200, NUMBERS = 600 };
    static float boundaries[MANY], x[NUMBERS];
    static int32_t found[NUMBERS], expected[NUMBERS];
    int with_cells = 0;

    (void)state;
    for (uint32_t round = 0; round < 600; round++) {
        uint32_t count = 1 + draw(MANY), numbers = draw(NUMBERS);
        struct bins bins;
        uint64_t mode;

        fill_boundaries(round, boundaries, count);
        for (uint32_t i = 0; i < numbers; i++)
            x[i] = draw(3) == 0 ? any_float() : nextafterf(boundaries[draw(count)], any_float());
        bins_open(&bins, boundaries, count);
        with_cells += bins.cells.cells != NULL;
        mode = flush_begin();
        bins_find(&bins, x, numbers, found);
        for (uint32_t i = 0; i < numbers; i++)
            expected[i] = upper_bound(boundaries, count, x[i]);
        flush_end(mode);
        for (uint32_t i = 0; i < numbers; i++)
            if (found[i] != expected[i])
                fail_msg("%a of %u boundaries: %d, not %d", (double)x[i], count, found[i],
                         expected[i]);
        bins_close(&bins);
    }
    assert_true(with_cells > 100);
}

/* Boundaries as they come in practice have cells of their own, and other dtypes the same bins. */
static void
cells_hold_any_spread(void **state)
{
    enum { MANY = 1000, NUMBERS = 4000 };
    static float boundaries[MANY], numbers[NUMBERS];
    static int64_t integers[NUMBERS], found[NUMBERS];

    (void)state;
    for (int spread = 0; spread < 5; spread++) {
        struct bins bins;
        uint64_t mode;

        for (int i = 0; i < MANY; i++) {
            double part = (i + 0.5) / MANY;

            boundaries[i] = (float)(spread == 0   ? 4 * part - 2
                                    : spread == 1 ? pow(1 - part, -3) - 1
                                    : spread == 2 ? log(part / (1 - part))
                                    : spread == 3 ? 1.6e9 + i * 128.0
                                                  : -log(part) * 1e-30);
        }
        qsort(boundaries, MANY, sizeof *boundaries, compare);
        for (int i = 0; i < NUMBERS; i++) {
            numbers[i] = nextafterf(boundaries[draw(MANY)], any_float());
            integers[i] = fabsf(numbers[i]) < 0x1p62F ? (int64_t)numbers[i] : 0;
        }
        bins_open(&bins, boundaries, MANY);
        assert_non_null(bins.cells.cells);
        mode = flush_begin();
        bins_find_as(&bins, TUNDISH_FLOAT32, numbers, NUMBERS, TUNDISH_INT64, found);
        for (int i = 0; i < NUMBERS; i++)
            assert_int_equal(found[i], upper_bound(boundaries, MANY, numbers[i]));
        bins_find_as(&bins, TUNDISH_INT64, integers, NUMBERS, TUNDISH_INT64, found);
        for (int i = 0; i < NUMBERS; i++)
            assert_int_equal(found[i], upper_bound(boundaries, MANY, (float)integers[i]));
        flush_end(mode);
        bins_close(&bins);
    }
}

static void
floats_out_of_range_become_the_least_integer(void **state)
{
    static const float from[] = { 0,      -0.5F,     1.9F,       -1.9F,         255,
                                  256.7F, -1,        65537,      0x1p31F,       -0x1p31F,
                                  1e10F,  -1e10F,    NAN,        INFINITY,      -INFINITY,
                                  1e-40F, 0x1.8p30F, 2147483520, -2147483520.0F };
    enum { COUNT = sizeof from / sizeof *from };
    static const int32_t expected[COUNT] = {
        0,         0,         1,          -1,         255,         256,       -1,
        65537,     INT32_MIN, INT32_MIN,  INT32_MIN,  INT32_MIN,   INT32_MIN, INT32_MIN,
        INT32_MIN, 0,         0x60000000, 2147483520, -2147483520,
    };
    int32_t wide[COUNT];
    uint8_t narrow[COUNT];
    double doubles[COUNT];

    (void)state;
    array_convert_loop(TUNDISH_FLOAT32, TUNDISH_INT32)(wide, from, COUNT);
    assert_memory_equal(wide, expected, sizeof wide);
    array_convert_loop(TUNDISH_FLOAT32, TUNDISH_UINT8)(narrow, from, COUNT);
    for (size_t i = 0; i < COUNT; i++)
        assert_int_equal(narrow[i], (uint8_t)expected[i]);
    for (size_t i = 0; i < COUNT; i++)
        doubles[i] = (double)from[i];
    array_convert_loop(TUNDISH_FLOAT64, TUNDISH_INT32)(wide, doubles, COUNT);
    assert_memory_equal(wide, expected, sizeof wide);
}

/* Of all sizes, and on both sides of where a float or a double stops being exact. */
static int64_t
any_integer(void)
{
    int64_t any =
        (int64_t)((uint64_t)draw(1 << 24) << 40 | (uint64_t)draw(1 << 20) << 20 | draw(1 << 20));
    int64_t near = (INT64_C(1) << draw(63)) + (int64_t)draw(5) - 2;

    return draw(2) == 0 ? any >> draw(64) : draw(2) == 0 ? near : -near;
}

static void
integers_become_the_nearest_float(void **state)
{
    int64_t from[VALUES] = { 0 };
    float to[VALUES];

    (void)state;
    for (uint32_t round = 0; round < 20000; round++) {
        uint32_t count = draw(VALUES);
        bool is_small = draw(2) == 0;

        for (uint32_t i = 0; i < count; i++)
            from[i] = is_small ? any_integer() >> 13 : any_integer();
        if (draw(50) == 0)
            from[draw(VALUES)] = draw(2) == 0 ? INT64_MIN : INT64_MAX;
        array_convert_loop(TUNDISH_INT64, TUNDISH_FLOAT32)(to, from, count);
        for (uint32_t i = 0; i < count; i++) {
            volatile int64_t one = from[i]; /* as the processor converts it */

            if (to[i] != (float)one)
                fail_msg("%lld becomes %a, not %a", (long long)one, (double)to[i],
                         (double)(float)one);
        }
    }
}

TEST_FILE(test_array_loops)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_find_their_bins),
        cmocka_unit_test(cells_find_the_same_bins),
        cmocka_unit_test(cells_hold_any_spread),
        cmocka_unit_test(integers_become_the_nearest_float),
        cmocka_unit_test(floats_out_of_range_become_the_least_integer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
