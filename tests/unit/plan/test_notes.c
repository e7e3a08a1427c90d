/* test_notes.c - what plan says of pipelines that run, but not as one may expect. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/memory.h"
#include "plan/notes.h"
#include "unit/test_file.h"

static void
join(void *context, const char *sentence)
{
    char **text = context;
    char *longer = tnd_sprintf("%s%s\n", *text, sentence);

    free(*text);
    *text = longer;
}

/* For the caller to free. */
static char *
notes_of(const char *stages, const char *last, uint32_t replicas)
{
    char *text = tnd_sprintf("streams: {case: {dataset: [%s%s]}}", stages, last);
    struct plan_options options = { .worker_count = 1, .replicas = replicas, .root_seed = 1 };
    struct spec_errors errors = { 0 };
    struct spec_file *file = NULL;
    struct plan *plan = NULL;
    char *notes = tnd_strdup("");

    assert_int_equal(spec_open_text(text, strlen(text), "case.yaml", "/", &errors, &file),
                     TUNDISH_OK);
    assert_int_equal(plan_open(file, &file->streams[0], &options, &errors, &plan), TUNDISH_OK);
    plan_notes(plan, join, &notes);
    plan_close(plan);
    spec_close(file);
    spec_errors_close(&errors);
    free(text);
    return notes;
}

/* The stages are followed by a batch. */
static void
assert_noted(const char *stages, const char *wanted)
{
    char *notes = notes_of(stages, ", {batch: 1}", 1);

    if (strstr(notes, wanted) == NULL || (wanted[0] == '\0' && notes[0] != '\0'))
        fail_msg("%s: '%s' is not '%s'", stages, notes, wanted);
    free(notes);
}

static void
cuts_of_an_order_that_changes(void **state)
{
    (void)state;
    assert_noted("{range: 9}, {shuffle: 9}, {take: 3}", "take (line 1) comes after shuffle");
    assert_noted("{range: 9}, {shuffle: 9}, {batch: 2}, {skip: 3}", "skip (line 1)");
    assert_noted("{range: 9}, {shuffle: 9}, {shard: {num_shards: 2, index: 0}}", "shard (line 1)");
    assert_noted("{list_files: x}, enumerate", "enumerate (line 1) comes after list_files");
    assert_noted("{directory: {directory: d, shuffle: true}}, {take: 3}", "after directory");
    assert_noted("{range: 9}, {take: 3}, {shuffle: 9}", "");
    assert_noted("{range: 9}, {shuffle: 9}, cache, {take: 3}", "");
    assert_noted("{range: 9}, {shuffle: {buffer_size: 9, reshuffle_each_iteration: false}}, "
                 "{take: 3}",
                 "");
    assert_noted("{list_files: {file_pattern: x, reshuffle_each_iteration: false}}, {take: 3}", "");
}

static void
draws_apart_for_one_row(void **state)
{
#define IMAGES "{from_tensors: {a: [[[1.0]]], b: [[[2.0]]]}}"
    (void)state;
    assert_noted(IMAGES ", {random_flip: {columns: a}}, {random_flip: {columns: b}}",
                 "draw apart for the columns of one row");
    assert_noted(IMAGES ", {random_flip: {columns: [a, b]}}, {random_flip: {columns: b}}", "");
    assert_noted(IMAGES ", {random_flip: {columns: a, seed: 1}}, {random_flip: {columns: b, seed: "
                        "1}}",
                 "");
    assert_noted(IMAGES ", {random_flip: {columns: a, draws: d}}, {random_flip: {columns: b, "
                        "draws: d}}",
                 "");
}

static void
draws_that_race_in_tensorflow(void **state)
{
    (void)state;
    assert_noted("{range: 2}, {interleave: {cycle_length: 2, num_parallel_calls: 2, dataset: ["
                 "{from_tensors: {a: [[[1.0]]]}}, random_flip]}}",
                 "random_flip (line 1) draws inside interleave");
    assert_noted("{range: 2}, {interleave: {cycle_length: 2, dataset: [{from_tensors: {a: "
                 "[[[1.0]]]}}, random_flip]}}",
                 "");
}

static void
rows_that_come_one_by_one(void **state)
{
    static const char *const batched[] = { "{range: 9}, {batch: 2}", "{range: 9}, {window: 2}",
                                           "{from_tensors: {a: [1, 2]}}",
                                           "{values: {a: replica_id_in_sync_group}}" };
    char *notes = notes_of("{range: 9}, {shuffle: 2}", "", 1);

    (void)state;
    assert_non_null(strstr(notes, "no stage of stream 'case' makes batches"));
    free(notes);
    for (size_t i = 0; i < sizeof batched / sizeof *batched; i++) {
        notes = notes_of(batched[i], "", 1);
        assert_string_equal(notes, "");
        free(notes);
    }
}

static void
replicas_that_get_unequal_slices(void **state)
{
    static const struct {
        const char *stages, *note;
        uint32_t replicas;
    } streams[] = {
        { "{range: 9}, {batch: 3}", "first of 2 replicas gets 2 in each step, and the last 1", 2 },
        { "{range: 9}, {batch: 5}", "first of 4 replicas gets 2 in each step, and the last 0", 4 },
        { "{range: 9}, {batch: 4}", "", 2 },
        { "{range: 9}, {batch: 3}", "", 1 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof streams / sizeof *streams; i++) {
        char *notes = notes_of(streams[i].stages, "", streams[i].replicas);

        assert_non_null(strstr(notes, streams[i].note));
        assert_true(streams[i].note[0] != '\0' || notes[0] == '\0');
        free(notes);
    }
}

TEST_FILE(test_notes)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cuts_of_an_order_that_changes),
        cmocka_unit_test(draws_apart_for_one_row),
        cmocka_unit_test(draws_that_race_in_tensorflow),
        cmocka_unit_test(rows_that_come_one_by_one),
        cmocka_unit_test(replicas_that_get_unequal_slices),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
