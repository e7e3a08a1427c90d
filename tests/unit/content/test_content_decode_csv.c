/* test_content_decode_csv.c - lines to columns, defaults, and what is refused. */
#include "stage_fixture.h"
#include "unit/test_file.h"

#include <stdio.h>
#include <string.h>

static struct stage_run *
decode(const char *stage, const char *const *lines, int64_t count)
{
    struct stage_run *run = stage_run_open(count, 0);
    struct byte_view *views = scratch_array(run->input.scratch, (size_t)count, sizeof *views);

    for (int64_t i = 0; i < count; i++)
        views[i] = text_view(lines[i]);
    stage_run_add(run, "value", TUNDISH_STRING, views, NULL);
    stage_run(run, stage);
    return run;
}

#define DECODE(stage, ...)                                                                         \
    decode(stage, (const char *const[]){ __VA_ARGS__ },                                            \
           sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(char *))

static void
fields_become_numbers_and_texts(void **state)
{
    struct stage_run *run =
        DECODE("decode_csv: {record_defaults: [int32, 2.5, float64, int64, none], "
               "column_names: [i, f, d, l, s]}",
               "1,,1e300,-9223372036854775808,\"a \"\"b\"\"\"", " 7 , 0x1p3,.5,8,", "-1,1,2,3,x");

    (void)state;
    assert_string_equal(run->text, "");
    assert_string_equal(stage_run_column(run, "i"), "1 7 -1");
    assert_string_equal(stage_run_column(run, "f"), "2.5 8 1");
    assert_string_equal(stage_run_column(run, "d"), "1.0000000000000001e+300 0.5 2");
    assert_string_equal(stage_run_column(run, "l"), "-9223372036854775808 8 3");
    assert_string_equal(stage_run_column(run, "s"), "\"a \"b\"\" \"none\" \"x\"");
    assert_string_equal(stage_run_spec(run, "i"), "int32[]");
    stage_run_close(run);
}

static void
a_quoted_name_of_a_dtype_is_a_dtype_and_not_a_default(void **state)
{
    struct stage_run *run =
        DECODE("decode_csv: {record_defaults: [\"int32\", 'float64', {values: \"int32\", dtype: "
               "string}, \"int8\"], column_names: [i, d, s, t]}",
               "1,2,,", "4,3,x,y", ",3,,");

    (void)state;
    assert_string_equal(stage_run_spec(run, "i"), "int32[]");
    assert_string_equal(stage_run_spec(run, "d"), "float64[]");
    assert_string_equal(stage_run_column(run, "s"), "\"int32\" \"x\" \"\"");
    assert_string_equal(stage_run_column(run, "t"), "\"int8\" \"y\" \"\"");
    assert_int_equal(run->errors.first_bad, 2);
    assert_non_null(strstr(run->errors.text, "Field 0 ('i') is required but missing"));
    stage_run_close(run);
}

static void
a_bad_field_names_itself_and_its_value(void **state)
{
    static const struct {
        const char *line, *words;
    } wrong[] = {
        { "x,1", "Field 0 ('a')" },
        { "2147483648,1", "valid int32: 2147483648" },
        { ",1", "required but missing" },
        { "1", "Expect 2 fields but have 1" },
        { "1,2,3", "Expect 2 fields but have 3" },
        { "", "Expect 2 fields but have 0" },
        { "1,\"2", "quote" },
        { "1,2\r", "CRLF" },
        { "1,2x", "Field 1 ('b')" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct stage_run *run =
            DECODE("decode_csv: {record_defaults: [int32, float32], column_names: [a, b]}", "1,2",
                   wrong[i].line, "3,4");

        assert_int_equal(run->errors.first_bad, 1);
        assert_int_equal(run->errors.bad_count, 1);
        assert_non_null(strstr(run->text, wrong[i].words));
        assert_non_null(strstr(stage_run_column(run, "a"), "3"));
        stage_run_close(run);
    }
}

static void
selected_columns_are_all_that_is_read(void **state)
{
    struct stage_run *run = DECODE("decode_csv: {record_defaults: [0, 0.0], column_names: [a, b], "
                                   "select_cols: [1, 3]}",
                                   "x,1,y,2.5", "x,2,y,3.5,z,z,z", "\"q,\",3,,4,\"");

    (void)state;
    assert_string_equal(run->text, "");
    assert_string_equal(stage_run_column(run, "a"), "1 2 3");
    assert_string_equal(stage_run_column(run, "b"), "2.5 3.5 4");
    stage_run_close(run);
}

static void
na_value_counts_as_empty(void **state)
{
    struct stage_run *run = DECODE("decode_csv: {record_defaults: [1, s], column_names: [a, b], "
                                   "na_value: NA}",
                                   "NA,NA", "5,NAN");

    (void)state;
    assert_string_equal(stage_run_column(run, "a"), "1 5");
    assert_string_equal(stage_run_column(run, "b"), "\"s\" \"NAN\"");
    stage_run_close(run);
}

/* More than a block of records and more fields than one look finds, with odd ones between. */
static void
many_wide_records_keep_their_rows(void **state)
{
    enum { ROWS = 100 };
    struct stage_run *run = stage_run_open(ROWS, 0);
    struct byte_view views[ROWS];
    char line[1024], expected[1024] = "";

    (void)state;
    for (int r = 0; r < ROWS; r++) {
        size_t used = 0;

        for (int c = 0; c < 70; c++)
            used += (size_t)snprintf(line + used, sizeof line - used,
                                     r % 7 == 3 && c == 5 ? "%s\"%d\"" : "%s%d", c ? "," : "",
                                     r * 10 + c);
        views[r] = text_view(line);
        snprintf(expected + strlen(expected), 16, "%s%d", r ? " " : "", r * 10 + 69);
    }
    stage_run_add(run, "value", TUNDISH_STRING, views, NULL);
    stage_run(run, "decode_csv: {record_defaults: {c*: 0}, column_names: c0..c69}");
    assert_string_equal(run->text, "");
    assert_string_equal(stage_run_column(run, "c69"), expected);
    stage_run_close(run);
}

TEST_FILE(test_content_decode_csv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_become_numbers_and_texts),
        cmocka_unit_test(a_quoted_name_of_a_dtype_is_a_dtype_and_not_a_default),
        cmocka_unit_test(a_bad_field_names_itself_and_its_value),
        cmocka_unit_test(selected_columns_are_all_that_is_read),
        cmocka_unit_test(na_value_counts_as_empty),
        cmocka_unit_test(many_wide_records_keep_their_rows),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
