/* test_references.c - the records that elements refer to, found without reading them. */
#include "../source/source_fixture.h"

#include "batch/references.h"
#include "unit/test_file.h"

enum { MOST = 16 };

struct found {
    uint64_t offsets[MOST];
    size_t count;
};

static void
note(void *user, const uint64_t *words, uint32_t extra_bytes)
{
    struct found *found = user;

    (void)extra_bytes;
    assert_in_range(found->count, 0, MOST - 1);
    found->offsets[found->count++] = words[0];
}

/* The lines are two bytes each: the first element of `stages` refers to those at `offsets`. */
static void
assert_refers(const char *stages, const char *offsets)
{
    struct pipeline pipeline;
    struct folder folder;
    struct found found = { .count = 0 };
    char *list = tnd_sprintf("[{text_line: lines}%s]", stages), text[256] = "";
    uint64_t words[PLAN_WIDTH_MAX];
    size_t count;

    folder_open(&folder);
    put_text(&folder, "lines", "a\nb\nc\nd\ne\nf\n");
    assert_int_equal(pipeline_open(&pipeline, &folder, 1, list), TUNDISH_OK);
    assert_int_equal(order_next(pipeline.iterator, words, 1, &count), ORDER_OK);
    references_visit(pipeline.node, words, pipeline.node->width, 1, note, &found);
    for (size_t i = 0; i < found.count; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%llu ",
                 (unsigned long long)found.offsets[i]);
    assert_string_equal(text, offsets);
    run_words_release(words, 1, pipeline.node->width, pipeline.node->run_words);
    pipeline_close(&pipeline);
    folder_close(&folder);
    free(list);
}

static void
rows_of_batches_are_found(void **state)
{
    (void)state;
    assert_refers("", "0 ");
    assert_refers(", {batch: 3}", "0 2 4 ");
    assert_refers(", {skip: 1}, enumerate, {padded_batch: 2}, {batch: 2}", "2 4 6 8 ");
}

static void
rows_of_windows_are_found(void **state)
{
    (void)state;
    assert_refers(", {window: {size: 3, shift: 1}}", "0 2 4 ");
    assert_refers(", {window: {size: 2, stride: 2}}, {batch: 1}", "0 4 ");
}

/* The second size is made of what is left of the first batch and some of the next one. */
static void
rows_of_joined_batches_are_found(void **state)
{
    (void)state;
    assert_refers(", {batch: 2}, {rebatch: 3}", "0 2 4 ");
    assert_refers(", {batch: 2}, {rebatch: 3}, {skip: 1}", "6 8 10 ");
}

static void
rows_of_groups_are_found(void **state)
{
    (void)state;
    assert_refers(", enumerate, {group_by_window: {key: index % 2, window_size: 3}}", "0 4 8 ");
}

TEST_FILE(test_references)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_of_batches_are_found),
        cmocka_unit_test(rows_of_windows_are_found),
        cmocka_unit_test(rows_of_joined_batches_are_found),
        cmocka_unit_test(rows_of_groups_are_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
