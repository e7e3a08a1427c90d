/* test_resume.c - the cost of resuming, as a plan tells it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/memory.h"
#include "plan/resume.h"
#include "unit/test_file.h"

struct expected {
    const char *stages;
    enum plan_resume cost;
    const char *why; /* a part of the sentence */
};

static void
assert_cost(const struct expected *expected)
{
    char *text = tnd_sprintf("streams: {case: {dataset: [%s, {batch: 1}]}}", expected->stages);
    struct plan_options options = { .worker_count = 1, .replicas = 1, .root_seed = 1 };
    struct spec_errors errors = { 0 };
    struct spec_file *file = NULL;
    struct plan *plan = NULL;
    char *sentence = NULL;

    assert_int_equal(spec_open_text(text, strlen(text), "case.yaml", "/", &errors, &file),
                     TUNDISH_OK);
    assert_int_equal(plan_open(file, &file->streams[0], &options, &errors, &plan), TUNDISH_OK);
    assert_int_equal(plan_resume_cost(plan, &sentence), expected->cost);
    if (strstr(sentence, expected->why) == NULL)
        fail_msg("%s: '%s', not '%s'", expected->stages, sentence, expected->why);
    free(sentence);
    plan_close(plan);
    spec_close(file);
    spec_errors_close(&errors);
    free(text);
}

#define FILTER "{filter: 'value % 3 != 0'}"
#define LOOKS "filter (line 1) reads its columns again"
#define NOTED ", but for rows noted in the cache folder: "

static void
the_dearest_stage_is_named(void **state)
{
    static const struct expected cases[] = {
        { "{range: 9}", RESUME_AT_ONCE, "at once" },
        { "{range: 9}, {shuffle: {buffer_size: 4}}", RESUME_REFERENCES, "the buffer of shuffle" },
        { "{range: 9}, " FILTER, RESUME_CONTENT, LOOKS NOTED },
        { "{range: 9}, {interleave: {dataset: [{range: 9}], cycle_length: 2}}", RESUME_AT_ONCE,
          "at once" },
        { "{range: 9}, {interleave: {dataset: [{range: 9}, " FILTER "], cycle_length: 2}}",
          RESUME_CONTENT, LOOKS NOTED },
        { "{range: 9}, {flat_map: [{range: 9}, {flat_map: [{range: 9}, " FILTER "]}]}",
          RESUME_CONTENT, LOOKS NOTED },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_cost(&cases[i]);
}

/* Later passes bring the rows that a cache holds, too; a count of draws goes on from one function's
 * call to the next. */
static void
nothing_is_noted_that_another_run_may_not_have(void **state)
{
    static const struct expected cases[] = {
        { "{range: 9}, cache, " FILTER, RESUME_CONTENT, LOOKS ": " },
        { "{range: 9}, {flat_map: [{range: 9}, cache, " FILTER "]}", RESUME_CONTENT, LOOKS ": " },
        { "{range: 9}, {flat_map: [{fixed_length_record: {filenames: f, record_bytes: 12}}, "
          "{decode_raw: uint8}, {reshape: {shape: [2, 2, 3]}}, {random_flip: {mode: horizontal}}, "
          "{filter: 'sum(value) > 3'}]}",
          RESUME_CONTENT, LOOKS ": " },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_cost(&cases[i]);
}

TEST_FILE(test_resume)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_dearest_stage_is_named),
        cmocka_unit_test(nothing_is_noted_that_another_run_may_not_have),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
