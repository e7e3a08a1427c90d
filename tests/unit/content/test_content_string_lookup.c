/* test_content_string_lookup.c - terms to indices and back, by Keras' rules. */
#include "../remove_tree.h"
#include "stage_fixture.h"

#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "unit/test_file.h"

static const char *folder;

static struct stage_run *
look_up(const char *stage, const char *const *terms, int64_t count)
{
    struct stage_run *run = stage_run_open(count, 0);
    struct byte_view *views = scratch_array(run->input.scratch, (size_t)count, sizeof *views);

    for (int64_t i = 0; i < count; i++)
        views[i] = text_view(terms[i]);
    stage_run_add(run, "x", TUNDISH_STRING, views, NULL);
    stage_run(run, stage);
    return run;
}

#define LOOK_UP(stage, ...)                                                                        \
    look_up(stage, (const char *const[]){ __VA_ARGS__ },                                           \
            sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(char *))

static void
terms_follow_the_special_tokens(void **state)
{
    static const struct {
        const char *stage, *indices;
        int64_t maximum;
    } tables[] = {
        { "string_lookup: {vocabulary: [a, b, c, d]}", "1 3 4 0 0", 4 },
        { "string_lookup: {vocabulary: [a, b, c, d], mask_token: \"\"}", "2 4 5 1 0", 5 },
        { "string_lookup: {vocabulary: [\"[UNK]\", a, b, c, d]}", "1 3 4 0 0", 4 },
        { "string_lookup: {vocabulary: [\"[UNK]\", a, b, c, d], mask_token: \"\"}", "3 5 6 1 0",
          6 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        struct stage_run *run = LOOK_UP(tables[i].stage, "a", "c", "d", "zz", "");

        assert_string_equal(run->text, "");
        assert_string_equal(stage_run_column(run, "x"), tables[i].indices);
        assert_true(run->schema.columns[0].has_range);
        assert_int_equal(run->schema.columns[0].minimum, 0);
        assert_int_equal(run->schema.columns[0].maximum, tables[i].maximum);
        stage_run_close(run);
    }
}

static void
without_a_place_for_unknown_terms_they_are_refused(void **state)
{
    struct stage_run *run = LOOK_UP("string_lookup: {vocabulary: [a, b], num_oov_indices: 0}", "b",
                                    "zz", "a", "yy", "a");

    (void)state;
    assert_int_equal(run->errors.first_bad, 1);
    assert_int_equal(run->errors.bad_count, 2);
    assert_non_null(strstr(run->text, "'zz'"));
    assert_string_equal(stage_run_column(run, "x"), "1 0 0 0 0");
    stage_run_close(run);
}

static void
indices_go_back_to_terms(void **state)
{
    static const int64_t indices[] = { 4, 0, 2, 1, -1, 99, INT64_MIN, INT64_MAX };
    struct stage_run *run = stage_run_open(8, 0);

    (void)state;
    stage_run_add(run, "x", TUNDISH_INT64, indices, NULL);
    stage_run(run, "string_lookup: {vocabulary: [a, b, c, d], invert: true}");
    assert_string_equal(stage_run_column(run, "x"),
                        "\"d\" \"[UNK]\" \"b\" \"a\" \"[UNK]\" \"[UNK]\" \"[UNK]\" \"[UNK]\"");
    assert_string_equal(stage_run_spec(run, "x"), "string[]");
    stage_run_close(run);
}

static void
integers_are_looked_up_whatever_their_width(void **state)
{
    static const int32_t narrow[] = { 12, 36, -3, 7 };
    struct stage_run *run = stage_run_open(4, 0);

    (void)state;
    stage_run_add(run, "x", TUNDISH_INT32, narrow, NULL);
    stage_run(run, "integer_lookup: {vocabulary: [12, 36], num_oov_indices: 2}");
    assert_string_equal(stage_run_column(run, "x"), "2 3 1 1");
    stage_run_close(run);
}

static void
wrong_parameters_are_refused_in_the_file(void **state)
{
    static const struct {
        const char *stage, *words;
    } wrong[] = {
        { "string_lookup: {vocabulary: []}", "empty" },
        { "string_lookup: {vocabulary: [a, b, a, b, c]}", "'a', 'b'" },
        { "string_lookup: {vocabulary: [a, m, b], mask_token: m}", "mask token" },
        { "string_lookup: {vocabulary: [a, b, c], max_tokens: 3}", "4 terms" },
        { "string_lookup: {vocabulary: [a], sparse: true}", "sparse" },
        { "string_lookup: {vocabulary: no-such-file.txt}", "no-such-file.txt" },
        { "string_lookup", "tundish analyze" },
        { "integer_lookup: {vocabulary: [1]}", "is string" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct stage_run *run = LOOK_UP(wrong[i].stage, "a");

        assert_true(run->complaints.count > 0);
        assert_non_null(strstr(run->text, wrong[i].words));
        stage_run_close(run);
    }
}

/* Tables are kept in the cache folder: one of this test's own. */
static int
make_folder(void **state)
{
    static char name[] = "/tmp/tundish-test-XXXXXX";

    (void)state;
    folder = mkdtemp(name);
    return folder == NULL ? -1 : setenv("TUNDISH_CACHE", folder, 1);
}

static int
remove_folder(void **state)
{
    (void)state;
    return remove_tree(folder);
}

TEST_FILE(test_content_string_lookup)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(terms_follow_the_special_tokens),
        cmocka_unit_test(without_a_place_for_unknown_terms_they_are_refused),
        cmocka_unit_test(indices_go_back_to_terms),
        cmocka_unit_test(integers_are_looked_up_whatever_their_width),
        cmocka_unit_test(wrong_parameters_are_refused_in_the_file),
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
