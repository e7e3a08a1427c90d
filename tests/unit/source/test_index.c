/* test_index.c - indexes in the cache folder: found again, shared, and never believed. */
#include "source_fixture.h"

#include <dirent.h>
#include <sys/wait.h>

#include "core/status.h"
#include "source/files/files_private.h"
#include "source/scan/index.h"
#include "source/scan/scan.h"
#include "unit/source/file_clock.h"
#include "unit/test_file.h"

/* From now on it is `age` after the last change of the file. */
static void
set_age(const struct folder *folder, int64_t age)
{
    char path[256];

    snprintf(path, sizeof path, "%s/a", folder->path);
    assert_int_equal(stat(path, &written), 0);
    age_ns = age;
    tnd_clock_install(&file_clock);
}

static int
put_clock_back(void **state)
{
    (void)state;
    tnd_clock_install(NULL);
    return 0;
}

/* A file of records that is old enough for its index to be kept. */
static void
make_file(struct folder *folder)
{
    struct bytes file = { 0 };
    char data[64];

    folder_open(folder);
    for (int i = 0; i < 40000; i++) {
        memset(data, i, sizeof data);
        add_record(&file, data, (uint64_t)(i % 60));
    }
    put_file(folder, "a", file.data, file.used);
    free(file.data);
    set_age(folder, OLD_NS);
}

static struct source_files *
open_files(const struct folder *folder, uint32_t reader_count)
{
    struct source_files_options options = { .root = folder->path,
                                            .cache_folder = folder->cache,
                                            .reader_count = reader_count };
    struct source_files *files;

    assert_int_equal(source_files_open(&options, &files), TUNDISH_OK);
    return files;
}

/* All references of the file, and whether the cache had them. */
static struct bytes
all_references(const struct folder *folder, uint32_t reader_count, bool *ret_hit)
{
    const struct record_format format = { .scanner = &scanner_tfrecord };
    struct source_files *files = open_files(folder, reader_count);
    struct source_file *file = files_enter(files, "a", 1, &format);
    struct source_files_stats stats;
    struct scan_cursor cursor;
    struct bytes all = { 0 };
    uint64_t words[200];
    size_t count;

    scan_cursor_open(&cursor, file, NULL);
    while (scan_cursor_next(&cursor, words, 100, &count) == ORDER_OK)
        bytes_add(&all, words, count * 16);
    scan_cursor_close(&cursor);
    source_files_stats(files, &stats);
    *ret_hit = stats.index_hits > 0;
    source_files_close(files);
    return all;
}

static void
index_path(const struct folder *folder, char *path, size_t bytes)
{
    DIR *entries = opendir(folder->cache);
    struct dirent *entry;

    path[0] = '\0';
    while ((entry = readdir(entries)) != NULL)
        if (strstr(entry->d_name, ".index") != NULL && strstr(entry->d_name, "building") == NULL)
            snprintf(path, bytes, "%s/%s", folder->cache, entry->d_name);
    closedir(entries);
}

static void
a_second_start_needs_no_scan(void **state)
{
    struct folder folder;
    struct bytes first, second;
    bool hit;

    (void)state;
    make_file(&folder);
    first = all_references(&folder, 0, &hit);
    assert_false(hit);
    assert_int_equal(first.used, 40000 * 16);
    second = all_references(&folder, 2, &hit);
    assert_true(hit);
    assert_int_equal(second.used, first.used);
    assert_memory_equal(second.data, first.data, first.used);
    free(first.data);
    free(second.data);
    folder_close(&folder);
}

static bool
is_hit(const struct folder *folder)
{
    bool hit;

    free(all_references(folder, 0, &hit).data);
    return hit;
}

static void
a_young_file_is_scanned_again(void **state)
{
    struct folder folder;
    char path[256];

    (void)state;
    make_file(&folder);
    assert_false(is_hit(&folder));
    snprintf(path, sizeof path, "%s/a", folder.path);
    assert_int_equal(chmod(path, 0640), 0); /* changes its time of change */
    set_age(&folder, YOUNG_NS);
    assert_false(is_hit(&folder));
    assert_false(is_hit(&folder));
    set_age(&folder, OLD_NS);
    assert_false(is_hit(&folder));
    assert_true(is_hit(&folder));
    folder_close(&folder);
}

static void
a_changed_byte_anywhere_makes_the_index_worthless(void **state)
{
    struct folder folder;
    struct bytes first, second;
    char path[512];
    struct stat about;
    bool hit;

    (void)state;
    make_file(&folder);
    first = all_references(&folder, 0, &hit);
    index_path(&folder, path, sizeof path);
    assert_int_equal(stat(path, &about), 0);
    for (int64_t place = 0; place < about.st_size; place += place < 400 ? 13 : 40009) {
        int file = open(path, O_RDWR);
        uint8_t byte;

        assert_true(file >= 0);
        assert_int_equal(pread(file, &byte, 1, place), 1);
        byte ^= 0x10;
        assert_int_equal(pwrite(file, &byte, 1, place), 1);
        close(file);
        second = all_references(&folder, 0, &hit); /* scans, and mends it */
        assert_false(hit);
        assert_int_equal(second.used, first.used);
        assert_memory_equal(second.data, first.data, first.used);
        free(second.data);
    }
    assert_int_equal(truncate(path, about.st_size - 1), 0);
    second = all_references(&folder, 0, &hit);
    assert_false(hit);
    free(second.data);
    free(first.data);
    folder_close(&folder);
}

/* What is checked when an index is read, with checksums that somebody has made right again. */
static void
a_forged_index_gives_no_record_outside_of_the_file(void **state)
{
    struct folder folder;
    struct bytes first;
    char path[512];
    struct stat about;
    uint8_t *data;
    struct record_list list;
    struct index_key key = { 0 };
    struct record_reader reader;
    uint64_t words[128];
    size_t count;
    bool hit;
    int file;

    (void)state;
    make_file(&folder);
    first = all_references(&folder, 0, &hit);
    index_path(&folder, path, sizeof path);
    assert_int_equal(stat(path, &about), 0);
    data = tnd_alloc((size_t)about.st_size);
    file = open(path, O_RDONLY);
    assert_int_equal(read(file, data, (size_t)about.st_size), about.st_size);
    close(file);
    memcpy(&key.identity, data + 24, sizeof key.identity);
    key.path = (const char *)data + 152;
    key.format.scanner = &scanner_tfrecord;
    assert_int_equal(index_read(data, (size_t)about.st_size, &key, &list), TUNDISH_OK);
    assert_int_equal(list.count, 40000);

    memset((uint8_t *)(uintptr_t)list.bytes, 0xFF, list.byte_count);
    assert_true(record_list_seek(&list, 0, &reader));
    assert_false(record_reader_next(&reader, 0, words, 64, &count));
    memset((uint8_t *)(uintptr_t)list.bytes, 0x7E, list.byte_count); /* 63 bytes each */
    ((struct record_group *)(uintptr_t)list.groups)[1].end = list.end_limit - 60;
    assert_true(record_list_seek(&list, 64, &reader));
    assert_false(record_reader_next(&reader, 0, words, 64, &count));
    ((struct record_group *)(uintptr_t)list.groups)[1].end = UINT64_MAX;
    assert_false(record_list_seek(&list, 64, &reader));
    ((struct record_group *)(uintptr_t)list.groups)[2].position = list.byte_count + 1;
    assert_false(record_list_seek(&list, 130, &reader));
    free(data);
    free(first.data);
    folder_close(&folder);
}

static void
two_processes_share_the_cache(void **state)
{
    struct folder folder;
    struct bytes here;
    bool hit;

    (void)state;
    make_file(&folder);
    for (int round = 0; round < 3; round++) {
        pid_t child = fork();
        int result;

        assert_true(child >= 0);
        here = all_references(&folder, 1, &hit);
        if (child == 0)
            _exit(here.used == 40000 * 16 ? 0 : 1);
        assert_int_equal(here.used, 40000 * 16);
        free(here.data);
        assert_int_equal(waitpid(child, &result, 0), child);
        assert_int_equal(result, 0);
    }
    folder_close(&folder);
}

static void
count_calls(void *context, uint64_t bytes_done)
{
    uint64_t *last = context;

    assert_true(bytes_done >= *last);
    *last = bytes_done;
}

static void
the_index_command_scans_once_and_says_what_it_found(void **state)
{
    struct folder folder;
    struct source_index first, second;

    (void)state;
    make_file(&folder);
    for (int i = 0; i < 2; i++) {
        struct source_files *files = open_files(&folder, 1);
        uint64_t last = 0;

        assert_int_equal(source_index_build(files, "a", "tfrecord", count_calls, &last,
                                            i == 0 ? &first : &second),
                         TUNDISH_OK);
        assert_int_equal(source_index_build(files, "a", "jpeg", NULL, NULL, &first),
                         TUNDISH_E_ARGUMENT);
        assert_int_equal(source_index_build(files, "a", "text_line", NULL, NULL, &first),
                         TUNDISH_OK);
        assert_int_equal(source_index_build(files, "a", "tfrecord", NULL, NULL, &first),
                         TUNDISH_OK);
        source_files_close(files);
    }
    assert_int_equal(first.record_count, 40000);
    assert_true(first.is_kept);
    assert_int_equal(first.hash, second.hash);
    folder_close(&folder);
}

static tundish_status
build_in(const struct folder *folder)
{
    struct source_files *files = open_files(folder, 0);
    struct source_index found;
    tundish_status status = source_index_build(files, "a", "tfrecord", NULL, NULL, &found);

    source_files_close(files);
    return status;
}

static void
the_index_command_fails_where_the_index_cannot_be_saved(void **state)
{
    struct folder folder;
    char path[512];

    (void)state;
    make_file(&folder);
    assert_int_equal(build_in(&folder), TUNDISH_OK);
    index_path(&folder, path, sizeof path);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0700), 0); /* it is in the way */
    assert_int_equal(build_in(&folder), TUNDISH_E_SYSTEM);
    assert_non_null(strstr(tnd_error_text(), "cannot save the index of a: "));
    assert_int_equal(remove_tree(folder.cache), 0);
    put_file(&folder, "cache", "no folder", 9);
    assert_int_equal(build_in(&folder), TUNDISH_E_SYSTEM);
    assert_non_null(strstr(tnd_error_text(), "cache folder"));
    folder_close(&folder);
}

/* The bytes of the index that a folder's cache has of its file. */
static struct bytes
exported_index(const struct folder *folder)
{
    struct source_files *files = open_files(folder, 0);
    struct bytes index = { 0 };

    assert_int_equal(source_index_export(files, "a", "tfrecord", &index.data, &index.used),
                     TUNDISH_OK);
    source_files_close(files);
    return index;
}

/* A file that another machine calls by the same name. */
static struct source_files *
open_elsewhere(struct folder *folder, const struct bytes *data)
{
    folder_open(folder);
    put_file(folder, "a", data->data, data->used);
    return open_files(folder, 0);
}

static struct bytes
whole_file(const struct folder *folder)
{
    struct bytes bytes = { 0 };
    char path[256];
    struct stat about;
    int file;

    snprintf(path, sizeof path, "%s/a", folder->path);
    assert_int_equal(stat(path, &about), 0);
    bytes.used = (size_t)about.st_size;
    bytes.data = tnd_alloc(bytes.used);
    file = open(path, O_RDONLY);
    assert_int_equal(read(file, bytes.data, bytes.used), about.st_size);
    close(file);
    return bytes;
}

static void
expect_foreign(struct source_files *files, const struct record_format *format,
               const struct bytes *index, tundish_status expected, const char *words)
{
    struct source_file *file = files_enter(files, "a", 1, format);
    struct record_list list = { .count = 7 };
    /* An exact copy, so that reading past it is seen. */
    uint8_t *bytes = tnd_alloc(index->used);
    int descriptor;

    assert_int_equal(file_open(file, &descriptor), TUNDISH_OK); /* learns its size */
    close(descriptor);
    memcpy(bytes, index->data, index->used);
    assert_int_equal(index_read_foreign(bytes, index->used, file, &list), expected);
    assert_int_equal(list.count, expected == TUNDISH_OK ? 40000 : 7);
    if (words != NULL)
        assert_non_null(strstr(tnd_error_text(), words));
    free(bytes);
}

static void
an_index_of_another_machine_is_taken_only_if_it_fits(void **state)
{
    const struct record_format format = { .scanner = &scanner_tfrecord };
    const struct record_format other = { .scanner = &scanner_text_line };
    const uint32_t endless = UINT32_MAX - 7;
    struct folder folder, elsewhere;
    struct source_files *files;
    struct source_index built;
    struct bytes index, data, wrong;

    (void)state;
    make_file(&folder);
    files = open_files(&folder, 1);
    assert_int_equal(source_index_build(files, "a", "tfrecord", NULL, NULL, &built), TUNDISH_OK);
    source_files_close(files);
    index = exported_index(&folder);
    data = whole_file(&folder);

    files = open_elsewhere(&elsewhere, &data);
    expect_foreign(files, &format, &index, TUNDISH_OK, NULL);
    expect_foreign(files, &other, &index, TUNDISH_E_DATA, "another file");
    for (wrong = index; wrong.used > 0;
         wrong.used = wrong.used > 200 ? wrong.used / 2 : wrong.used - 1)
        if (wrong.used != index.used)
            expect_foreign(files, &format, &wrong, TUNDISH_E_CORRUPT, NULL);
    wrong = (struct bytes){ .data = tnd_alloc(index.used), .used = index.used };
    for (size_t i = 0; i < index.used; i += i < 400 ? 1 : 997) {
        memcpy(wrong.data, index.data, index.used);
        wrong.data[i] ^= 0x10;
        /* What it says of its file's size is compared first, the rest by checksums. */
        expect_foreign(files, &format, &wrong,
                       i >= 40 && i < 48 ? TUNDISH_E_DATA : TUNDISH_E_CORRUPT, NULL);
    }
    memcpy(wrong.data, index.data, index.used);
    memcpy(wrong.data + 144, &endless, sizeof endless);
    expect_foreign(files, &format, &wrong, TUNDISH_E_CORRUPT, "another length");
    assert_int_equal(source_index_import(files, "a", "tfrecord", wrong.data, wrong.used),
                     TUNDISH_E_CORRUPT);
    assert_non_null(strstr(tnd_error_text(), "another node's index of a"));
    source_files_close(files);
    folder_close(&elsewhere);

    data.used--;
    files = open_elsewhere(&elsewhere, &data);
    expect_foreign(files, &format, &index, TUNDISH_E_DATA, "another size than a");
    source_files_close(files);
    folder_close(&elsewhere);
    free(wrong.data);
    free(index.data);
    free(data.data);
    folder_close(&folder);
}

TEST_FILE(test_index)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_second_start_needs_no_scan, put_clock_back),
        cmocka_unit_test_teardown(a_young_file_is_scanned_again, put_clock_back),
        cmocka_unit_test_teardown(the_index_command_fails_where_the_index_cannot_be_saved,
                                  put_clock_back),
        cmocka_unit_test_teardown(a_changed_byte_anywhere_makes_the_index_worthless,
                                  put_clock_back),
        cmocka_unit_test_teardown(a_forged_index_gives_no_record_outside_of_the_file,
                                  put_clock_back),
        cmocka_unit_test_teardown(two_processes_share_the_cache, put_clock_back),
        cmocka_unit_test_teardown(the_index_command_scans_once_and_says_what_it_found,
                                  put_clock_back),
        cmocka_unit_test_teardown(an_index_of_another_machine_is_taken_only_if_it_fits,
                                  put_clock_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
