/* test_expression.c - the language of map and filter: what it means and what it refuses. */
#include "expression_fixture.h"

#include <math.h>

#include "core/bytes.h"
#include "unit/test_file.h"

#define COUNT(array) (int64_t)(sizeof(array) / sizeof *(array))
#define TEXT(literal) ((struct byte_view){ (const uint8_t *)(literal), sizeof(literal) - 1 })

static void
assert_gives(struct table *table, const char *text, tundish_dtype dtype, const void *expected)
{
    if (table_run(table, text) != TUNDISH_OK)
        fail_msg("%s: %s", text, table->text);
    if (table->spec.dtype != dtype)
        fail_msg("%s gives %s", text, tnd_dtype_name(table->spec.dtype));
    if (memcmp(table->result.values, expected,
               (size_t)table->result.value_count * tnd_dtype_bytes(dtype)) == 0)
        return;
    for (int64_t i = 0; i < table->result.value_count; i++) {
        if (dtype == TUNDISH_FLOAT32)
            print_message("%s [%lld]: %.9g, expected %.9g\n", text, (long long)i,
                          (double)((const float *)table->result.values)[i],
                          (double)((const float *)expected)[i]);
        if (dtype == TUNDISH_INT32)
            print_message("%s [%lld]: %d, expected %d\n", text, (long long)i,
                          ((const int32_t *)table->result.values)[i],
                          ((const int32_t *)expected)[i]);
    }
    fail_msg("%s", text);
}

#define assert_floats(table, text, ...)                                                            \
    assert_gives(table, text, TUNDISH_FLOAT32, (const float[])__VA_ARGS__)
#define assert_ints(table, text, ...)                                                              \
    assert_gives(table, text, TUNDISH_INT32, (const int32_t[])__VA_ARGS__)
#define assert_longs(table, text, ...)                                                             \
    assert_gives(table, text, TUNDISH_INT64, (const int64_t[])__VA_ARGS__)
#define assert_bools(table, text, ...)                                                             \
    assert_gives(table, text, TUNDISH_BOOL, (const uint8_t[])__VA_ARGS__)

static void
assert_refused(struct table *table, const char *text, const char *word, uint32_t column)
{
    if (table_run(table, text) != TUNDISH_E_PIPELINE)
        fail_msg("%s is not refused", text);
    if (strstr(table->text, word) == NULL)
        fail_msg("%s: \"%s\" lacks \"%s\"", text, table->text, word);
    assert_int_equal(table->complaints.list[0].column, column);
}

static void
float_arithmetic_is_recorded_tensorflow(void **state)
{
    static const float a[] = { 7.5F, -7.5F, 0.0F, -0.0F, 1e30F, -3.25F, 5.0F, -5.0F, 0.1F, 1e-40F };
    static const float b[] = { 2.0F, 2.0F, 3.0F, -3.0F, 1e30F, -1.5F, -3.0F, 3.0F, 0.3F, 2.0F };
    struct table *table = table_open(COUNT(a));

    (void)state;
    table_scalars(table, "a", TUNDISH_FLOAT32, a);
    table_scalars(table, "b", TUNDISH_FLOAT32, b);
    assert_floats(table, "a + b", { 9.5F, -5.5F, 3, -3, 2e30F, -4.75F, 2, -2, 0.4F, 2 });
    assert_floats(table, "a * b", { 15, -15, 0, 0, INFINITY, 4.875F, -15, -15, 0.030000001F, 0 });
    assert_floats(table, "a / b",
                  { 3.75F, -3.75F, 0, 0, 1, 2.1666667F, -1.6666666F, -1.6666666F, 0.3333333F, 0 });
    assert_floats(table, "a // b", { 3, -4, 0, 0, 1, 2, -2, -2, 0, 0 });
    assert_floats(table, "a % b", { 1.5F, 0.5F, 0, -0.0F, 0, -0.25F, -1, 1, 0.1F, 1e-40F });
    assert_floats(table, "-a", { -7.5F, 7.5F, -0.0F, 0, -1e30F, 3.25F, -5, 5, -0.1F, -1e-40F });
    assert_floats(table, "abs(a)", { 7.5F, 7.5F, 0, 0, 1e30F, 3.25F, 5, 5, 0.1F, 1e-40F });
    assert_floats(table, "sign(a)", { 1, -1, 0, 0, 1, -1, 1, -1, 1, 0 });
    assert_floats(table, "a // -3", { -3, 2, -0.0F, 0, -3.3333334e29F, 1, -2, 1, -1, -0.0F });
    assert_floats(table, "a % 5", { 2.5F, 2.5F, 0, -0.0F, 0, 1.75F, 0, -0.0F, 0.1F, 1e-40F });
    assert_floats(table, "2 * a - 1", { 14, -16, -1, -1, 2e30F, -7.5F, 9, -11, -0.8F, -1 });
    assert_floats(table, "min(a, b)", { 2, -7.5F, 0, -3, 1e30F, -3.25F, -3, -5, 0.1F, 0 });
    assert_floats(table, "max(a, b)", { 7.5F, 2, 3, -0.0F, 1e30F, -1.5F, 5, 3, 0.3F, 2 });
    assert_floats(table, "clip(a, -4, 6)", { 6, -4, 0, -0.0F, 6, -3.25F, 5, -4, 0.1F, 0 });
    assert_bools(table, "-5 <= a < 6", { 0, 0, 1, 1, 0, 1, 1, 1, 1, 1 });
    assert_bools(table, "a > 0 and not b > 2 or a == 0", { 1, 0, 1, 1, 0, 0, 1, 0, 1, 1 });
    table_close(table);
}

static void
integers_wrap_and_floor(void **state)
{
    static const int32_t a[] = { 7, -7, 7, -7, 0, INT32_MAX, INT32_MIN, 100, -1, 6 };
    static const int32_t b[] = { 2, 2, -2, -2, 5, 2, 3, 7, INT32_MAX, 3 };
    struct table *table = table_open(COUNT(a));

    (void)state;
    table_scalars(table, "a", TUNDISH_INT32, a);
    table_scalars(table, "b", TUNDISH_INT32, b);
    assert_ints(table, "a + b", { 9, -5, 5, -9, 5, -2147483647, -2147483645, 107, 2147483646, 9 });
    assert_ints(table, "a * b", { 14, -14, -14, 14, 0, -2, INT32_MIN, 700, -2147483647, 18 });
    assert_ints(table, "a // b", { 3, -4, -4, 3, 0, 1073741823, -715827883, 14, -1, 2 });
    assert_ints(table, "a % b", { 1, 1, -1, -1, 0, 1, 1, 2, 2147483646, 0 });
    assert_ints(table, "a // -3", { -3, 2, -3, 2, 0, -715827883, 715827882, -34, 0, -2 });
    assert_ints(table, "a // -1", { -7, 7, -7, 7, 0, -INT32_MAX, INT32_MIN, -100, 1, -6 });
    assert_ints(table, "a % -1", { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 });
    assert_ints(table, "abs(a)", { 7, 7, 7, 7, 0, INT32_MAX, INT32_MIN, 100, 1, 6 });
    assert_gives(
        table, "a / 4", TUNDISH_FLOAT64,
        (const double[]){ 1.75, -1.75, 1.75, -1.75, 0, 536870911.75, -536870912, 25, -0.25, 1.5 });
    assert_ints(table, "a ** 2 if b < 0 else 1", { 1, 1, 49, 49, 1, 1, 1, 1, 1, 1 });
    table_close(table);
}

static void
narrow_integers_divide_in_float32(void **state)
{
    static const uint8_t a[] = { 250, 5, 0 }, b[] = { 10, 10, 255 };
    static const int16_t c[] = { -7, 1, 32767 };
    struct table *table = table_open(3);

    (void)state;
    table_scalars(table, "a", TUNDISH_UINT8, a);
    table_scalars(table, "b", TUNDISH_UINT8, b);
    table_scalars(table, "c", TUNDISH_INT16, c);
    assert_gives(table, "a + b", TUNDISH_UINT8, (const uint8_t[]){ 4, 15, 255 });
    assert_gives(table, "a * b", TUNDISH_UINT8, (const uint8_t[]){ 196, 50, 0 });
    assert_gives(table, "a // b", TUNDISH_UINT8, (const uint8_t[]){ 25, 0, 0 });
    assert_floats(table, "a / b", { 25, 0.5F, 0 });
    assert_floats(table, "c / 2", { -3.5F, 0.5F, 16383.5F });
    assert_gives(table, "c * 2", TUNDISH_INT16, (const int16_t[]){ -14, 2, -2 });
    assert_refused(table, "-a", "uint8", 1);
    assert_refused(table, "a + 300", "300", 5);
    table_close(table);
}

static void
a_row_is_bad_where_an_integer_result_does_not_exist(void **state)
{
    static const int32_t a[] = { 6, 1, 5, 2 }, b[] = { 3, 0, 2, -1 };
    struct table *table = table_open(4);

    (void)state;
    table_scalars(table, "a", TUNDISH_INT32, a);
    table_scalars(table, "b", TUNDISH_INT32, b);
    assert_int_equal(table_run(table, "a // b"), TUNDISH_E_DATA);
    assert_non_null(strstr(table->text, "division by zero"));
    assert_int_equal(table->errors.first_bad, 1);
    assert_int_equal(table->errors.bad_count, 1);
    assert_int_equal(table_run(table, "a ** b"), TUNDISH_E_DATA);
    assert_non_null(strstr(table->text, "negative"));
    assert_int_equal(table->errors.first_bad, 3);
    assert_int_equal(table_run(table, "a % 0"), TUNDISH_E_DATA);
    assert_int_equal(table->errors.bad_count, 4);
    assert_int_equal(table_run(table, "a / b"), TUNDISH_OK);
    table_close(table);
}

static void
literals_take_the_dtype_they_meet_and_fold_as_in_python(void **state)
{
    static const float x[] = { 2.0F, -3.0F };
    static const int64_t n[] = { 1, 2 };
    struct table *table = table_open(2);

    (void)state;
    table_scalars(table, "x", TUNDISH_FLOAT32, x);
    table_scalars(table, "n", TUNDISH_INT64, n);
    assert_floats(table, "-x ** 2", { -4, -9 });
    assert_floats(table, "2 ** -x", { 0.25F, 8 });
    assert_floats(table, "1 - x - 1", { -2, 3 });
    assert_floats(table, "2 * x // 3 * 3", { 3, -6 });
    assert_bools(table, "1 < x + 4 <= 6", { 1, 0 });
    assert_floats(table, "x * (1 / 4)", { 0.5F, -0.75F });
    assert_longs(table, "n + 7 // 2 - -7 // 2 + 2 ** 3", { 16, 17 });
    assert_ints(table, "3", { 3, 3 });
    assert_floats(table, "3.5", { 3.5F, 3.5F });
    assert_longs(table, "3000000000", { 3000000000, 3000000000 });
    assert_longs(table, "n + -9223372036854775808", { INT64_MIN + 1, INT64_MIN + 2 });
    assert_ints(table, "where(x > 0, 1, 2)", { 1, 2 });
    assert_floats(table, "x if x > 0 else 0", { 2, 0 });
    assert_refused(table, "n + 1.5", "1.5", 5);
    assert_refused(table, "n + 1.5", "int64", 5);
    assert_refused(table, "n + x", "float32", 5);
    assert_refused(table, "n + 9223372036854775808", "does not fit", 5);
    assert_refused(table, "any(cast(x, float16))", "float16", 1);
    assert_refused(table, "1 // 0", "zero", 3);
    assert_refused(table, "99999999999 ** 2 ** 9", "64 bits", 13);
    table_close(table);
}

static void
a_literal_divisor_divides_and_some_powers_are_roots_and_products(void **state)
{
    static const float x[] = { 7.0F, -INFINITY, -0.0F, 10.0F };
    struct table *table = table_open(4);

    (void)state;
    table_scalars(table, "x", TUNDISH_FLOAT32, x);
    assert_floats(table, "x / 3", { 7.0F / 3.0F, -INFINITY, -0.0F, 10.0F / 3.0F });
    assert_true(7.0F / 3.0F != 7.0F * (1.0F / 3.0F));
    assert_floats(table, "x ** 0", { 1, 1, 1, 1 });
    assert_floats(table, "x ** 3", { 343, -INFINITY, -0.0F, 1000 });
    assert_int_equal(table_run(table, "x ** 0.5"), TUNDISH_OK);
    assert_true(isnan(((const float *)table->result.values)[1]));
    assert_true(signbit(((const float *)table->result.values)[2]));
    table_close(table);
}

static void
nan_goes_through_extrema_and_the_first_of_equals_wins(void **state)
{
    static const float a[] = { NAN, 1.0F, NAN, -0.0F, 0.0F }, b[] = { 1.0F, NAN, NAN, 0.0F, -0.0F };
    struct table *table = table_open(5);
    const float *values;

    (void)state;
    table_scalars(table, "a", TUNDISH_FLOAT32, a);
    table_scalars(table, "b", TUNDISH_FLOAT32, b);
    for (int k = 0; k < 2; k++) {
        assert_int_equal(table_run(table, k == 0 ? "min(a, b)" : "max(a, b)"), TUNDISH_OK);
        values = table->result.values;
        assert_true(isnan(values[0]) && isnan(values[1]) && isnan(values[2]));
        assert_true(signbit(values[3]) && !signbit(values[4]));
    }
    assert_bools(table, "a != b", { 1, 1, 1, 0, 0 });
    assert_floats(table, "where(isnan(a), 0, a)", { 0, 1, 0, -0.0F, 0 });
    table_close(table);
}

static void
rounding_is_half_to_even(void **state)
{
    static const float x[] = { 0.5F,  1.5F,  2.5F, -0.5F,    -1.5F,     0.49999997F,
                               1e10F, -2.7F, 3.3F, INFINITY, -INFINITY, -1e-40F };
    struct table *table = table_open(COUNT(x));

    (void)state;
    table_scalars(table, "x", TUNDISH_FLOAT32, x);
    assert_floats(table, "round(x)",
                  { 0, 2, 2, -0.0F, -2, 0, 1e10F, -3, 3, INFINITY, -INFINITY, -0.0F });
    assert_floats(table, "floor(x)",
                  { 0, 1, 2, -1, -2, 0, 1e10F, -3, 3, INFINITY, -INFINITY, -0.0F });
    assert_floats(table, "ceil(x)",
                  { 1, 2, 3, -0.0F, -1, 1, 1e10F, -2, 4, INFINITY, -INFINITY, -0.0F });
    assert_bools(table, "isfinite(x)", { 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 1 });
    table_close(table);
}

static void
elements_broadcast_reduce_and_are_indexed(void **state)
{
    static const float v[] = { 1, 2, 3, 4, 5, 6 }, s[] = { 10, 100 };
    static const int32_t i[] = { 2, -3 };
    struct table *table = table_open(2);

    (void)state;
    table_add(table, "v", TUNDISH_FLOAT32, v, (const int64_t[]){ 3, -1 });
    table_scalars(table, "s", TUNDISH_FLOAT32, s);
    table_scalars(table, "i", TUNDISH_INT32, i);
    assert_floats(table, "v * s", { 10, 20, 30, 400, 500, 600 });
    assert_floats(table, "s - v", { 9, 8, 7, 96, 95, 94 });
    assert_floats(table, "v[1]", { 2, 5 });
    assert_floats(table, "v[-1] + v[0]", { 4, 10 });
    assert_floats(table, "sum(v)", { 6, 15 });
    assert_floats(table, "mean(v)", { 2, 5 });
    assert_floats(table, "where(v > 2, v, 0)", { 0, 0, 3, 4, 5, 6 });
    assert_floats(table, "v[::-1]", { 3, 2, 1, 6, 5, 4 });
    assert_floats(table, "v[-100:2]", { 1, 2, 4, 5 });
    assert_floats(table, "v[5:]", { 0 });
    assert_int_equal(table->result.value_count, 0);
    assert_int_equal(table->spec.shape[0], 0);
    assert_floats(table, "v[i]", { 3, 4 });
    assert_floats(table, "v[:i]", { 1, 2 });
    assert_floats(table, "v * [1, 0, -1]", { 1, 0, -3, 4, 0, -6 });
    assert_floats(table, "[s, v[0], 1]", { 10, 1, 1, 100, 4, 1 });
    assert_longs(table, "argmax(v, 0)", { 2, 2 });
    assert_longs(table, "length(v)", { 3, 3 });
    assert_floats(table, "max(v) - min(v)", { 2, 2 });
    assert_bools(table, "any(v > 4)", { 0, 1 });
    assert_refused(table, "v[3]", "3", 3);
    assert_refused(table, "v[0, 1]", "1 dimension", 2);
    assert_refused(table, "v + [1, 2]", "[3]", 3);
    assert_refused(table, "s[0]", "0 dimensions", 2);
    assert_int_equal(table_run(table, "v[i * 2]"), TUNDISH_E_DATA);
    assert_int_equal(table->errors.bad_count, 2);
    table_close(table);
}

static void
matrices_are_cut_and_summed_along_any_axis(void **state)
{
    static const int32_t m[] = { 1, 2, 3, 4, 5, 6 };
    struct table *table = table_open(1);

    (void)state;
    table_add(table, "m", TUNDISH_INT32, m, (const int64_t[]){ 2, 3, -1 });
    assert_ints(table, "m[1, 2]", { 6 });
    assert_ints(table, "m[..., 0]", { 1, 4 });
    assert_ints(table, "m[0]", { 1, 2, 3 });
    assert_ints(table, "m[:, ::2]", { 1, 3, 4, 6 });
    assert_ints(table, "m[::-1, 1]", { 5, 2 });
    assert_ints(table, "sum(m, 0)", { 5, 7, 9 });
    assert_ints(table, "sum(m, axis=-1)", { 6, 15 });
    assert_ints(table, "max(m, axis=[0, 1])", { 6 });
    assert_ints(table, "mean(m, axis=1)", { 2, 5 });
    assert_ints(table, "m + m[0]", { 2, 4, 6, 5, 7, 9 });
    assert_ints(table, "m - m[:, 0:1]", { 0, 1, 2, 0, 1, 2 });
    assert_ints(table, "max(m, 2)", { 2, 2, 3, 4, 5, 6 });
    assert_ints(table, "max(m, axis=0)", { 4, 5, 6 });
    assert_ints(table, "max(m, [2, 0, 5])", { 2, 2, 5, 4, 5, 6 });
    assert_ints(table, "min([0, 1, 1], m)", { 0, 1, 1, 0, 1, 1 });
    assert_refused(table, "sum(m, 2)", "axis 2", 8);
    assert_refused(table, "sum(m, m)", "axis=0", 8);
    assert_refused(table, "max(m, [0, 1, 1])", "axis=[...]", 8);
    assert_refused(table, "argmax(m)", "argmax(x, axis=0)", 1);
    table_close(table);
}

static void
unknown_dimensions_broadcast_when_the_data_is_there(void **state)
{
    static const int32_t x[] = { 1, 2, 3, 4, 5 }, y[] = { 10, 20, 30 }, bad[] = { 1, 2, 3 };
    static const int64_t x_splits[] = { 0, 2, 2, 5 }, y_splits[] = { 0, 1, 2, 3 };
    static const int64_t bad_splits[] = { 0, 2, 3, 3 };
    struct table *table = table_open(3);

    (void)state;
    table_lists(table, "x", TUNDISH_INT32, TUNDISH_DENSE, x, x_splits);
    table_lists(table, "y", TUNDISH_INT32, TUNDISH_DENSE, y, y_splits);
    table_lists(table, "bad", TUNDISH_INT32, TUNDISH_DENSE, bad, bad_splits);
    assert_ints(table, "x + y", { 11, 12, 33, 34, 35 });
    assert_int_equal(table->result.value_count, 5);
    assert_ints(table, "sum(x)", { 3, 0, 12 });
    assert_longs(table, "size(x)", { 2, 0, 3 });
    assert_ints(table, "x[1:]", { 2, 4, 5 });
    assert_int_equal(table_run(table, "x[0]"), TUNDISH_E_DATA);
    assert_int_equal(table->errors.first_bad, 1);
    assert_int_equal(table_run(table, "x + bad"), TUNDISH_E_DATA);
    assert_int_equal(table->errors.first_bad, 2);
    assert_int_equal(table->errors.bad_count, 1);
    table_close(table);
}

static void
ragged_columns_keep_their_lists(void **state)
{
    static const float x[] = { 1, -2, 3 }, s[] = { 10, 20, 30 };
    static const int64_t splits[] = { 0, 2, 2, 3 };
    struct table *table = table_open(3);

    (void)state;
    table_lists(table, "x", TUNDISH_FLOAT32, TUNDISH_RAGGED, x, splits);
    table_lists(table, "z", TUNDISH_FLOAT32, TUNDISH_RAGGED, x, splits);
    table_scalars(table, "s", TUNDISH_FLOAT32, s);
    assert_floats(table, "max(x, 0) * 2 + x", { 3, -2, 9 });
    assert_int_equal(table->spec.kind, TUNDISH_RAGGED);
    assert_ptr_equal(table->result.levels[0].splits, splits);
    assert_floats(table, "x + s", { 11, 8, 33 });
    assert_refused(table, "x + z", "ragged", 3);
    assert_refused(table, "sum(x)", "ragged", 1);
    assert_refused(table, "x[0]", "ragged", 2);
    table_close(table);
}

static void
strings_compare_join_and_have_lengths(void **state)
{
    const struct byte_view s[] = { TEXT("a"), TEXT("b"), TEXT(""), TEXT("a\0b") };
    struct table *table = table_open(4);
    const struct byte_view *views;

    (void)state;
    table_scalars(table, "s", TUNDISH_STRING, s);
    assert_bools(table, "s == \"a\"", { 1, 0, 0, 0 });
    assert_bools(table, "s != ''", { 1, 1, 0, 1 });
    assert_ints(table, "length(s)", { 1, 1, 0, 3 });
    assert_int_equal(table_run(table, "'<' + s + '\\x3e'"), TUNDISH_OK);
    views = table->result.values;
    assert_int_equal(views[3].size, 5);
    assert_memory_equal(views[3].data, "<a\0b>", 5);
    assert_int_equal(table_run(table, "s if s == 'b' else 'no'"), TUNDISH_OK);
    views = table->result.values;
    assert_memory_equal(views[0].data, "no", 2);
    assert_refused(table, "s < 'a'", "string", 3);
    assert_refused(table, "s * 2", "2 is a number: quote it", 5);
    assert_refused(table, "s * 2", "2", 5);
    assert_refused(table, "cast(s, int32)", "string_to_number", 1);
    table_close(table);
}

static void
half_precision_is_computed_in_float32_and_rounded_each_time(void **state)
{
    static const uint16_t h[] = { 0x3C00, 0x7BFF, 0x0001, 0xFC00 }; /* 1, 65504, 2^-24, -inf */
    static const uint16_t b[] = { 0x3F80, 0x0001, 0x7F7F, 0xC000 };
    struct table *table = table_open(4);

    (void)state;
    table_scalars(table, "h", TUNDISH_FLOAT16, h);
    table_scalars(table, "b", TUNDISH_BFLOAT16, b);
    assert_gives(table, "h + 1", TUNDISH_FLOAT16,
                 (const uint16_t[]){ 0x4000, 0x7BFF, 0x3C00, 0xFC00 });
    assert_gives(table, "h * 2", TUNDISH_FLOAT16,
                 (const uint16_t[]){ 0x4000, 0x7C00, 0x0002, 0xFC00 });
    assert_gives(table, "-b", TUNDISH_BFLOAT16,
                 (const uint16_t[]){ 0xBF80, 0x8001, 0xFF7F, 0x4000 });
    assert_bools(table, "h > 0.5", { 1, 1, 0, 0 });
    assert_gives(table, "sum([h, h])", TUNDISH_FLOAT16,
                 (const uint16_t[]){ 0x4000, 0x7C00, 0x0002, 0xFC00 });
    table_close(table);
}

static void
uniform_numbers_are_tensorflows(void **state)
{
    static const int64_t s0[] = { 1, -1, 42 }, s1[] = { 2, -1, 1 };
    struct table *table = table_open(3);

    (void)state;
    table_scalars(table, "s0", TUNDISH_INT64, s0);
    table_scalars(table, "s1", TUNDISH_INT64, s1);
    assert_floats(table, "stateless_uniform(s0, s1)", { 0.8440604F, 0.82241976F, 0.5280031F });
    assert_floats(table, "stateless_uniform(1, 2, 5)[1:3]",
                  { 0.19204533F, 0.9962232F, 0.19204533F, 0.9962232F, 0.19204533F, 0.9962232F });
    assert_refused(table, "stateless_uniform(0.5, 1)", "0.5", 19);
    table_close(table);
}

static void
rows_of_a_batch_are_told_apart(void **state)
{
    static const float x[] = { 1, 2, 3, 4, 5, 6 };
    struct table *table = table_open(1);

    (void)state;
    table->depth = 1;
    table_add(table, "x", TUNDISH_FLOAT32, x, (const int64_t[]){ 6, -1 });
    table_add(table, "m", TUNDISH_FLOAT32, x, (const int64_t[]){ 2, 3, -1 });
    assert_floats(table, "x - mean(x)", { -2.5F, -1.5F, -0.5F, 0.5F, 1.5F, 2.5F });
    assert_true(table->batch_wide);
    assert_floats(table, "sum(m, axis=1)", { 6, 15 });
    assert_false(table->batch_wide);
    assert_floats(table, "m * [1, 2, 3] + m[:, 0:1]", { 2, 5, 10, 8, 14, 22 });
    assert_false(table->batch_wide);
    assert_floats(table, "m[0]", { 1, 2, 3 });
    assert_true(table->batch_wide);
    assert_longs(table, "size(x)", { 6 });
    assert_true(table->batch_wide);
    assert_floats(table, "[1.0, 2.0]", { 1, 2 });
    assert_true(table->batch_wide);
    assert_floats(table, "x + 1", { 2, 3, 4, 5, 6, 7 });
    assert_false(table->batch_wide);
    table_close(table);
}

static void
mistakes_are_found_where_they_are(void **state)
{
    static const struct {
        const char *text, *word;
        uint32_t column;
    } cases[] = {
        { "x + z", "'z'", 5 },
        { "x + xs", "did you mean 'x'", 5 },
        { "lgo(x)", "did you mean 'log'", 1 },
        { "log(n)", "int32", 1 },
        { "x +", "ends", 4 },
        { "(x", ")", 3 },
        { "x y", "operator", 3 },
        { "x & n", "'&'", 3 },
        { "x and n > 1", "bools", 1 },
        { "n if x else n", "bool", 6 },
        { "1if x > 0", "a number ends in 'i'", 2 },
        { "where(x > 0, 1)", "3 arguments", 1 },
        { "cast(x, float31)", "dtype", 9 },
        { "'abc", "unmatched", 1 },
        { "'\\q'", "\\q", 2 },
        { "$y", "$y", 1 },
        { "x[]", "index", 3 },
        { "x[1:2:0]", "0 dimensions", 2 },
        { "[[1], 2]", "one shape that is known", 7 },
        { "", "ends", 1 },
        { "clip(x, axis=1)", "3 arguments", 1 },
        { "abs(x, axis=0)", "no axis", 13 },
        { "x > 1 > 'a'", "string", 5 },
    };
    static const float x[] = { 1 };
    static const int32_t n[] = { 1 };
    struct table *table = table_open(1);

    (void)state;
    table_scalars(table, "x", TUNDISH_FLOAT32, x);
    table_scalars(table, "n", TUNDISH_INT32, n);
    for (int64_t i = 0; i < COUNT(cases); i++)
        assert_refused(table, cases[i].text, cases[i].word, cases[i].column);
    table_close(table);
}

static void
deep_nesting_is_refused_not_followed(void **state)
{
    static const float x[] = { 1 };
    struct table *table = table_open(1);
    char text[20001];

    (void)state;
    table_scalars(table, "x", TUNDISH_FLOAT32, x);
    for (const char *c = "(-["; *c != '\0'; c++) {
        memset(text, *c, 20000);
        text[20000] = '\0';
        assert_int_equal(table_run(table, text), TUNDISH_E_PIPELINE);
        assert_non_null(strstr(table->text, "deep"));
    }
    for (int i = 0; i < 20000; i += 4)
        memcpy(text + i, "not ", 4);
    assert_int_equal(table_run(table, text), TUNDISH_E_PIPELINE);
    table_close(table);
}

static void
many_values_run_in_blocks(void **state)
{
    enum { N = 5000 };
    static float x[N], expected[N];
    struct table *table = table_open(N);

    (void)state;
    for (int i = 0; i < N; i++) {
        x[i] = (float)(i - 100);
        expected[i] = (x[i] > 0 ? x[i] : 0) * 2 + (x[i] - 1) * (x[i] + 1);
    }
    table_scalars(table, "x", TUNDISH_FLOAT32, x);
    assert_gives(table, "max(x, 0) * 2 + (x - 1) * (x + 1)", TUNDISH_FLOAT32, expected);
    table_close(table);
}

static void
literals_may_have_names(void **state)
{
    const struct expression_literal literals[] = { { "replica_id_in_sync_group", 2 },
                                                   { "num_replicas_in_sync", 3 } };
    struct spec_errors errors = { 0 };
    struct expression_config config = { .text = "replica_id_in_sync_group * 10 + "
                                                "num_replicas_in_sync",
                                        .literals = literals,
                                        .literal_count = 2,
                                        .errors = &errors };
    struct expression *expression = NULL;
    struct scratch *scratch = scratch_open();
    struct column column = { 0 };
    struct frame_errors frame_errors = { 0 };
    struct frame input = { .count = 1, .scratch = scratch, .errors = &frame_errors };
    struct frame output = { .count = 1,
                            .column_count = 1,
                            .columns = &column,
                            .scratch = scratch,
                            .errors = &frame_errors };

    (void)state;
    assert_int_equal(expression_open(&config, &expression), TUNDISH_OK);
    assert_int_equal(expression_spec(expression)->dtype, TUNDISH_INT32);
    expression_apply(expression, &input, &output, 0);
    assert_int_equal(frame_errors.status, TUNDISH_OK);
    assert_int_equal(*(const int32_t *)column.values, 23);
    expression_close(expression);
    scratch_close(scratch);
}

TEST_FILE(test_expression)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(float_arithmetic_is_recorded_tensorflow),
        cmocka_unit_test(integers_wrap_and_floor),
        cmocka_unit_test(narrow_integers_divide_in_float32),
        cmocka_unit_test(a_row_is_bad_where_an_integer_result_does_not_exist),
        cmocka_unit_test(literals_take_the_dtype_they_meet_and_fold_as_in_python),
        cmocka_unit_test(a_literal_divisor_divides_and_some_powers_are_roots_and_products),
        cmocka_unit_test(nan_goes_through_extrema_and_the_first_of_equals_wins),
        cmocka_unit_test(rounding_is_half_to_even),
        cmocka_unit_test(elements_broadcast_reduce_and_are_indexed),
        cmocka_unit_test(matrices_are_cut_and_summed_along_any_axis),
        cmocka_unit_test(unknown_dimensions_broadcast_when_the_data_is_there),
        cmocka_unit_test(ragged_columns_keep_their_lists),
        cmocka_unit_test(strings_compare_join_and_have_lengths),
        cmocka_unit_test(half_precision_is_computed_in_float32_and_rounded_each_time),
        cmocka_unit_test(uniform_numbers_are_tensorflows),
        cmocka_unit_test(rows_of_a_batch_are_told_apart),
        cmocka_unit_test(mistakes_are_found_where_they_are),
        cmocka_unit_test(deep_nesting_is_refused_not_followed),
        cmocka_unit_test(many_values_run_in_blocks),
        cmocka_unit_test(literals_may_have_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
