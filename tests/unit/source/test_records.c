/* test_records.c - a record is found by where it begins, in lists of all kinds. */
#include "source_fixture.h"

#include "source/files/files_private.h"
#include "source/scan/scan.h"
#include "unit/test_file.h"

/* Each record of the file is found where its reference says, and nothing between records is. */
static void
assert_found(const struct record_format *format, const void *data, size_t bytes, uint64_t records)
{
    struct folder folder;
    struct source_files_options options = { .root = folder.path, .cache_folder = folder.cache };
    struct source_files *files;
    struct source_file *file;
    const struct record_list *list;
    uint64_t index;

    folder_open(&folder);
    put_file(&folder, "file", data, bytes);
    assert_int_equal(source_files_open(&options, &files), TUNDISH_OK);
    file = files_enter(files, "file", 4, format);
    assert_int_equal(scan_complete(file, NULL, &list), TUNDISH_OK);
    assert_int_equal(list->count, records);
    for (uint64_t i = 0; i < records; i++) {
        uint64_t words[2];

        assert_true(record_list_at(list, i, 0, words));
        assert_true(record_list_find(list, words[0], &index));
        assert_int_equal(index, i);
        if (reference_length(words) > 1)
            assert_false(record_list_find(list, words[0] + 1, &index));
    }
    assert_false(record_list_find(list, bytes + 1, &index));
    assert_false(record_list_find(list, UINT64_MAX, &index));
    source_files_close(files);
    folder_close(&folder);
}

static void
lines_are_found(void **state)
{
    const struct record_format format = { .scanner = &scanner_text_line };
    struct bytes text = { 0 };

    (void)state;
    assert_found(&format, "", 0, 0);
    for (int i = 0; i < 1000; i++) {
        char line[64];

        bytes_add(&text, line, (size_t)snprintf(line, sizeof line, "%.*d\n", i % 7 * (i % 3), i));
    }
    assert_found(&format, text.data, text.used, 1000);
    free(text.data);
}

static void
records_of_one_length_are_found(void **state)
{
    const struct record_format format = { .scanner = &scanner_fixed_length_record,
                                          .numbers = { 5, 3, 2 } };
    static const uint8_t zeros[3 + 40 * 5 + 2];

    (void)state;
    assert_found(&format, zeros, sizeof zeros, 40);
}

TEST_FILE(test_records)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_are_found),
        cmocka_unit_test(records_of_one_length_are_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
