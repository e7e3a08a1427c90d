/* test_content_texts.c - stages on strings. */
#include "stage_fixture.h"
#include "unit/test_file.h"

#include <stdio.h>
#include <string.h>

#define COUNT(array) (int64_t)(sizeof(array) / sizeof *(array))

static struct stage_run *
texts(const char *const *list, int64_t count)
{
    struct stage_run *run = stage_run_open(count, 0);
    struct byte_view *views = scratch_array(run->input.scratch, (size_t)count, sizeof *views);

    for (int64_t i = 0; i < count; i++)
        views[i] = text_view(list[i]);
    stage_run_add(run, "x", TUNDISH_STRING, views, NULL);
    return run;
}

/* What a stage makes of texts, or how it complains. */
static void
assert_makes(const char *const *list, int64_t count, const char *stage, const char *expected)
{
    struct stage_run *run = texts(list, count);
    const char *made = stage_run(run, stage) == TUNDISH_OK ? stage_run_column(run, "x") : run->text;

    if (strstr(made, expected) == NULL)
        fail_msg("%s: %s instead of %s", stage, made, expected);
    stage_run_close(run);
}

#define MAKES(stage, expected, ...)                                                                \
    assert_makes((const char *const[]){ __VA_ARGS__ },                                             \
                 COUNT(((const char *const[]){ __VA_ARGS__ })), stage, expected)

static void
letters_change_by_ascii_or_unicode(void **state)
{
    (void)state;
    MAKES("string_lower", "\"hello\" \"\xc3\x84\" \"\"", "HeLLo", "\xc3\x84", "");
    MAKES("string_upper", "\"HELLO\" \"\xc3\xa4\"", "hello", "\xc3\xa4");
    MAKES("string_lower: {encoding: utf-8}", "\"\xc3\xa4i\xcc\x87\xce\xb1\xcf\x82\"",
          "\xc3\x84\xc4\xb0\xce\x91\xce\xa3");
    MAKES("string_upper: {encoding: utf-8}", "\"SS\"", "\xc3\x9f");
    MAKES("string_lower: {encoding: utf-8}",
          "\"a\xef\xbf\xbd"
          "b\"",
          "A\xff"
          "B");
}

static void
texts_are_stripped_split_and_measured(void **state)
{
    (void)state;
    MAKES("string_strip", "\"a b\" \"\"", " \t a b\r\n\v\f", " ");
    MAKES("string_split", "[\"a\" \"b\"] [] [\"c\"]", " a \n b ", "", "c");
    MAKES("string_split: {sep: \",\"}", "[\"a\" \"\" \"b\"] [\"\"] [\"\" \"\"]", "a,,b", "", ",");
    MAKES("string_split: {sep: \"--\"}", "[\"a\" \"b\" \"-c\"]", "a--b---c");
    MAKES("string_split: {maxsplit: 1}", "[\"a\" \"b  c \"] [\"a\" \"\"]", " a b  c ", "a ");
    MAKES("string_split: {sep: \",\", maxsplit: 1}", "[\"a\" \"b,c\"]", "a,b,c");
    MAKES("string_split: {maxsplit: 0}", "[\" a b \"] [\"\"]", " a b ", "");
    MAKES("string_split: {sep: \",\", maxsplit: 0}", "[\"a,b\"]", "a,b");
    MAKES("string_length", "2 0", "\xc3\xa4", "");
    MAKES("string_length: {unit: UTF8_CHAR}", "1 3", "\xc3\xa4", "abc");
    MAKES("substr: {pos: 1, len: 3}", "\"ell\" \"i\"", "Hello", "Hi");
    MAKES("substr: {pos: -2, len: 1}", "\"l\"", "Hello");
    MAKES("substr: {pos: 2, len: 2, unit: UTF8_CHAR}", "\"\xc3\xb6\xc3\x9f\"",
          "gr\xc3\xb6\xc3\x9f"
          "er");
    MAKES("substr: {pos: 1, len: -1}", "\"ello\"", "Hello");
    MAKES("substr: {pos: 1, len: -1, unit: UTF8_CHAR}", "\"\"", "Hello");
    MAKES("substr: {pos: 3, len: 2}", "position 3", "Hi");
}

static void
numbers_are_read_and_printed(void **state)
{
    static const float f[] = { 0.1F, 12345.678F, -2.5F };
    static const int64_t i[] = { 0, INT64_MIN };
    struct stage_run *run = stage_run_open(3, 0);

    (void)state;
    MAKES("string_to_number", "1.5 -2 3 16", "1.5", "-2", " 3 ", "0x10");
    MAKES("string_to_number", "\"one\"", "1", "one");
    MAKES("string_to_number: {out_type: int32}", "2147483648", "2147483648");
    MAKES("string_to_number", "empty", "");
    MAKES("as_string: {width: 3}", "\"  a\" \"abcd\"", "a", "abcd");
    MAKES("as_string: {width: 3, fill: \"-\"}", "\"a  \"", "a");
    stage_run_add(run, "f", TUNDISH_FLOAT32, f, NULL);
    assert_int_equal(stage_run(run, "as_string"), TUNDISH_OK);
    assert_string_equal(stage_run_column(run, "f"), "\"0.100000\" \"12345.677734\" \"-2.500000\"");
    assert_int_equal(stage_run(run, "as_string: {width: 9, fill: \"0\", precision: 2}"),
                     TUNDISH_OK);
    assert_string_equal(stage_run_column(run, "f"), "\"000000.10\" \"012345.68\" \"-00002.50\"");
    assert_int_equal(stage_run(run, "as_string: {shortest: true, scientific: true}"),
                     TUNDISH_E_PIPELINE);
    stage_run_close(run);
    run = stage_run_open(2, 0);
    stage_run_add(run, "i", TUNDISH_INT64, i, NULL);
    assert_int_equal(stage_run(run, "as_string"), TUNDISH_OK);
    assert_string_equal(stage_run_column(run, "i"), "\"0\" \"-9223372036854775808\"");
    assert_int_equal(stage_run(run, "as_string: {width: 3, fill: \"+\"}"), TUNDISH_OK);
    assert_string_equal(stage_run_column(run, "i"), "\" +0\" \"-9223372036854775808\"");
    stage_run_close(run);
}

static void
hashes_have_the_dtype_asked_for(void **state)
{
    static const int64_t numbers[] = { 101, 102 };
    static const char form[] = "hashed_crossing: {columns: [n, m], output: o, num_bins: 5%s}";
    static const struct {
        const char *asked, *spec;
    } cases[] = {
        { "", "int64[]" },
        { ", dtype: int32", "int32[]" },
        { ", output_mode: one_hot", "float32[1,5]" },
        { ", output_mode: one_hot, dtype: int64", "int64[1,5]" },
        { ", dtype: float32", "float32[]" },
        { ", dtype: string", NULL },
        { ", output_mode: one_hot, dtype: string", NULL },
    };
    struct stage_run *run = stage_run_open(2, 0);

    (void)state;
    stage_run_add(run, "n", TUNDISH_INT64, numbers, NULL);
    stage_run_add(run, "m", TUNDISH_INT64, numbers, NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char stage[128];

        snprintf(stage, sizeof stage, form, cases[i].asked);
        if (cases[i].spec == NULL) {
            assert_int_equal(stage_run(run, stage), TUNDISH_E_PIPELINE);
            continue;
        }
        assert_int_equal(stage_run(run, stage), TUNDISH_OK);
        assert_string_equal(stage_run_spec(run, "o"), cases[i].spec);
    }
    stage_run_close(run);
}

static void
hash_buckets_are_tensorflows(void **state)
{
    (void)state;
    MAKES("string_to_hash_bucket_fast: {num_buckets: 3}", "0 2 2", "Hello", "TensorFlow", "2.x");
    MAKES("string_to_hash_bucket_strong: {num_buckets: 3, key: [1, 2]}", "2 0", "Hello", "TF");
}

static void
characters_and_ill_formed_parts_are_cut_apart(void **state)
{
    (void)state;
    MAKES("unicode_split", "[\"a\" \"\xc3\xa9\" \"\xe6\x97\xa5\"] []", "a\xc3\xa9\xe6\x97\xa5", "");
    MAKES("unicode_split: {replacement_char: 63}", "[\"?\" \"b\"] [\"?\" \"?\" \"?\"]",
          "\xe6\x97"
          "b",
          "\xed\xa0\x80");
    MAKES("unicode_split: {errors: ignore}", "[\"a\"]",
          "\xff"
          "a\xfe");
    MAKES("unicode_split: {errors: strict}", "invalid", "\xff");
    MAKES("unicode_split: {input_encoding: UTF-16-BE}", "[\"ab\" \"cd\"]", "abcd");
}

static void
runs_of_words_come_width_by_width(void **state)
{
    static const struct {
        const char *stage, *runs;
    } cases[] = {
        { "ngrams: {ngram_width: [1, 2], separator: \"|\"}",
          "[\"a\" \"b\" \"c\" \"a|b\" \"b|c\"]" },
        { "ngrams: {ngram_width: 2, pad_values: [\"<\", \">\"]}",
          "[\"< a\" \"a b\" \"b c\" \"c >\"]" },
        { "ngrams: {ngram_width: 5, preserve_short_sequences: true}", "[\"a b c\"]" },
        { "ngrams: {ngram_width: 4}", "[]" },
        { "ngrams: {ngram_width: 3, pad_values: _, padding_width: 1}",
          "[\"_ a b\" \"a b c\" \"b c _\"]" },
    };
    struct byte_view words[3];

    (void)state;
    for (int64_t i = 0; i < COUNT(cases); i++) {
        struct stage_run *run = stage_run_open(1, 0);

        for (int j = 0; j < 3; j++)
            words[j] = text_view(((const char *[]){ "a", "b", "c" })[j]);
        stage_run_add(run, "x", TUNDISH_STRING, words, (const int64_t[]){ 3, -1 });
        assert_int_equal(stage_run(run, cases[i].stage), TUNDISH_OK);
        assert_string_equal(stage_run_column(run, "x"), cases[i].runs);
        stage_run_close(run);
    }
}

static void
no_words_at_all_are_not_padded(void **state)
{
    static const int64_t splits[] = { 0, 0, 1 };
    struct byte_view words[1] = { text_view("a") };
    struct stage_run *run = stage_run_open(2, 0);

    (void)state;
    stage_run_add_lists(run, "x", TUNDISH_STRING, words, splits);
    assert_int_equal(stage_run(run, "ngrams: {ngram_width: 2, pad_values: _}"), TUNDISH_OK);
    assert_string_equal(stage_run_column(run, "x"), "[] [\"_ a\" \"a _\"]");
    assert_int_equal(stage_run(run, "ngrams: {ngram_width: 2, pad_values: _, padding_width: 0}"),
                     TUNDISH_E_PIPELINE);
    stage_run_close(run);
}

static void
patterns_are_those_of_re2(void **state)
{
    static const char *const refused[] = {
        "(a",  "(?=a)", "a(?<!b)", "(a)\\\\1", "a++",     "(?>a)",     "\\\\Ka", "(?R)",
        "a**", "\\\\h", "(?#x)",   "\\\\",     "a{1001}", "a{2,1001}", "a\\\\E", "[\\\\b]",
    };
    char stage[100];

    (void)state;
    MAKES("regex_replace: {pattern: \"[0-9]+\", rewrite: \"#\"}", "\"a#b#\" \"\"", "a1b22", "");
    MAKES("regex_replace: {pattern: \"(.)(.)\", rewrite: \"\\\\2\\\\1\", replace_global: false}",
          "\"bacd\"", "abcd");
    MAKES("regex_replace: {pattern: \"x*\", rewrite: \"-\"}", "\"-a-b-\" \"-\"", "ab", "");
    MAKES("regex_replace: {pattern: \"a|ab\", rewrite: \"x\"}", "\"xb\"", "ab");
    MAKES("regex_replace: {pattern: \"\\\\s\", rewrite: \"_\"}", "\"_a\vb_\"", " a\vb\t");
    MAKES("regex_replace: {pattern: \"[\\\\s[]\", rewrite: \"_\"}", "\"a__\"", "a [");
    MAKES("regex_replace: {pattern: \"a$\", rewrite: \"x\"}", "\"a\n\" \"x\"", "a\n", "a");
    MAKES("regex_replace: {pattern: \"[ab]\", rewrite: \"x\"}", "\"x\xffx\"",
          "a\xff"
          "b");
    MAKES("regex_replace: {pattern: \"(?i)\xc3\xa4\", rewrite: \"\\\\\\\\\"}", "\"\\\"",
          "\xc3\x84");
    MAKES("regex_replace: {pattern: \"a\", rewrite: \"\\\\1\"}", "\"aa\"", "aa");
    MAKES("regex_replace: {pattern: \"a\", rewrite: \"<\\\\x\"}", "\"<<\"", "aa");
    MAKES("regex_replace: {pattern: \"a\", rewrite: \"<\\\\x\", replace_global: false}", "\"aa\"",
          "aa");
    MAKES("regex_replace: {pattern: \"^*\", rewrite: \"-\"}", "\"-a-\"", "a");
    MAKES("regex_replace: {pattern: \"\\\\Q.[\\\\Eb\", rewrite: \"-\"}", "\"a-xb\"", "a.[bxb");
    MAKES("regex_replace: {pattern: \"\\\\C\", rewrite: \"-\"}", "\"---\"", "a\xc3\xa4");
    for (int64_t i = 0; i < COUNT(refused); i++) {
        snprintf(stage, sizeof stage, "regex_replace: {pattern: \"%s\", rewrite: b}", refused[i]);
        MAKES(stage, "RE2", "a");
    }
}

static void
patterns_that_could_backtrack_without_end_take_linear_time(void **state)
{
    (void)state;
    MAKES("regex_replace: {pattern: \"^(\\\\w+\\\\s?)+$\", rewrite: b}",
          "\"a quite usual sentence of words and blanks!\"",
          "a quite usual sentence of words and blanks!");
    MAKES("regex_replace: {pattern: \"(a|aa)+$\", rewrite: \"<\\\\1>\"}",
          "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!\" \"<a>\"",
          "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
    MAKES("regex_replace: {pattern: \"(x+x+)+y\", rewrite: b}",
          "\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\"",
          "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx");
}

TEST_FILE(test_content_texts)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(letters_change_by_ascii_or_unicode),
        cmocka_unit_test(texts_are_stripped_split_and_measured),
        cmocka_unit_test(numbers_are_read_and_printed),
        cmocka_unit_test(hash_buckets_are_tensorflows),
        cmocka_unit_test(hashes_have_the_dtype_asked_for),
        cmocka_unit_test(characters_and_ill_formed_parts_are_cut_apart),
        cmocka_unit_test(runs_of_words_come_width_by_width),
        cmocka_unit_test(no_words_at_all_are_not_padded),
        cmocka_unit_test(patterns_are_those_of_re2),
        cmocka_unit_test(patterns_that_could_backtrack_without_end_take_linear_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
