/* test_damaged_files.c - a damaged file ends where its records end, if bad rows are left out. */
#include "source_fixture.h"
#include "unit/test_file.h"

/* "one", "two" and half of a record; then a whole file. */
static void
put_files(const struct folder *folder)
{
    struct bytes file = { 0 };

    add_record(&file, "one", 3);
    add_record(&file, "two", 3);
    add_record(&file, "three", 5);
    put_file(folder, "cut", file.data, file.used - 6);
    file.used = 0;
    add_record(&file, "four", 4);
    put_file(folder, "whole", file.data, file.used);
    free(file.data);
}

static void
open_skipping(struct pipeline *pipeline, const struct folder *folder, const char *stages)
{
    assert_int_equal(pipeline_open(pipeline, folder, 0, stages), TUNDISH_OK);
}

static void
it_ends_with_one_counted_error(void **state)
{
    struct folder folder;
    struct pipeline pipeline;
    const char *text;
    char *texts;

    (void)state;
    folder_open(&folder);
    folder.skip_damage = true;
    put_files(&folder);
    assert_texts(&folder, "[tfrecord: [cut, whole]]", "one|two|four|");
    assert_texts(&folder, "[tfrecord: [whole, cut]]", "four|one|two|");
    assert_texts(&folder, "[tfrecord: [cut, whole], skip: 1, take: 2]", "two|four|");
    open_skipping(&pipeline, &folder, "[tfrecord: [cut, cut, whole], repeat: 2]");
    assert_int_equal(source_files_damaged(pipeline.files, &text), 0);
    assert_null(text);
    texts = pipeline_texts(&pipeline, 1);
    assert_string_equal(texts, "one|two|one|two|four|one|two|one|two|four|");
    assert_int_equal(source_files_damaged(pipeline.files, &text), 1);
    assert_string_equal(text, "cut: truncated record at 38: the file ends at 53 (the rest of the "
                              "file is left out)");
    free(texts);
    pipeline_close(&pipeline);
    folder_close(&folder);
}

/* Elements by number, and those passed over, are the same ones. */
static void
its_records_are_counted(void **state)
{
    struct folder folder;
    struct pipeline pipeline;
    uint64_t words[PLAN_WIDTH_MAX], count, passed;
    const uint64_t index = 2;
    const char *text;

    (void)state;
    folder_open(&folder);
    folder.skip_damage = true;
    put_files(&folder);
    open_skipping(&pipeline, &folder, "[tfrecord: [cut, whole]]");
    assert_int_equal(pipeline.iterator->ops->count(pipeline.iterator, &count), TUNDISH_OK);
    assert_int_equal(count, 3);
    assert_int_equal(pipeline.iterator->ops->at(pipeline.iterator, &index, 1, words), TUNDISH_OK);
    assert_int_equal(pipeline_content(&pipeline, words, 1), TUNDISH_OK);
    assert_memory_equal(text_at(&pipeline, 0, 0).data, "four", 4);
    assert_int_equal(order_pass_over(pipeline.iterator, 9, &passed), ORDER_END);
    assert_int_equal(passed, 3);
    assert_int_equal(source_files_damaged(pipeline.files, &text), 1);
    pipeline_close(&pipeline);
    folder_close(&folder);
}

/* Every start must find the damage again. */
static void
no_index_of_it_is_kept(void **state)
{
    struct folder folder;
    struct pipeline pipeline;
    struct bytes file = { 0 };
    const char *text;

    (void)state;
    folder_open(&folder);
    folder.skip_damage = true;
    for (int i = 0; i < 300000; i++)
        add_record(&file, "some record", 11);
    put_file(&folder, "cut", file.data, file.used - 6);
    free(file.data);
    for (int i = 0; i < 2; i++) {
        uint64_t passed;

        open_skipping(&pipeline, &folder, "[tfrecord: cut]");
        assert_int_equal(order_pass_over(pipeline.iterator, 1000000, &passed), ORDER_END);
        assert_int_equal(passed, 299999);
        assert_int_equal(source_files_damaged(pipeline.files, &text), 1);
        pipeline_close(&pipeline);
    }
    folder_close(&folder);
}

static void
a_file_that_cannot_be_opened_still_fails(void **state)
{
    struct folder folder;

    (void)state;
    folder_open(&folder);
    folder.skip_damage = true;
    put_files(&folder);
    assert_texts(&folder, "[tfrecord: [gone, whole]]",
                 "!gone: cannot be opened: No such file or directory|four|");
    folder_close(&folder);
}

TEST_FILE(test_damaged_files)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_ends_with_one_counted_error),
        cmocka_unit_test(its_records_are_counted),
        cmocka_unit_test(no_index_of_it_is_kept),
        cmocka_unit_test(a_file_that_cannot_be_opened_still_fails),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
