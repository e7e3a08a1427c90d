/* test_content_decode_json.c - members, paths, lists, and what is no JSON. */
#include "stage_fixture.h"
#include "unit/test_file.h"

#include <string.h>

static struct stage_run *
decode(const char *stage, const char *const *texts, int64_t count)
{
    struct stage_run *run = stage_run_open(count, 0);
    struct byte_view *views = scratch_array(run->input.scratch, (size_t)count, sizeof *views);

    for (int64_t i = 0; i < count; i++)
        views[i] = text_view(texts[i]);
    stage_run_add(run, "value", TUNDISH_STRING, views, NULL);
    stage_run(run, stage);
    return run;
}

#define DECODE(stage, ...)                                                                         \
    decode(stage, (const char *const[]){ __VA_ARGS__ },                                            \
           sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(char *))

#define FEATURES                                                                                   \
    "decode_json: {features: {"                                                                    \
    "id: {type: FixedLen, dtype: int64, shape: [], default_value: -1}, "                           \
    "x: {type: FixedLen, dtype: float32, shape: [], default_value: 0.5, key: a.x}, "               \
    "s: {type: FixedLen, dtype: string, shape: [], default_value: none}, "                         \
    "m: {type: FixedLen, dtype: int64, shape: [2], default_value: [8, 9]}, "                       \
    "v: {type: VarLen, dtype: int64}}}"
#define REQUIRED "decode_json: {features: {a: {type: FixedLen, dtype: int64, shape: []}}}"

static void
members_become_columns(void **state)
{
    struct stage_run *run = DECODE(
        FEATURES,
        "{\"id\": 7, \"a\": {\"x\": 2.5, \"y\": [{}]}, \"s\": \"t\\u00e9\\n\", \"m\": [1, 2],"
        " \"v\": [3, 4]}",
        " {\"id\": null, \"z\": [1, [true, \"x\"]], \"a\": {}} ",
        "{\"id\":1,\"id\":true,\"a\":{\"x\":-1e1},\"s\":\"\\ud83d\\ude00\",\"m\":[[5],[6]],"
        "\"v\":[]}");

    (void)state;
    assert_string_equal(run->text, "");
    assert_string_equal(stage_run_column(run, "id"), "7 -1 1");
    assert_string_equal(stage_run_column(run, "x"), "2.5 0.5 -10");
    assert_string_equal(stage_run_column(run, "s"),
                        "\"t\xc3\xa9\n\" \"none\" \"\xf0\x9f\x98\x80\"");
    assert_string_equal(stage_run_column(run, "m"), "[1 2] [8 9] [5 6]");
    assert_string_equal(stage_run_column(run, "v"), "[3 4] [] []");
    stage_run_close(run);
}

static void
what_is_missing_is_an_error_or_zero(void **state)
{
    struct stage_run *strict = DECODE(REQUIRED, "{\"a\": 1}", "{}");
    struct stage_run *lenient = DECODE(
        "decode_json: {features: {a: {type: FixedLen, dtype: int64, shape: []}}, missing: default}",
        "{\"a\": 1}", "{}", "{\"a\": null}");

    (void)state;
    assert_int_equal(strict->errors.first_bad, 1);
    assert_non_null(strstr(strict->text, "'a': it is required"));
    assert_string_equal(stage_run_column(lenient, "a"), "1 0 0");
    stage_run_close(strict);
    stage_run_close(lenient);
}

static void
what_is_no_json_is_refused(void **state)
{
    static const char *const bad[] = { "",
                                       "[]",
                                       "{",
                                       "{\"a\"",
                                       "{\"a\":",
                                       "{\"a\":1",
                                       "{\"a\":1,}",
                                       "{\"a\":01}",
                                       "{\"a\":1.}",
                                       "{\"a\":+1}",
                                       "{\"a\":1e}",
                                       "{\"a\":.5}",
                                       "{\"a\":1}x",
                                       "{a:1}",
                                       "{\"a\":tru}",
                                       "{\"a\":\"x\"}",
                                       "{\"a\":1.5}",
                                       "{\"a\":[1,2]}",
                                       "{\"a\":[]}",
                                       "{\"a\":{}}",
                                       "{\"b\":\"\\x\",\"a\":1}",
                                       "{\"b\":\"\\ud800\",\"a\":1}",
                                       "{\"b\":\"\n\",\"a\":1}",
                                       "{\"a\":[1,null]}",
                                       "{\"a\":9223372036854775808}",
                                       "{\"a\":1 \"b\":2}" };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct stage_run *run = DECODE(REQUIRED, "{\"a\":1}", bad[i], "{\"a\":2}");

        assert_int_equal(run->errors.bad_count, 1);
        assert_int_equal(run->errors.first_bad, 1);
        assert_true(run->text[0] != '\0');
        stage_run_close(run);
    }
}

static void
depth_is_limited(void **state)
{
    char deep[600] = "{\"b\":";
    struct stage_run *run;

    (void)state;
    memset(deep + strlen(deep), '[', 500);
    run = DECODE(REQUIRED, deep);
    assert_non_null(strstr(run->text, "64 levels"));
    stage_run_close(run);
}

TEST_FILE(test_content_decode_json)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_become_columns),
        cmocka_unit_test(what_is_missing_is_an_error_or_zero),
        cmocka_unit_test(what_is_no_json_is_refused),
        cmocka_unit_test(depth_is_limited),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
