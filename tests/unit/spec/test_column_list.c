/* test_column_list.c - names, globs and ranges. */
#include "spec_fixture.h"

#include "spec/column_list.h"
#include "spec/yaml_reader.h"
#include "unit/test_file.h"

static const char *const known[] = { "label", "I1", "I2", "C1", "C2", "C10", "a..b", "odd*name" };
enum { KNOWN = sizeof known / sizeof known[0] };

struct expanded {
    struct spec_memory *memory;
    struct spec_errors errors;
    struct spec_names list;
    tundish_status status;
};

static struct expanded
expand(const char *yaml, const char *const *names, size_t count)
{
    struct expanded expanded = { .memory = spec_memory_open() };
    struct spec_value value;

    assert_int_equal(yaml_read(yaml, strlen(yaml), expanded.memory, &expanded.errors, &value),
                     TUNDISH_OK);
    assert_int_equal(expanded.errors.count, 0);
    expanded.status = spec_expand_columns(&value, names, count, &expanded.errors, &expanded.list);
    return expanded;
}

static void
close_expanded(struct expanded *expanded)
{
    spec_names_close(&expanded->list);
    spec_names_close(&expanded->list);
    spec_errors_close(&expanded->errors);
    spec_memory_close(expanded->memory);
}

static void
assert_names(const char *yaml, bool use_known, const char *expected)
{
    struct expanded expanded = expand(yaml, use_known ? known : NULL, use_known ? KNOWN : 0);
    char text[1024] = "";

    assert_int_equal(expanded.status, TUNDISH_OK);
    for (size_t i = 0; i < expanded.list.count; i++) {
        strcat(text, i > 0 ? " " : "");
        strcat(text, expanded.list.names[i]);
    }
    assert_string_equal(text, expected);
    close_expanded(&expanded);
}

static void
assert_refused(const char *yaml, bool use_known, const char *words)
{
    struct expanded expanded = expand(yaml, use_known ? known : NULL, use_known ? KNOWN : 0);

    assert_int_equal(expanded.status, TUNDISH_E_PIPELINE);
    if (strstr(expanded.errors.list[0].text, words) == NULL)
        fail_msg("expected \"%s\" in \"%s\"", words, expanded.errors.list[0].text);
    close_expanded(&expanded);
}

static void
ranges_count_and_keep_their_zeros(void **state)
{
    (void)state;
    assert_names("C1..C3", false, "C1 C2 C3");
    assert_names("[label, I9..I11, x]", false, "label I9 I10 I11 x");
    assert_names("C08..C11", false, "C08 C09 C10 C11");
    assert_names("C0..C2", false, "C0 C1 C2");
    assert_names("'1..3'", false, "1 2 3");
    assert_names("[]", false, "");
    assert_names("[C1..C2]", true, "C1 C2");
    assert_names("a..b", true, "a..b");
    assert_names("x..y", false, "x..y");
}

static void
ranges_that_are_none_are_refused(void **state)
{
    (void)state;
    assert_refused("C3..C1", false, "not a range");
    assert_refused("C1..I3", false, "not a range");
    assert_refused("C01..C9", false, "not a range");
    assert_refused("C1..C99999999999", false, "not a range");
    assert_refused("C1..C999999", false, "more than");
    assert_refused("[C1..C16000, D1..D16000]", false, "more than");
}

static void
globs_follow_the_order_of_the_columns(void **state)
{
    (void)state;
    assert_names("C*", true, "C1 C2 C10");
    assert_names("[C?, label]", true, "C1 C2 label");
    assert_names("'[CI]1'", true, "I1 C1");
    assert_names("'[!C]1'", true, "I1");
    assert_names("'*1'", true, "I1 C1");
    assert_names("odd*name", true, "odd*name");
    assert_refused("X*", true, "no column matches \"X*\"");
    assert_refused("C*", false, "names of new columns");
}

static void
names_must_be_there_and_once(void **state)
{
    (void)state;
    assert_refused("lable", true, "did you mean label?");
    assert_refused("[C1, C3]", true, "no column \"C3\"");
    assert_refused("C1..C3", true, "no column \"C3\"");
    assert_refused("[C1, C*]", true, "occurs twice");
    assert_refused("[a, a]", false, "occurs twice");
    assert_refused("[1, a]", false, "quote it");
}

static void
no_columns_known_is_not_the_same_as_names_being_given(void **state)
{
    struct expanded expanded = expand("a", known, 0);

    (void)state;
    assert_int_equal(expanded.status, TUNDISH_E_PIPELINE);
    close_expanded(&expanded);
}

static void
patterns_match_whole_names(void **state)
{
    (void)state;
    assert_true(spec_name_matches("a", "a"));
    assert_false(spec_name_matches("a", "ab"));
    assert_true(spec_name_matches("a*b*c", "aXbYbZc"));
    assert_false(spec_name_matches("a*b*c", "aXbYbZ"));
    assert_true(spec_name_matches("*", ""));
    assert_true(spec_name_matches("[a-c]x", "bx"));
    assert_false(spec_name_matches("[a-c]x", "dx"));
    assert_true(spec_name_matches("[]]", "]"));
    assert_true(spec_name_matches("[a-]", "-"));
    assert_true(spec_name_matches("[x", "[x"));
    assert_false(spec_name_matches("?", ""));
}

static void
many_stars_cost_little(void **state)
{
    char name[4001];

    (void)state;
    memset(name, 'a', 4000);
    name[4000] = '\0';
    assert_false(spec_name_matches("*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b", name));
}

static void
the_exact_name_wins_over_patterns(void **state)
{
    static const char yaml[] = "{\"C*\": 1, C1..C5: 2, C7..C9: 3, C2: 4, D01..D10: 5}";
    struct spec_memory *memory = spec_memory_open();
    struct spec_errors errors = { 0 };
    struct spec_value map;

    (void)state;
    assert_int_equal(yaml_read(yaml, sizeof yaml - 1, memory, &errors, &map), TUNDISH_OK);
    assert_int_equal(spec_entry_for(&map, "C1")->integer, 1);
    assert_int_equal(spec_entry_for(&map, "C2")->integer, 4);
    assert_int_equal(spec_entry_for(&map, "D02")->integer, 5);
    assert_null(spec_entry_for(&map, "D2"));
    assert_null(spec_entry_for(&map, "D11"));
    assert_null(spec_entry_for(&map, "E1"));
    spec_memory_close(memory);
}

static void
the_columns_name_is_put_in(void **state)
{
    char *text = spec_for_column("vocab/{column}/{column}.txt", "C1");

    (void)state;
    assert_string_equal(text, "vocab/C1/C1.txt");
    free(text);
    text = spec_for_column("{columns} {", "x");
    assert_string_equal(text, "{columns} {");
    free(text);
    text = spec_for_column("{{column}/{column} {{{column}}{{columns", "x");
    assert_string_equal(text, "{column}/x {{column}}{{columns");
    free(text);
}

static void
outputs_are_listed_or_named_after_their_columns(void **state)
{
    static const char *const outputs[] = { "'{column}_id'", "[C1_id, C2_id]", "C1_id", "[a, a]" };
    char *names[] = { (char *)"C1", (char *)"C2" };
    const struct spec_names columns = { .count = 2, .names = names };

    (void)state;
    for (size_t i = 0; i < sizeof outputs / sizeof outputs[0]; i++) {
        struct spec_memory *memory = spec_memory_open();
        struct spec_errors errors = { 0 };
        struct spec_names list = { 0 };
        struct spec_value value;
        tundish_status status;

        yaml_read(outputs[i], strlen(outputs[i]), memory, &errors, &value);
        status = spec_output_names(&value, &columns, &errors, &list);
        if (i < 2) {
            assert_int_equal(status, TUNDISH_OK);
            assert_int_equal(list.count, 2);
            assert_string_equal(list.names[0], "C1_id");
            assert_string_equal(list.names[1], "C2_id");
        } else {
            assert_int_equal(status, TUNDISH_E_PIPELINE);
            assert_int_equal(errors.count, 1);
        }
        spec_names_close(&list);
        spec_errors_close(&errors);
        spec_memory_close(memory);
    }
}

TEST_FILE(test_column_list)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranges_count_and_keep_their_zeros),
        cmocka_unit_test(ranges_that_are_none_are_refused),
        cmocka_unit_test(globs_follow_the_order_of_the_columns),
        cmocka_unit_test(names_must_be_there_and_once),
        cmocka_unit_test(no_columns_known_is_not_the_same_as_names_being_given),
        cmocka_unit_test(patterns_match_whole_names),
        cmocka_unit_test(many_stars_cost_little),
        cmocka_unit_test(the_exact_name_wins_over_patterns),
        cmocka_unit_test(the_columns_name_is_put_in),
        cmocka_unit_test(outputs_are_listed_or_named_after_their_columns),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
