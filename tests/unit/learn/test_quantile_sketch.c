/* test_quantile_sketch.c - boundaries, exact for few values and near for many. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "learn/analyzers/quantile_sketch.h"
#include "unit/test_file.h"

static void
few_values_are_cut_exactly(void **state)
{
    struct quantile_sketch *sketch = quantile_sketch_open(0.01);
    double boundaries[3];

    (void)state;
    for (int i = 100; i > 0; i--)
        quantile_sketch_put(sketch, i, 1);
    quantile_sketch_put(sketch, 1000, 0); /* weighs nothing */
    quantile_sketch_take(sketch, 4, boundaries);
    assert_true(boundaries[0] == 26 && boundaries[1] == 51 && boundaries[2] == 76);
    quantile_sketch_close(sketch);
}

static void
weights_count(void **state)
{
    struct quantile_sketch *sketch = quantile_sketch_open(0.01);
    double boundary;

    (void)state;
    quantile_sketch_put(sketch, 1, 10);
    for (int i = 2; i <= 4; i++)
        quantile_sketch_put(sketch, i, 1);
    quantile_sketch_take(sketch, 2, &boundary);
    assert_true(boundary == 1);
    quantile_sketch_close(sketch);
}

static void
many_values_are_cut_within_epsilon(void **state)
{
    enum { COUNT = 300000, PARTS = 10 };
    struct quantile_sketch *sketch = quantile_sketch_open(0.01);
    double boundaries[PARTS - 1];

    (void)state;
    for (uint64_t i = 0; i < COUNT; i++)
        quantile_sketch_put(sketch, (double)(i * 7919 % COUNT), 1);
    quantile_sketch_take(sketch, PARTS, boundaries);
    for (int i = 1; i < PARTS; i++)
        assert_true(llabs((long long)boundaries[i - 1] - (long long)i * COUNT / PARTS) <
                    COUNT / 100);
    quantile_sketch_close(sketch);
}

static void
nothing_gives_zeros(void **state)
{
    struct quantile_sketch *sketch = quantile_sketch_open(0.01);
    double boundaries[2] = { 1, 1 };

    (void)state;
    quantile_sketch_take(sketch, 3, boundaries);
    assert_true(boundaries[0] == 0 && boundaries[1] == 0);
    quantile_sketch_close(sketch);
}

TEST_FILE(test_quantile_sketch)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_values_are_cut_exactly),
        cmocka_unit_test(weights_count),
        cmocka_unit_test(many_values_are_cut_within_epsilon),
        cmocka_unit_test(nothing_gives_zeros),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
