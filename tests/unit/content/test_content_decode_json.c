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
        "{\"id\":1,\"id\":true,\"a\":{\"x\":-1e1},\"s\":\"\\ud83d\\ude00\",\"m\":[5,6],"
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
    assert_null(strstr(strict->text, "the record has"));
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
                                       "{\"b\":\"\\ud80\",\"a\":1}",
                                       "{\"b\":[1,{\"c\":2],\"a\":1}",
                                       "{\"b\":{\"c\" 2},\"a\":1}",
                                       "{\"b\":nan,\"a\":1}",
                                       "{\"a\":NaN}",
                                       "{\"a\":[[1]]}",
                                       "{\"a\":[1,[]]}",
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

/* What each record gives: its columns as text, or the fault. */
struct reading {
    const char *record, *result;
};

static void
assert_reads(const char *stage, const struct reading *readings, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct stage_run *run = DECODE(stage, readings[i].record);

        if (run->errors.bad_count > 0)
            assert_non_null(strstr(run->text, readings[i].result));
        else
            assert_string_equal(stage_run_column(run, "x"), readings[i].result);
        stage_run_close(run);
    }
}

#define READS(stage, ...)                                                                          \
    assert_reads("decode_json: {features: {x: {" stage "}}}",                                      \
                 (const struct reading[]){ __VA_ARGS__ },                                          \
                 sizeof((const struct reading[]){ __VA_ARGS__ }) / sizeof(struct reading))

#define SCALAR "type: FixedLen, dtype: int64, shape: []"
static void
faults_show_what_is_there(void **state)
{
    (void)state;
    READS("type: FixedLen, dtype: int64, shape: [], key: label",
          { "{\"z\": {\"label\": 1}, \"lable\": 2}", "be found; the record has 'lable'" },
          { "{\"Label\": 2}", "; the record has 'Label'" },
          { "{\"label\": tru}", "at byte 10: neither a value nor a number, at 'tru}'" },
          { "{\"x\": 1,, \"label\": \"\x01\"}",
            "a member without a name, at ', \"label\": \"\\x01\"}'" },
          { "{\"label\":", "a value is missing, at its end" });
}

#define SEQUENCE "type: FixedLenSequence, dtype: int64, allow_missing: true"

static void
lists_have_the_form_of_the_shape(void **state)
{
    (void)state;
    READS("type: FixedLen, dtype: int64, shape: [2, 2]",
          { "{\"x\": [[1, 2], [3, 4]]}", "[[1 2] [3 4]]" },
          { "{\"x\": [1, 2, 3, 4]}", "[[1 2] [3 4]]" }, { "{\"x\": [[1], [2, 3, 4]]}", "shape" },
          { "{\"x\": [[[1], [2]], [[3], [4]]]}", "shape" }, { "{\"x\": [1, 2, [3, 4]]}", "shape" },
          { "{\"x\": [[1, 2], 3, 4]}", "shape" }, { "{\"x\": [[1, 2], [3, 4], []]}", "shape" },
          { "{\"x\": [[1, 2], [], [3, 4]]}", "shape" }, { "{\"x\": [[1, 2, 3, 4]]}", "shape" });
    READS("type: FixedLen, dtype: int64, shape: [3, 2]",
          { "{\"x\": [[1, 2, 3], [4, 5, 6]]}", "shape" });
    READS("type: FixedLen, dtype: int64, shape: [3]", { "{\"x\": [1, [2, 3]]}", "shape" },
          { "{\"x\": [[1, 2, 3]]}", "shape" });
    READS("type: FixedLen, dtype: int64, shape: [2, 0]", { "{\"x\": [[], []]}", "[[] []]" },
          { "{\"x\": []}", "[[] []]" }, { "{\"x\": [[]]}", "shape" });
    READS(SCALAR, { "{\"x\": [5]}", "5" }, { "{\"x\": [[5]]}", "shape" });
    READS(SEQUENCE ", shape: [2]", { "{\"x\": [[1, 2], [3, 4]]}", "[[1 2] [3 4]]" },
          { "{\"x\": [1, 2, 3, 4]}", "[[1 2] [3 4]]" }, { "{\"x\": []}", "[]" },
          { "{\"x\": [[1, 2], []]}", "shape" }, { "{\"x\": [[], []]}", "shape" },
          { "{\"x\": [[1], [2, 3, 4]]}", "shape" }, { "{\"x\": [[[1, 2]]]}", "shape" });
    READS("type: VarLen, dtype: int64", { "{\"x\": [1, 2]}", "[1 2]" }, { "{\"x\": 7}", "[7]" },
          { "{\"x\": [[1, 2], [3]]}", "shape" }, { "{\"x\": [[]]}", "shape" });
    READS("type: Ragged, dtype: int64", { "{\"x\": [1, 2]}", "[1 2]" },
          { "{\"x\": [[1, 2], [3]]}", "shape" });
    READS("type: Ragged, dtype: int64, partitions: [{UniformRowLength: 2}]",
          { "{\"x\": [[1, 2], [3, 4]]}", "[[1 2] [3 4]]" },
          { "{\"x\": [1, 2, 3, 4]}", "[[1 2] [3 4]]" }, { "{\"x\": [[1], [2, 3, 4]]}", "shape" });
}

static void
a_list_of_objects_is_the_list_of_a_member(void **state)
{
    (void)state;
    READS(SEQUENCE ", shape: [], key: a.b",
          { "{\"a\": [{\"c\": 1, \"b\": 5}, {\"b\": 6}]}", "[5 6]" }, { "{\"a\": []}", "[]" },
          { "{\"a\": {\"b\": [5, 6]}}", "[5 6]" }, { "{\"a.b\": [5, 6]}", "[5 6]" },
          { "{\"a\": [{\"b\": 1, \"b\": 2}, {\"b\": 3}]}", "[2 3]" },
          { "{\"a\": [{\"b\": 1}, {\"b\": null}]}", "null" },
          { "{\"a\": [{\"b\": 1}, {\"c\": 5}]}", "not every object" },
          { "{\"a\": [{\"c\": 1}, {\"b\": 5}]}", "not every object" },
          { "{\"a\": [{\"b\": 1}, 5]}", "not every object" },
          { "{\"a\": [{\"b\": [1]}, {\"b\": [2, 3]}]}", "shape" },
          { "{\"a\": [[{\"b\": 1}], [{\"b\": 2}]]}", "not every object" });
    READS("type: VarLen, dtype: int64, key: a.b", { "{\"a\": [{\"b\": 1}, {\"b\": 3}]}", "[1 3]" },
          { "{\"a\": [{\"b\": []}, {\"b\": []}]}", "shape" });
    READS("type: Ragged, dtype: int64, value_key: a.b",
          { "{\"a\": [{\"b\": 1}, {\"b\": 3}]}", "[1 3]" },
          { "{\"a\": [{\"b\": [1, 2]}, {\"b\": [3]}]}", "shape" });
    READS(SCALAR ", key: a.b", { "{\"a\": [{\"b\": 1}]}", "1" },
          { "{\"a\": [{\"b\": 9}, {\"b\": 8}]}", "shape" },
          { "{\"a\": [{\"b\": 1}, {\"c\": 5}]}", "not every object" });
    READS("type: FixedLen, dtype: int64, shape: [2, 2], key: a.b",
          { "{\"a\": [{\"b\": [1, 2]}, {\"b\": [3, 4]}], \"c\": [{\"b\": 5}]}", "[[1 2] [3 4]]" },
          { "{\"a\": [{\"b\": [1, 2, 3]}, {\"b\": [4]}]}", "shape" },
          { "{\"a\": [{\"b\": [1, 2]}, {\"b\": [3, 4]}, {}]}", "not every object" });
    READS("type: FixedLen, dtype: int64, shape: [2, 1], key: a.l.b",
          { "{\"a\": [{\"l\": [{\"b\": 1}]}, {\"l\": [{\"b\": 2}]}]}", "[[1] [2]]" },
          { "{\"a\": [{\"l\": [{\"b\": 1}, {\"b\": 2}]}, {\"l\": []}]}", "not every object" });
}

static void
two_ways_to_one_feature_are_refused(void **state)
{
    (void)state;
    READS(SCALAR ", key: a.b",
          { "{\"a.b\": 1, \"a\": {\"b\": 2}}", "'a.b': the record has it in two" },
          { "{\"a\": {\"b\": 2}, \"a.b\": 1}", "two places" },
          { "{\"a\": {\"b\": 2}, \"a.b\": null}", "two places" },
          { "{\"a\": {\"b\": 1}, \"a\": {\"b\": 2}}", "twice" },
          { "{\"a\": {\"b\": 1}, \"a\": {\"c\": 2}}", "twice" },
          { "{\"a\": {\"b\": 1}, \"a\": 2}", "twice" }, { "{\"a\": {\"b\": 1, \"b\": 2}}", "2" });
    READS(SEQUENCE ", shape: [], key: a.b", { "{\"a.b\": [], \"a\": [{\"b\": 2}]}", "two places" });
}

static void
what_nobody_wants_is_read_as_python_does(void **state)
{
    char deep[4100] = "{\"b\":", *at = deep + strlen(deep);
    struct stage_run *run;

    (void)state;
    READS(SCALAR, { "{\"b\": NaN, \"c\": [Infinity, -Infinity], \"x\": 1}", "1" },
          { "{\"b\": \"\\ud83d\", \"\\udc00\": {\"\\ud800\": 2}, \"x\": 1}", "1" },
          { "{\"b\": \"\\ud83d\\u0041\", \"x\": 1}", "1" }, { "{\"x\": Infinity}", "int64" },
          { "", "blank" }, { " \t", "blank" }, { "\xef\xbb\xbf{\"x\": 1}", "BOM" });
    READS("type: FixedLen, dtype: float32, shape: [3]",
          { "{\"x\": [NaN, Infinity, -Infinity]}", "[nan inf -inf]" });
    READS("type: FixedLen, dtype: string, shape: []",
          { "{\"x\": \"\\ud83d\"}", "'x': half of a surrogate pair" },
          { "{\"x\": \"\\ude00\"}", "'x': half of a surrogate pair" },
          { "{\"x\": NaN}", "number" });
    memset(at, '[', 2000);
    memset(at + 2000, ']', 2000);
    strcpy(at + 4000, ",\"a\":1}");
    run = DECODE(REQUIRED, deep);
    assert_string_equal(stage_run_column(run, "a"), "1");
    stage_run_close(run);
}

static void
depth_is_limited(void **state)
{
    char deep[600] = "{\"a\":";
    static char deeper[70000] = "{\"b\":";
    struct stage_run *run;

    (void)state;
    memset(deep + strlen(deep), '[', 500);
    run = DECODE(REQUIRED, deep);
    assert_non_null(strstr(run->text, "64 levels"));
    stage_run_close(run);
    memset(deeper + 5, '[', 69000);
    run = DECODE(REQUIRED, deeper);
    assert_non_null(strstr(run->text, "65536 levels"));
    stage_run_close(run);
}

TEST_FILE(test_content_decode_json)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_become_columns),
        cmocka_unit_test(what_is_missing_is_an_error_or_zero),
        cmocka_unit_test(what_is_no_json_is_refused),
        cmocka_unit_test(faults_show_what_is_there),
        cmocka_unit_test(lists_have_the_form_of_the_shape),
        cmocka_unit_test(a_list_of_objects_is_the_list_of_a_member),
        cmocka_unit_test(two_ways_to_one_feature_are_refused),
        cmocka_unit_test(what_nobody_wants_is_read_as_python_does),
        cmocka_unit_test(depth_is_limited),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
