/* test_source_fixed_length_record.c - records of one length between header and footer. */
#include "source_fixture.h"
#include "unit/test_file.h"

#include <zlib.h>

#define STAGE(file, more)                                                                          \
    "[from_tensors: {value: " file "}, flat_map: {dataset: [fixed_length_record: {record_bytes: "  \
    "2, header_bytes: 1, footer_bytes: 3" more "}]}]"

static void
header_and_footer_are_left_out(void **state)
{
    struct folder folder;

    (void)state;
    folder_open(&folder);
    put_text(&folder, "a", "Haabbccfff");
    put_text(&folder, "none", "Hfff");
    assert_texts(&folder, STAGE("a", ""), "aa|bb|cc|");
    assert_texts(&folder, STAGE("none", ""), "");
    folder_close(&folder);
}

static void
another_size_is_an_error_before_the_first_record(void **state)
{
    struct folder folder;

    (void)state;
    folder_open(&folder);
    put_text(&folder, "a", "Haabbcfff");
    put_text(&folder, "short", "Hff");
    assert_texts(&folder, STAGE("a", ""),
                 "!a: the 5 bytes between header and footer are not a multiple of record_bytes "
                 "(2): 1 too many|");
    assert_texts(&folder, STAGE("short", ""),
                 "!short: its 3 bytes are fewer than a header of 1 and a footer of 3|");
    folder_close(&folder);
}

static void
put_packed(const struct folder *folder, const char *name, const char *text)
{
    char path[128];
    gzFile file;

    snprintf(path, sizeof path, "%s/%s", folder->path, name);
    file = gzopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(gzwrite(file, text, (unsigned)strlen(text)), strlen(text));
    assert_int_equal(gzclose(file), Z_OK);
}

static void
packed_records_come_before_their_error(void **state)
{
    struct folder folder;

    (void)state;
    folder_open(&folder);
    put_packed(&folder, "a", "Haabbccfff");
    put_packed(&folder, "b", "Haabbcfff");
    assert_texts(&folder, STAGE("a", ", compression_type: GZIP"), "aa|bb|cc|");
    assert_texts(&folder, STAGE("b", ", compression_type: GZIP"),
                 "aa|bb|!b: the 5 bytes between header and footer are not a multiple of "
                 "record_bytes (2): 1 too many|");
    folder_close(&folder);
}

TEST_FILE(test_source_fixed_length_record)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(header_and_footer_are_left_out),
        cmocka_unit_test(another_size_is_an_error_before_the_first_record),
        cmocka_unit_test(packed_records_come_before_their_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
