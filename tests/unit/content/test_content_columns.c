/* test_content_columns.c - stages that move columns and their values without looking at them. */
#include "stage_fixture.h"
#include "unit/test_file.h"

#include <stdlib.h>
#include <string.h>

#define GIVES(run, stage, column)                                                                  \
    (stage_run(run, stage) == TUNDISH_OK ? stage_run_column(run, column) : (run)->text)

static void
assert_says(const char *text, const char *words)
{
    if (strstr(text, words) == NULL)
        fail_msg("\"%s\" lacks \"%s\"", text, words);
}

/* x: int32[2,3], twice; v: vectors of lengths 2, 0. */
static struct stage_run *
two_rows(void)
{
    static const int32_t x[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 }, v[] = { 5, 6 };
    static const int64_t splits[] = { 0, 2, 2 };
    struct stage_run *run = stage_run_open(2, 0);

    stage_run_add(run, "x", TUNDISH_INT32, x, (const int64_t[]){ 2, 3, -1 });
    stage_run_add_lists(run, "v", TUNDISH_INT32, v, splits);
    return run;
}

static void
columns_are_chosen_and_renamed(void **state)
{
    static const int32_t x[] = { 1, 2 };
    struct stage_run *run = stage_run_open(2, 0);

    (void)state;
    stage_run_add(run, "a1", TUNDISH_INT32, x, NULL);
    stage_run_add(run, "b", TUNDISH_INT32, x, NULL);
    stage_run_add(run, "a2", TUNDISH_INT32, x, NULL);
    assert_int_equal(stage_run(run, "select: [b, a*]"), TUNDISH_OK);
    assert_int_equal(run->schema.count, 3);
    assert_string_equal(run->schema.columns[0].name, "b");
    assert_int_equal(run->schema.columns[1].passed_from, 0);
    assert_int_equal(stage_run(run, "drop: a*"), TUNDISH_OK);
    assert_int_equal(run->schema.count, 1);
    assert_int_equal(stage_run(run, "rename: {b: c, a1: b}"), TUNDISH_OK);
    assert_string_equal(run->schema.columns[0].name, "b");
    assert_string_equal(run->schema.columns[1].name, "c");
    assert_int_equal(stage_run(run, "rename: {bb: c}"), TUNDISH_E_PIPELINE);
    assert_says(run->text, "did you mean 'b'");
    assert_int_equal(stage_run(run, "rename: {b: a1}"), TUNDISH_E_PIPELINE);
    assert_says(run->text, "two columns");
    stage_run_close(run);
}

/* A few elements go through expressions that are alike together, many one expression at a time. */
static void
columns_mapped_alike_are_as_if_mapped_alone(void **state)
{
    static const char *const stage =
        "map: {\"I*\": \"log1p(cast({column}, float32)) / 3\", \"J*\": \"7 // {column}\", "
        "s: J1 * 2, t: J2 * 3}";
    static const int64_t first[] = { 1, -5, 0, 1000000, 7, 2, -1, 8, 9, 10 };
    static const int64_t second[] = { 4, 3, 77, 6, 5, -2, 1, 12, 13, 3 };

    (void)state;
    for (int64_t count = 1; count <= 10; count++) {
        struct stage_run *all = stage_run_open(count, 0);

        stage_run_add(all, "I1", TUNDISH_INT64, first, NULL);
        stage_run_add(all, "I2", TUNDISH_INT64, second, NULL);
        stage_run_add(all, "I3", TUNDISH_INT32, (const int32_t *)(const void *)first, NULL);
        stage_run_add(all, "J1", TUNDISH_INT64, second, NULL);
        stage_run_add(all, "J2", TUNDISH_INT64, second, NULL);
        assert_int_equal(stage_run(all, stage), TUNDISH_OK);
        for (uint32_t c = 0; c < 7; c++) {
            static const int which[] = { 0, 1, 0, 1, 1, 1, 1 };
            struct stage_run *one = stage_run_open(count, 0);
            const char *name = c == 0 ? "I1" : c == 1 ? "I2" : c == 2 ? "I3" : c < 5 ? "J1" : "J2";
            char *expected;

            stage_run_add(one, name, c == 2 ? TUNDISH_INT32 : TUNDISH_INT64,
                          which[c] == 0 ? first : second, NULL);
            if (c == 5)
                assert_int_equal(stage_run(one, "map: {J2: J2 * 2}"), TUNDISH_OK);
            else if (c == 6)
                assert_int_equal(stage_run(one, "map: {J2: J2 * 3}"), TUNDISH_OK);
            else
                assert_int_equal(stage_run(one, c < 3 ? "map: {\"I*\": \"log1p(cast({column}, "
                                                        "float32)) / 3\"}"
                                                      : "map: {\"J*\": \"7 // {column}\"}"),
                                 TUNDISH_OK);
            expected = strdup(stage_run_column(one, name));
            assert_string_equal(stage_run_column(all, c == 5   ? "s"
                                                      : c == 6 ? "t"
                                                      : c == 4 ? "J2"
                                                               : name),
                                expected);
            free(expected);
            stage_run_close(one);
        }
        stage_run_close(all);
    }
}

static void
a_fault_among_columns_mapped_alike_is_its_own(void **state)
{
    static const int64_t good[] = { 1, 2, 3 }, bad[] = { 1, 0, 3 };
    struct stage_run *run = stage_run_open(3, 0);

    (void)state;
    stage_run_add(run, "I1", TUNDISH_INT64, good, NULL);
    stage_run_add(run, "I2", TUNDISH_INT64, bad, NULL);
    assert_int_not_equal(stage_run(run, "map: {\"I*\": \"7 // {column}\"}"), TUNDISH_OK);
    assert_non_null(strstr(run->text, "7 // I2"));
    assert_int_equal(run->errors.bad_count, 1);
    assert_int_equal(run->errors.first_bad, 1);
    stage_run_close(run);
}

static void
maps_see_the_old_row_and_put_new_columns_last(void **state)
{
    static const float x[] = { 1, -2 };
    struct stage_run *run = stage_run_open(2, 0);

    (void)state;
    stage_run_add(run, "I1", TUNDISH_FLOAT32, x, NULL);
    stage_run_add(run, "I2", TUNDISH_FLOAT32, x, NULL);
    assert_int_equal(stage_run(run, "map: {s: I1 + I2, \"I*\": \"max({column}, 0)\", I2: \"-I1\", "
                                    "K1..K2: I1 * 2}"),
                     TUNDISH_OK);
    assert_int_equal(run->schema.count, 5);
    assert_string_equal(stage_run_column(run, "I1"), "1 0");
    assert_string_equal(stage_run_column(run, "I2"), "-1 2");
    assert_string_equal(stage_run_column(run, "s"), "2 -4");
    assert_string_equal(run->schema.columns[4].name, "K2");
    assert_int_equal(stage_run(run, "map: {\"J*\": \"1\"}"), TUNDISH_E_PIPELINE);
    assert_int_equal(stage_run(run, "map: {a: I1 +, b: I3}"), TUNDISH_E_PIPELINE);
    assert_int_equal(run->complaints.count, 2);
    stage_run_close(run);
}

static void
casting_wraps_and_truncates(void **state)
{
    static const float x[] = { 256.0F, -1.0F, 300.7F, 1e10F, 255.9F };
    struct stage_run *run = stage_run_open(5, 0);

    (void)state;
    stage_run_add(run, "x", TUNDISH_FLOAT32, x, NULL);
    assert_string_equal(GIVES(run, "cast: uint8", "x"), "0 255 44 0 255");
    assert_string_equal(GIVES(run, "cast: int8", "x"), "0 -1 44 0 -1");
    assert_string_equal(GIVES(run, "cast: int64", "x"), "256 -1 300 10000000000 255");
    assert_says(GIVES(run, "cast: string", "x"), "as_string");
    stage_run_close(run);
}

static void
shapes_change_and_values_stay(void **state)
{
    struct stage_run *run = two_rows();

    (void)state;
    assert_string_equal(GIVES(run, "reshape: {columns: x, shape: [3, -1]}", "x"),
                        "[[1 2] [3 4] [5 6]] [[7 8] [9 10] [11 12]]");
    assert_string_equal(stage_run_spec(run, "x"), "int32[3,2]");
    assert_says(GIVES(run, "reshape: {columns: x, shape: [4, 2]}", "x"), "6 values");
    assert_string_equal(GIVES(run, "reshape: {columns: v, shape: [-1, 2]}", "v"), "[[5 6]] []");
    assert_says(GIVES(run, "reshape: {columns: v, shape: [2]}", "v"), "0 values");
    assert_int_equal(run->errors.first_bad, 1);
    assert_string_equal(GIVES(run, "ensure_shape: {columns: x, shape: [2, null]}", "x"),
                        "[[1 2 3] [4 5 6]] [[7 8 9] [10 11 12]]");
    assert_says(GIVES(run, "ensure_shape: {columns: x, shape: [3, 2]}", "x"),
                "'x' has the shape [2,3], never [3,2]");
    assert_says(GIVES(run, "ensure_shape: {columns: x, shape: [6]}", "x"), "never [6]");
    assert_string_equal(GIVES(run, "ensure_shape: {columns: v, shape: [-1]}", "v"), "[5 6] []");
    assert_says(GIVES(run, "ensure_shape: {columns: v, shape: [2]}", "v"),
                "ensure_shape: column 'v' has the shape [0], not [2]");
    assert_int_equal(run->errors.first_bad, 1);
    assert_string_equal(stage_run_spec(run, "v"), "int32[2]");
    assert_string_equal(GIVES(run, "expand_dims: {columns: v, axis: 0}", "v"), "[[5 6]] [[]]");
    assert_string_equal(GIVES(run, "expand_dims: {columns: x, axis: -1}", "x"),
                        "[[[1] [2] [3]] [[4] [5] [6]]] [[[7] [8] [9]] [[10] [11] [12]]]");
    assert_says(GIVES(run, "expand_dims: {columns: v, axis: 3}", "v"), "axis 3");
    assert_says(GIVES(run, "squeeze: {columns: x, axis: 0}", "x"), "axis 0");
    assert_string_equal(GIVES(run, "transpose: {columns: x, perm: [1, 0]}", "x"),
                        "[[1 4] [2 5] [3 6]] [[7 10] [8 11] [9 12]]");
    assert_string_equal(stage_run_spec(run, "x"), "int32[3,2]");
    assert_string_equal(GIVES(run, "transpose: {columns: v}", "v"), "[5 6] []");
    assert_says(GIVES(run, "transpose: {columns: x, perm: [0]}", "x"), "'x' has rank 2");
    assert_says(GIVES(run, "transpose: {columns: x, perm: [1, 1]}", "x"), "of rank 2");
    assert_says(GIVES(run, "squeeze: {columns: v, axis: 0}", "v"), "axis 0 has size 2");
    assert_says(GIVES(run, "squeeze: {columns: v}", "v"), "name the axis");
    stage_run_close(run);
}

static void
columns_join_along_old_and_new_dimensions(void **state)
{
    static const int32_t s[] = { 20, 30 }, y[] = { -1, -2, -3, -4 };
    static const int32_t z[] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 };
    static const int64_t w_splits[] = { 0, 1, 2 };
    struct stage_run *run = two_rows();

    (void)state;
    stage_run_add(run, "s", TUNDISH_INT32, s, NULL);
    stage_run_add(run, "t", TUNDISH_INT32, s, NULL);
    stage_run_add(run, "y", TUNDISH_INT32, y, (const int64_t[]){ 2, 1, -1 });
    stage_run_add_lists(run, "w", TUNDISH_INT32, s, w_splits);
    stage_run_add(run, "z", TUNDISH_INT32, z, (const int64_t[]){ 2, 3, -1 });
    assert_string_equal(GIVES(run, "concat: {columns: [x, y], output: c}", "c"),
                        "[[1 2 3 -1] [4 5 6 -2]] [[7 8 9 -3] [10 11 12 -4]]");
    assert_string_equal(GIVES(run, "concat: {columns: [v, w], output: c}", "c"), "[5 6 20] [30]");
    assert_string_equal(GIVES(run, "stack: {columns: [s, t], output: c}", "c"), "[20 20] [30 30]");
    assert_string_equal(GIVES(run, "stack: {columns: [x, z], axis: 1, output: c}", "c"),
                        "[[[1 2 3] [0 0 0]] [[4 5 6] [0 0 0]]] "
                        "[[[7 8 9] [0 0 0]] [[10 11 12] [0 0 0]]]");
    assert_string_equal(stage_run_spec(run, "c"), "int32[2,2,3]");
    assert_says(GIVES(run, "concat: {columns: [s, t], output: c}", "c"), "scalar");
    assert_says(GIVES(run, "stack: {columns: [s, x], output: c}", "c"), "shape");
    assert_says(GIVES(run, "stack: {columns: [s, t], output: x}", "x"), "already");
    stage_run_close(run);
}

static void
one_entry_of_many_is_set(void **state)
{
    struct stage_run *run = two_rows();

    (void)state;
    assert_string_equal(GIVES(run, "one_hot: {columns: v, depth: 6}", "v"),
                        "[[0 0 0 0 0 1] [0 0 0 0 0 0]] []");
    assert_string_equal(GIVES(run,
                              "one_hot: {columns: v, depth: 6, axis: 0, on_value: 5, "
                              "off_value: -1}",
                              "v"),
                        "[[-1 -1] [-1 -1] [-1 -1] [-1 -1] [-1 -1] [5 -1]] [[] [] [] [] [] []]");
    assert_string_equal(stage_run_spec(run, "v"), "int32[6,-1]");
    assert_says(GIVES(run, "one_hot: {columns: v, depth: 6, on_value: a, dtype: string}", "v"),
                "both");
    stage_run_close(run);
}

static void
lists_are_padded_cut_and_boxed(void **state)
{
    struct stage_run *run = two_rows();

    (void)state;
    assert_string_equal(GIVES(run, "pad_or_truncate: {columns: v, length: 3}", "v"),
                        "[5 6 0] [0 0 0]");
    assert_string_equal(GIVES(run, "pad_or_truncate: {columns: v, length: 1, value: 9}", "v"),
                        "[5] [9]");
    assert_string_equal(GIVES(run, "pad_or_truncate: {columns: x, length: 1, axis: 0}", "x"),
                        "[[1 2 3]] [[7 8 9]]");
    assert_string_equal(GIVES(run, "pad_or_truncate: {columns: x, length: 3, axis: 0}", "x"),
                        "[[1 2 3] [4 5 6] [0 0 0]] [[7 8 9] [10 11 12] [0 0 0]]");
    assert_says(GIVES(run, "pad_or_truncate: {columns: v, length: 3, value: a}", "v"), "value");
    run->input_schema.columns[1].kind = TUNDISH_RAGGED;
    assert_string_equal(GIVES(run, "to_dense: {columns: v, shape: [1], default_value: 7}", "v"),
                        "[5] [7]");
    stage_run_close(run);
}

static void
sparse_columns_come_and_go(void **state)
{
    static const int32_t x[] = { 1, 0, 2, 0, 0, 0 };
    struct stage_run *run = stage_run_open(1, 1);
    struct column sparse;

    (void)state;
    stage_run_add(run, "x", TUNDISH_INT32, x, (const int64_t[]){ 2, 3, -1 });
    assert_string_equal(GIVES(run, "to_sparse", "x"), "[[1 2] []]");
    sparse = run->outputs[0];
    assert_int_equal(sparse.indices[3], 2);
    assert_int_equal(sparse.dense_shape[1], 3);
    assert_string_equal(GIVES(run, "to_ragged: {padding: 0}", "x"), "[[1 0 2] []]");
    assert_string_equal(stage_run_spec(run, "x"), "int32[2,-1] ragged");
    stage_run_close(run);
}

static void
one_value_each_is_joined_in_any_number_of_rows(void **state)
{
    enum { ROWS = 11 };
    int64_t longs[3][ROWS];
    int32_t ints[3][ROWS];

    (void)state;
    for (int i = 0; i < 3 * ROWS; i++) {
        longs[i / ROWS][i % ROWS] = (int64_t)i << 33;
        ints[i / ROWS][i % ROWS] = i << 11;
    }
    for (int64_t rows = 1; rows <= ROWS; rows++) {
        struct stage_run *run = stage_run_open(rows, 0);
        const int64_t *of_longs;
        const int32_t *of_ints;

        for (int k = 0; k < 3; k++) {
            stage_run_add(run, (const char *[]){ "L1", "L2", "L3" }[k], TUNDISH_INT64, longs[k],
                          NULL);
            stage_run_add(run, (const char *[]){ "I1", "I2", "I3" }[k], TUNDISH_INT32, ints[k],
                          NULL);
        }
        assert_int_equal(stage_run(run, "stack: {columns: \"L*\", output: c}"), TUNDISH_OK);
        of_longs = run->outputs[6].values;
        for (int64_t i = 0; i < 3 * rows; i++)
            assert_int_equal(of_longs[i], longs[i % 3][i / 3]);
        assert_int_equal(stage_run(run, "stack: {columns: \"I*\", output: c}"), TUNDISH_OK);
        of_ints = run->outputs[6].values;
        for (int64_t i = 0; i < 3 * rows; i++)
            assert_int_equal(of_ints[i], ints[i % 3][i / 3]);
        stage_run_close(run);
    }
}

TEST_FILE(test_content_columns)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_are_chosen_and_renamed),
        cmocka_unit_test(one_value_each_is_joined_in_any_number_of_rows),
        cmocka_unit_test(columns_mapped_alike_are_as_if_mapped_alone),
        cmocka_unit_test(a_fault_among_columns_mapped_alike_is_its_own),
        cmocka_unit_test(maps_see_the_old_row_and_put_new_columns_last),
        cmocka_unit_test(casting_wraps_and_truncates),
        cmocka_unit_test(shapes_change_and_values_stay),
        cmocka_unit_test(columns_join_along_old_and_new_dimensions),
        cmocka_unit_test(one_entry_of_many_is_set),
        cmocka_unit_test(lists_are_padded_cut_and_boxed),
        cmocka_unit_test(sparse_columns_come_and_go),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
