/* test_array_loops.c - loops over columns give what a loop of single values gives. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "column/array_loops.h"
#include "content/bins.h"
#include "column/flush.h"

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
    convert_loop_of(TUNDISH_FLOAT32, TUNDISH_INT32)(wide, from, COUNT);
    assert_memory_equal(wide, expected, sizeof wide);
    convert_loop_of(TUNDISH_FLOAT32, TUNDISH_UINT8)(narrow, from, COUNT);
    for (size_t i = 0; i < COUNT; i++)
        assert_int_equal(narrow[i], (uint8_t)expected[i]);
    for (size_t i = 0; i < COUNT; i++)
        doubles[i] = (double)from[i];
    convert_loop_of(TUNDISH_FLOAT64, TUNDISH_INT32)(wide, doubles, COUNT);
    assert_memory_equal(wide, expected, sizeof wide);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_find_their_bins),
        cmocka_unit_test(cells_find_the_same_bins),
        cmocka_unit_test(floats_out_of_range_become_the_least_integer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
