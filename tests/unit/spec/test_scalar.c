/* test_scalar.c - the types of unquoted words, environment variables, $names. */
#include "spec_fixture.h"

#include <math.h>

#include "spec/scalar.h"
#include "unit/test_file.h"

struct fixture {
    struct spec_memory *memory;
    struct spec_errors errors;
};

static int
set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);

    fixture->memory = spec_memory_open();
    *state = fixture;
    setenv("TUNDISH_TEST_FIVE", "5", 1);
    setenv("TUNDISH_TEST_EMPTY", "", 1);
    unsetenv("TUNDISH_TEST_UNSET");
    return 0;
}

static int
tear_down(void **state)
{
    struct fixture *fixture = *state;

    spec_memory_close(fixture->memory);
    spec_errors_close(&fixture->errors);
    free(fixture);
    return 0;
}

static struct spec_value
typed(void **state, const char *text)
{
    struct fixture *fixture = *state;
    struct spec_value value = { .text = text, .text_bytes = strlen(text) };

    assert_true(scalar_type(&value, fixture->memory));
    return value;
}

static void
booleans_are_true_and_false_alone(void **state)
{
    static const char *const texts[] = { "True", "TRUE", "False", "yes", "no", "on", "OFF", "y" };

    assert_int_equal(typed(state, "true").kind, SPEC_BOOL);
    assert_true(typed(state, "true").boolean);
    assert_int_equal(typed(state, "false").kind, SPEC_BOOL);
    assert_false(typed(state, "false").boolean);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        assert_int_equal(typed(state, texts[i]).kind, SPEC_TEXT);
}

static void
nulls_are_those_of_the_core_schema(void **state)
{
    assert_int_equal(typed(state, "null").kind, SPEC_NULL);
    assert_int_equal(typed(state, "~").kind, SPEC_NULL);
    assert_int_equal(typed(state, "").kind, SPEC_NULL);
    assert_int_equal(typed(state, "none").kind, SPEC_TEXT);
}

static void
integers_keep_their_value_and_their_text(void **state)
{
    struct fixture *fixture = *state;
    struct spec_value value = typed(state, "-9223372036854775808");

    assert_int_equal(value.kind, SPEC_INTEGER);
    assert_true(value.integer == INT64_MIN);
    assert_string_equal(value.text, "-9223372036854775808");
    value = typed(state, "9223372036854775807");
    assert_true(value.kind == SPEC_INTEGER && value.integer == INT64_MAX);
    value = typed(state, "18446744073709551615");
    assert_true(value.kind == SPEC_NATURAL && value.natural == UINT64_MAX);
    assert_int_equal(typed(state, "007").integer, 7);
    assert_int_equal(typed(state, "+5").integer, 5);
    assert_true(typed(state, "5").natural == 5);
    assert_int_equal(typed(state, "0x1F").integer, 31);
    assert_int_equal(typed(state, "0o17").integer, 15);
    assert_int_equal(typed(state, "0x").kind, SPEC_TEXT);
    assert_int_equal(typed(state, "1_000").kind, SPEC_TEXT);
    value = (struct spec_value){ .text = "18446744073709551616", .text_bytes = 20 };
    assert_false(scalar_type(&value, fixture->memory));
    value = (struct spec_value){ .text = "-9223372036854775809", .text_bytes = 20 };
    assert_false(scalar_type(&value, fixture->memory));
}

static void
floats_have_a_point_or_an_exponent(void **state)
{
    assert_int_equal(typed(state, "1.").kind, SPEC_NUMBER);
    assert_true(typed(state, ".5").number == 0.5);
    assert_true(typed(state, "1e3").number == 1000.0);
    assert_true(typed(state, "-1.5E-2").number == -0.015);
    assert_true(isinf(typed(state, ".inf").number));
    assert_true(typed(state, "-.Inf").number == -INFINITY);
    assert_true(isnan(typed(state, ".nan").number));
    assert_int_equal(typed(state, "inf").kind, SPEC_TEXT);
    assert_int_equal(typed(state, "nan").kind, SPEC_TEXT);
    assert_int_equal(typed(state, "-.nan").kind, SPEC_TEXT);
    assert_int_equal(typed(state, ".").kind, SPEC_TEXT);
    assert_int_equal(typed(state, "1e").kind, SPEC_TEXT);
    assert_int_equal(typed(state, "1.5.2").kind, SPEC_TEXT);
    assert_int_equal(typed(state, "2024-01-01").kind, SPEC_TEXT);
}

static void
a_name_behind_a_dollar_is_a_variable(void **state)
{
    struct spec_value value = typed(state, "$value");

    assert_int_equal(value.kind, SPEC_VARIABLE);
    assert_string_equal(value.text, "value");
    assert_false(value.has_argument);
    value = typed(state, "$per_replica_batch_size(64)");
    assert_int_equal(value.kind, SPEC_VARIABLE);
    assert_string_equal(value.text, "per_replica_batch_size");
    assert_true(value.has_argument && value.integer == 64);
    assert_int_equal(typed(state, "$").kind, SPEC_TEXT);
    assert_int_equal(typed(state, "$5").kind, SPEC_TEXT);
    assert_int_equal(typed(state, "$a b").kind, SPEC_TEXT);
    assert_int_equal(typed(state, "a$b").kind, SPEC_TEXT);
    assert_int_equal(typed(state, "$a()").kind, SPEC_TEXT);
    assert_int_equal(typed(state, "$a(1").kind, SPEC_TEXT);
}

static const char *
expanded(void **state, const char *text)
{
    struct fixture *fixture = *state;
    struct spec_value value = { .text = text, .text_bytes = strlen(text), .line = 1, .column = 1 };

    if (scalar_expand(&value, fixture->memory, &fixture->errors) != TUNDISH_OK)
        return NULL;
    assert_int_equal(value.text_bytes, strlen(value.text));
    return value.text;
}

static void
environment_variables_are_put_in(void **state)
{
    assert_string_equal(expanded(state, "a${TUNDISH_TEST_FIVE}b"), "a5b");
    assert_string_equal(expanded(state, "${TUNDISH_TEST_FIVE}${TUNDISH_TEST_FIVE:-x}"), "55");
    assert_string_equal(expanded(state, "${TUNDISH_TEST_UNSET:-a-b}"), "a-b");
    assert_string_equal(expanded(state, "${TUNDISH_TEST_UNSET:-}"), "");
    assert_string_equal(expanded(state, "${TUNDISH_TEST_EMPTY}"), "");
    assert_string_equal(expanded(state, "${TUNDISH_TEST_EMPTY:-x}"), "x");
    assert_string_equal(expanded(state, "$${TUNDISH_TEST_FIVE}"), "${TUNDISH_TEST_FIVE}");
    assert_string_equal(expanded(state, "$name and $"), "$name and $");
    assert_string_equal(expanded(state, "$$${A}$${}${TUNDISH_TEST_FIVE}"), "$${A}${}5");
}

static void
a_nul_ends_no_text(void **state)
{
    struct fixture *fixture = *state;
    struct spec_value value = { .text = "a\0${TUNDISH_TEST_FIVE}\0", .text_bytes = 23 };

    assert_int_equal(scalar_expand(&value, fixture->memory, &fixture->errors), TUNDISH_OK);
    assert_int_equal(value.text_bytes, 4);
    assert_memory_equal(value.text,
                        "a\0"
                        "5",
                        4);
}

static void
an_unset_variable_without_default_is_an_error(void **state)
{
    struct fixture *fixture = *state;

    assert_null(expanded(state, "${TUNDISH_TEST_UNSET}"));
    assert_non_null(strstr(fixture->errors.list[0].text, "TUNDISH_TEST_UNSET is not set"));
    assert_null(expanded(state, "${TUNDISH_TEST_FIVE"));
    assert_null(expanded(state, "${}"));
    assert_null(expanded(state, "${5}"));
    assert_null(expanded(state, "${A:x}"));
    assert_int_equal(fixture->errors.count, 5);
}

static void
an_expanded_text_is_bounded(void **state)
{
    char *many = calloc(1, 300 * 22 + 1);
    char *large = malloc(5001);

    memset(large, 'x', 5000);
    large[5000] = '\0';
    setenv("TUNDISH_TEST_LARGE", large, 1);
    for (int i = 0; i < 300; i++)
        strcat(many, "${TUNDISH_TEST_LARGE}");
    assert_null(expanded(state, many));
    unsetenv("TUNDISH_TEST_LARGE");
    free(many);
    free(large);
}

#define SCALAR_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

TEST_FILE(test_scalar)
{
    const struct CMUnitTest tests[] = {
        SCALAR_TEST(booleans_are_true_and_false_alone),
        SCALAR_TEST(nulls_are_those_of_the_core_schema),
        SCALAR_TEST(integers_keep_their_value_and_their_text),
        SCALAR_TEST(floats_have_a_point_or_an_exponent),
        SCALAR_TEST(a_name_behind_a_dollar_is_a_variable),
        SCALAR_TEST(environment_variables_are_put_in),
        SCALAR_TEST(a_nul_ends_no_text),
        SCALAR_TEST(an_unset_variable_without_default_is_an_error),
        SCALAR_TEST(an_expanded_text_is_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
