/* test_content_numbers.c - Keras' numeric layers and what they encode. */
#include "stage_fixture.h"
#include "unit/test_file.h"

#include <math.h>
#include <string.h>

#define GIVES(run, stage, column)                                                                  \
    (stage_run(run, stage) == TUNDISH_OK ? stage_run_column(run, column) : (run)->text)

static struct stage_run *
scalars_of(tundish_dtype dtype, const void *values, int64_t count, uint32_t depth)
{
    struct stage_run *run = stage_run_open(depth > 0 ? 1 : count, depth);
    const int64_t dims[] = { count, -1 };

    stage_run_add(run, "x", dtype, values, depth > 0 ? dims : NULL);
    return run;
}

static void
one_stage_gives(tundish_dtype dtype, const void *values, int64_t count, const char *stage,
                const char *expected)
{
    struct stage_run *run = scalars_of(dtype, values, count, 0);
    const char *made = GIVES(run, stage, "x");

    if (strstr(made, expected) == NULL)
        fail_msg("%s: %s", stage, made);
    stage_run_close(run);
}

static void
bins_are_upper_bounds_in_float32(void **state)
{
    static const float x[] = { -1.5F, 1.0F, 3.4F, 0.5F, NAN, INFINITY, -INFINITY, 2.0F };
    static const double d[] = { 0.1, 0.09999999999, 0.1000000001 };
    static const int64_t n[] = { INT32_MIN, -1, 0, 1, 16777217 };
    struct stage_run *run;

    (void)state;
    one_stage_gives(TUNDISH_FLOAT32, x, 8, "discretization: {bin_boundaries: [0.0, 1.0, 2.0]}",
                    "0 2 3 1 3 3 0 3");
    one_stage_gives(TUNDISH_FLOAT64, d, 3, "discretization: {bin_boundaries: [0.1]}", "1 1 1");
    one_stage_gives(TUNDISH_INT64, n, 5, "discretization: {bin_boundaries: [0.0, 1.0, 16777216.0]}",
                    "0 0 1 2 3");
    one_stage_gives(TUNDISH_FLOAT32, x, 1, "discretization: {bin_boundaries: [2.0, 1.0]}",
                    "ascending order");
    one_stage_gives(TUNDISH_FLOAT32, x, 1, "discretization", "num_bins or bin_boundaries");
    run = scalars_of(TUNDISH_FLOAT32, x, 3, 0);
    assert_int_equal(stage_run(run, "discretization: {bin_boundaries: [0.0, 1.0]}"), TUNDISH_OK);
    assert_string_equal(stage_run_spec(run, "x"), "int32[]");
    assert_int_equal(run->schema.columns[0].maximum, 2);
    stage_run_close(run);
}

static void
categories_become_vectors_in_each_mode(void **state)
{
    static const int64_t x[] = { 3, 0, 1, -1, 4 }, m[] = { 0, 1, 0, 0, 1, 9 };
    static const int64_t cube[] = { 0, 1, 2, 2 };
    struct stage_run *run;

    (void)state;
    one_stage_gives(TUNDISH_INT64, x, 3, "category_encoding: {num_tokens: 4}",
                    "[0 0 0 1] [1 0 0 0] [0 1 0 0]");
    one_stage_gives(TUNDISH_INT64, x, 5, "category_encoding: {num_tokens: 4, output_mode: one_hot}",
                    "[[0 0 0 1]] [[1 0 0 0]] [[0 1 0 0]] [[0 0 0 0]] [[0 0 0 0]]");
    one_stage_gives(TUNDISH_INT64, x, 4, "category_encoding: {num_tokens: 4}", "non-negative");
    run = stage_run_open(3, 0);
    stage_run_add(run, "x", TUNDISH_INT64, m, (const int64_t[]){ 2, -1 });
    assert_string_equal(GIVES(run, "category_encoding: {num_tokens: 2, output_mode: count}", "x"),
                        "[1 1] [2 0] [0 1]");
    stage_run_close(run);
    run = stage_run_open(1, 1);
    stage_run_add(run, "x", TUNDISH_INT64, x, (const int64_t[]){ 3, -1 });
    assert_string_equal(GIVES(run, "category_encoding: {num_tokens: 4}", "x"), "[1 1 0 1]");
    assert_true(run->batch_wide);
    stage_run_close(run);
    run = stage_run_open(1, 0);
    stage_run_add(run, "x", TUNDISH_INT64, cube, (const int64_t[]){ 1, 2, 2, -1 });
    assert_string_equal(GIVES(run, "category_encoding: {num_tokens: 3}", "x"),
                        "[[[1 0 1] [0 1 1]]]");
    stage_run_close(run);
}

static void
lists_of_any_length_are_counted(void **state)
{
    static const int64_t x[] = { 0, 2, 2, 1 }, splits[] = { 0, 3, 3, 4 };
    static const float w[] = { 0.5F, 1.0F, 2.0F, 4.0F };
    struct stage_run *run = stage_run_open(3, 0);

    (void)state;
    stage_run_add_lists(run, "x", TUNDISH_INT64, x, splits);
    stage_run_add_lists(run, "w", TUNDISH_FLOAT32, w, splits);
    assert_string_equal(GIVES(run,
                              "category_encoding: {columns: x, num_tokens: 3, "
                              "output_mode: count, count_weights: w}",
                              "x"),
                        "[0.5 0 3] [0 0 0] [0 4 0]");
    stage_run_close(run);
}

static void
sparse_vectors_hold_what_is_not_zero(void **state)
{
    static const int64_t x[] = { 2, 2, 0, 1 };
    struct stage_run *run = stage_run_open(2, 0);
    const struct column *column;

    (void)state;
    stage_run_add(run, "x", TUNDISH_INT64, x, (const int64_t[]){ 2, -1 });
    assert_string_equal(
        GIVES(run, "discretization: {bin_boundaries: [1.0, 2.0], output_mode: count, sparse: true}",
              "x"),
        "[2] [1 1]");
    column = &run->outputs[0];
    assert_int_equal(run->schema.columns[0].kind, TUNDISH_SPARSE);
    assert_int_equal(column->dense_shape[0], 3);
    assert_int_equal(column->indices[0], 2);
    assert_int_equal(column->indices[1], 0);
    assert_int_equal(column->indices[2], 1);
    assert_int_equal(stage_run(run, "category_encoding: {num_tokens: 3, output_mode: count, "
                                    "sparse: true}"),
                     TUNDISH_E_PIPELINE);
    assert_int_equal(stage_run(run, "category_encoding: {num_tokens: 3, output_mode: one_hot, "
                                    "sparse: true}"),
                     TUNDISH_OK);
    stage_run_close(run);
}

static void
a_sparse_one_hot_needs_a_known_shape(void **state)
{
    static const int64_t x[] = { 2, 2, 0, 1 };
    static const int64_t splits[] = { 0, 1, 4 };
    struct stage_run *run = stage_run_open(2, 0);

    (void)state;
    stage_run_add_lists(run, "x", TUNDISH_INT64, x, splits);
    assert_int_equal(stage_run(run, "category_encoding: {num_tokens: 3, output_mode: one_hot, "
                                    "sparse: true}"),
                     TUNDISH_E_PIPELINE);
    stage_run_close(run);
}

static void
an_integer_dtype_cuts_numbers_before_they_are_binned(void **state)
{
    static const float x[] = { 1.9F, -0.5F, 2.0F };

    (void)state;
    one_stage_gives(TUNDISH_FLOAT32, x, 3,
                    "discretization: {bin_boundaries: [0.0, 1.5], output_mode: one_hot, dtype: "
                    "int32}",
                    "[[0 1 0]] [[0 1 0]] [[0 0 1]]");
    one_stage_gives(TUNDISH_FLOAT32, x, 3,
                    "discretization: {bin_boundaries: [0.0, 1.5], dtype: int64}", "1 1 2");
}

static void
normalising_takes_statistics_along_axes(void **state)
{
    static const float x[] = { 1, 2, 3, 4 };
    struct stage_run *run = stage_run_open(1, 0);

    (void)state;
    stage_run_add(run, "x", TUNDISH_FLOAT32, x, (const int64_t[]){ 2, 2, -1 });
    assert_string_equal(GIVES(run, "normalization: {mean: [1.0, 2.0], variance: [1.0, 4.0]}", "x"),
                        "[[0 0] [2 1]]");
    assert_string_equal(
        GIVES(run, "normalization: {axis: 0, mean: [1.0, 2.0], variance: [1.0, 4.0]}", "x"),
        "[[0 1] [0.5 1]]");
    assert_string_equal(GIVES(run,
                              "normalization: {axis: [0, 1], mean: [[1.0, 2.0], [3.0, 4.0]], "
                              "variance: [[1.0, 1.0], [1.0, 1.0]]}",
                              "x"),
                        "[[0 0] [0 0]]");
    assert_string_equal(
        GIVES(run, "normalization: {axis: null, mean: 1.0, variance: 4.0, invert: true}", "x"),
        "[[3 5] [7 9]]");
    assert_non_null(strstr(GIVES(run, "normalization: {mean: [1, 2, 3], variance: [1, 1, 1]}", "x"),
                           "3 means"));
    assert_non_null(
        strstr(GIVES(run, "normalization: {axis: 2, mean: 1, variance: 1}", "x"), "no axis 2"));
    assert_non_null(strstr(GIVES(run, "normalization: {mean: 1.0}", "x"), "variance"));
    stage_run_close(run);
}

static void
rescaling_rounds_twice(void **state)
{
    static const uint8_t x[] = { 0, 1, 127, 255 };
    static const float v[] = { 1, 2, 3 };
    struct stage_run *run = stage_run_open(1, 0);

    (void)state;
    one_stage_gives(TUNDISH_UINT8, x, 4, "rescaling: {scale: 0.00392156862745098}",
                    "0 0.00392156886 0.498039246 1");
    stage_run_add(run, "v", TUNDISH_FLOAT32, v, (const int64_t[]){ 3, -1 });
    assert_string_equal(
        GIVES(run, "rescaling: {scale: [1.0, 0.5, 0.25], offset: [0.0, 1.0, 2.0]}", "v"),
        "[1 2 2.75]");
    assert_non_null(strstr(GIVES(run, "rescaling: {scale: [1.0, 2.0]}", "v"), "does not fit"));
    stage_run_close(run);
}

TEST_FILE(test_content_numbers)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bins_are_upper_bounds_in_float32),
        cmocka_unit_test(categories_become_vectors_in_each_mode),
        cmocka_unit_test(lists_of_any_length_are_counted),
        cmocka_unit_test(sparse_vectors_hold_what_is_not_zero),
        cmocka_unit_test(a_sparse_one_hot_needs_a_known_shape),
        cmocka_unit_test(an_integer_dtype_cuts_numbers_before_they_are_binned),
        cmocka_unit_test(normalising_takes_statistics_along_axes),
        cmocka_unit_test(rescaling_rounds_twice),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
