/* test_learn_view.c - a dataset as it is learned from: nothing random, and nothing twice. */
#include "../spec/spec_fixture.h"

#include "learn/learn_view.h"
#include "unit/test_file.h"

static void
files_are_learned_from_in_their_order_whatever_lists_them(void **state)
{
    static const char *const sources[] = {
        "list_files: {file_pattern: [a, b], shuffle: true}",
        "directory: {directory: d, shuffle: true}",
    };

    (void)state;
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
        struct spec_file *file = parse(STREAM_OF(sources[i]));
        struct learn_view view;

        learn_view_open(&view, &file->streams[0].dataset);
        assert_true(spec_bool(stage_of(file, 0), "shuffle"));
        assert_false(spec_bool(&view.dataset.stages[0], "shuffle"));
        learn_view_close(&view);
        spec_close(file);
    }
}

static void
stages_that_only_reorder_are_left_out_and_the_others_know_where_they_were(void **state)
{
    static const char *const names[] = { "range", "map", "batch" };
    static const uint32_t at[] = { 0, 3, 5 };
    struct spec_file *file =
        parse(STREAM_OF("range: 5", "shuffle: 3", "repeat: 2", "map: {y: value + 1}",
                        "shard: SHARD_HINT", "batch: 2", "prefetch: 1"));
    struct learn_view view;

    (void)state;
    learn_view_open(&view, &file->streams[0].dataset);
    assert_int_equal(view.dataset.stage_count, 3);
    for (uint32_t i = 0; i < 3; i++) {
        assert_string_equal(view.dataset.stages[i].info->name, names[i]);
        assert_int_equal(view.written_at[i], at[i]);
    }
    learn_view_close(&view);
    spec_close(file);
}

TEST_FILE(test_learn_view)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_are_learned_from_in_their_order_whatever_lists_them),
        cmocka_unit_test(stages_that_only_reorder_are_left_out_and_the_others_know_where_they_were),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
