/* test_source_tfrecord.c - records, damaged ones above all. */
#include "source_fixture.h"
#include "unit/test_file.h"

/* Three records: "card", "", "door"; the second begins at 20, the third at 36, the end is at 56. */
static struct bytes
three_records(void)
{
    struct bytes file = { 0 };

    add_record(&file, "card", 4);
    add_record(&file, "", 0);
    add_record(&file, "door", 4);
    assert_int_equal(file.used, 56);
    return file;
}

static void
assert_records(const void *data, size_t bytes, const char *expected)
{
    struct folder folder;

    folder_open(&folder);
    put_file(&folder, "a", data, bytes);
    put_text(&folder, "b", "");
    assert_texts(&folder, "[tfrecord: [a, b]]", expected);
    folder_close(&folder);
}

static void
records_come_whole(void **state)
{
    struct bytes file = three_records();

    (void)state;
    assert_records(file.data, file.used, "card||door|");
    assert_records(file.data, 36, "card||");
    assert_records(file.data, 0, "");
    free(file.data);
}

static void
a_cut_anywhere_else_is_an_error_behind_the_whole_records(void **state)
{
    struct bytes file = three_records();

    (void)state;
    for (size_t bytes = 37; bytes < 56; bytes++) {
        char expected[128];

        snprintf(expected, sizeof expected,
                 "card||!a: truncated record at 36: the file ends at %zu|", bytes);
        assert_records(file.data, bytes, expected);
    }
    free(file.data);
}

static void
a_damaged_length_ends_the_file(void **state)
{
    struct bytes file = three_records();

    (void)state;
    for (size_t place = 20; place < 32; place++) {
        file.data[place] ^= 0x40;
        assert_records(file.data, file.used,
                       "card|!a: corrupted record at 20: the checksum of its length is wrong (is "
                       "this a TFRecord file, with this compression_type?)|");
        file.data[place] ^= 0x40;
    }
    free(file.data);
}

static void
damaged_data_is_an_error_of_its_row_alone(void **state)
{
    struct bytes file = three_records();

    (void)state;
    file.data[13] ^= 1; /* data of the first */
    file.data[35] ^= 1; /* checksum of the second */
    for (int i = 0; i < 2; i++) {
        struct folder folder;
        struct pipeline pipeline;
        char *texts;

        folder_open(&folder);
        put_file(&folder, "a", file.data, file.used);
        assert_int_equal(pipeline_open(&pipeline, &folder, 0, "[tfrecord: a]"), TUNDISH_OK);
        texts = pipeline_texts(&pipeline, i == 0 ? 1 : 64);
        assert_non_null(strstr(texts, "a: corrupted record at 12: the checksum of its data"));
        assert_non_null(strstr(texts, "a: corrupted record at 32: the checksum of its data"));
        assert_non_null(strstr(texts, "|door|"));
        free(texts);
        pipeline_close(&pipeline);
        folder_close(&folder);
    }
    free(file.data);
}

static void
add_header(struct bytes *file, uint64_t length)
{
    uint32_t crc = tnd_crc32c_mask(tnd_crc32c(0, &length, 8));

    bytes_add(file, &length, 8);
    bytes_add(file, &crc, 4);
}

static void
a_huge_length_is_a_truncated_record(void **state)
{
    const uint64_t lengths[] = { 5,         UINT64_C(1) << 40, INT64_MAX - 12,  INT64_MAX - 1,
                                 INT64_MAX, UINT64_C(1) << 63, UINT64_MAX - 12, UINT64_MAX };

    (void)state;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        struct bytes file = three_records();

        add_header(&file, lengths[i]);
        bytes_add(&file, "some", 4);
        assert_records(file.data, file.used,
                       "card||door|!a: truncated record at 56: the file ends at 72|");
        assert_records(file.data + 56, file.used - 56,
                       "!a: truncated record at 0: the file ends at 16|");
        free(file.data);
    }
}

/* Longer than any batch may be, but in the file it is: a hole takes no room on the disk. */
static void
a_record_longer_than_a_batch_is_refused(void **state)
{
    struct folder folder;
    struct bytes file = { 0 };
    char path[128];

    (void)state;
    folder_open(&folder);
    add_header(&file, UINT64_C(1) << 33);
    put_file(&folder, "a", file.data, file.used);
    snprintf(path, sizeof path, "%s/a", folder.path);
    assert_int_equal(truncate(path, (INT64_C(1) << 33) + 16), 0);
    assert_texts(&folder, "[tfrecord: a]",
                 "!a: the record at 0 has 8589934592 bytes, more than the 2147483647 that a record "
                 "may have|");
    free(file.data);
    folder_close(&folder);
}

static void
records_of_all_sizes_survive_the_jumps_between_them(void **state)
{
    static uint8_t data[300000];
    struct folder folder;
    struct pipeline pipeline;
    struct bytes file = { 0 };
    uint32_t lengths[600];
    uint32_t seed = 1;
    struct source_files_stats stats;

    (void)state;
    folder_open(&folder);
    for (int i = 0; i < 600; i++) {
        seed = seed * 1664525 + 1013904223;
        lengths[i] = (seed >> 8) % (i % 50 < 25 ? 300 : 300000);
        memset(data, i, lengths[i]);
        add_record(&file, data, lengths[i]);
    }
    put_file(&folder, "a", file.data, file.used);
    for (uint32_t readers = 0; readers < 2; readers++) {
        assert_int_equal(
            pipeline_open(&pipeline, &folder, readers,
                          "[from_tensors: {value: a}, flat_map: {dataset: [tfrecord]}]"),
            TUNDISH_OK);
        for (int i = 0; i < 600; i++) {
            struct byte_view view;

            assert_int_equal(pipeline_next(&pipeline), ORDER_OK);
            view = text_at(&pipeline, 0, 0);
            assert_int_equal(view.size, lengths[i]);
            for (uint32_t k = 0; k < lengths[i]; k += 97)
                assert_int_equal(view.data[k], (uint8_t)i);
        }
        assert_int_equal(pipeline_next(&pipeline), ORDER_END);
        source_files_stats(pipeline.files, &stats);
        assert_true(stats.bytes_scanned < file.used / 4);
        pipeline_close(&pipeline);
    }
    free(file.data);
    folder_close(&folder);
}

TEST_FILE(test_source_tfrecord)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_come_whole),
        cmocka_unit_test(a_cut_anywhere_else_is_an_error_behind_the_whole_records),
        cmocka_unit_test(a_damaged_length_ends_the_file),
        cmocka_unit_test(damaged_data_is_an_error_of_its_row_alone),
        cmocka_unit_test(a_huge_length_is_a_truncated_record),
        cmocka_unit_test(a_record_longer_than_a_batch_is_refused),
        cmocka_unit_test(records_of_all_sizes_survive_the_jumps_between_them),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
