/* test_source_csv.c - rows as CsvDataset splits them. */
#include "source_fixture.h"
#include "unit/test_file.h"

#define ONE_COLUMN "record_defaults: [{values: '-', dtype: string}], column_names: [x]"

static void
assert_rows(const char *text, const char *parameters, const char *expected)
{
    struct folder folder;
    char *stages = tnd_sprintf("[csv: {filenames: a, %s}]", parameters);

    folder_open(&folder);
    put_text(&folder, "a", text);
    assert_texts(&folder, stages, expected);
    free(stages);
    folder_close(&folder);
}

static void
rows_end_at_newlines_carriage_returns_and_both(void **state)
{
    (void)state;
    assert_rows("a\nb\rc\r\nd", ONE_COLUMN, "a|b|c|d|");
    assert_rows("a\r\n\r\n\n\rb\r", ONE_COLUMN, "a|-|-|-|b|");
    assert_rows("", ONE_COLUMN, "");
    assert_rows("\n", ONE_COLUMN, "-|");
}

static void
quoted_fields_hold_line_ends(void **state)
{
    (void)state;
    assert_rows("\"a\nb\"\n\"c\r\n\"\"d\"\"\"\r\ne\n", ONE_COLUMN, "a\nb|c\r\n\"d\"|e|");
    assert_rows("\"a\nb\"\n", ONE_COLUMN ", use_quote_delim: false", "\"a|b\"|");
}

static void
a_stray_quote_is_an_error_of_its_row_alone(void **state)
{
    struct folder folder;
    struct pipeline pipeline;
    char *texts;

    (void)state;
    folder_open(&folder);
    put_text(&folder, "a", "a\nb\"c\nd\n\"e");
    assert_int_equal(pipeline_open(&pipeline, &folder, 0, "[csv: {filenames: a, " ONE_COLUMN "}]"),
                     TUNDISH_OK);
    texts = pipeline_texts(&pipeline, 64);
    assert_memory_equal(texts, "a|?", 3);
    assert_non_null(strstr(texts, "in a, line 2"));
    assert_non_null(strstr(texts, "|d|?"));
    assert_non_null(strstr(texts, "in a, line 4"));
    free(texts);
    pipeline_close(&pipeline);
    folder_close(&folder);
}

static void
the_header_is_one_row_of_each_file(void **state)
{
    struct folder folder;

    (void)state;
    folder_open(&folder);
    put_text(&folder, "a", "\"na\nme\"\r\n1\n");
    put_text(&folder, "b", "name");
    put_text(&folder, "c", "");
    assert_texts(&folder, "[csv: {filenames: [a, b, c], header: true, " ONE_COLUMN "}]",
                 "1|!c: the file is empty, but must have a header|");
    folder_close(&folder);
}

/* A period of 14 and 11 bytes lets every place of a row meet the end of a read. */
static void
rows_across_reads_are_the_same(void **state)
{
    static const char *const rows[2] = { "\"q\"\"\r\n\"\"\"\r\n", "\"q\"\"\r\n\"\"\"\r\n\r\n\n" };
    static const char *const texts[2] = { "q\"\r\n\"|", "q\"\r\n\"|-|-|" };
    struct folder folder;
    struct bytes file = { 0 };
    struct bytes expected = { 0 };

    (void)state;
    folder_open(&folder);
    for (int i = 0; file.used < 20 << 20; i++) {
        bytes_add(&file, rows[i % 7 == 0], strlen(rows[i % 7 == 0]));
        bytes_add(&expected, texts[i % 7 == 0], strlen(texts[i % 7 == 0]));
    }
    bytes_add(&expected, "", 1);
    put_file(&folder, "a", file.data, file.used);
    for (uint32_t readers = 0; readers < 2; readers++) {
        struct pipeline pipeline;
        char *got;

        assert_int_equal(
            pipeline_open(&pipeline, &folder, readers, "[csv: {filenames: a, " ONE_COLUMN "}]"),
            TUNDISH_OK);
        got = pipeline_texts(&pipeline, 64);
        assert_true(strcmp(got, (const char *)expected.data) == 0);
        free(got);
        pipeline_close(&pipeline);
    }
    free(file.data);
    free(expected.data);
    folder_close(&folder);
}

TEST_FILE(test_source_csv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_end_at_newlines_carriage_returns_and_both),
        cmocka_unit_test(quoted_fields_hold_line_ends),
        cmocka_unit_test(a_stray_quote_is_an_error_of_its_row_alone),
        cmocka_unit_test(the_header_is_one_row_of_each_file),
        cmocka_unit_test(rows_across_reads_are_the_same),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
