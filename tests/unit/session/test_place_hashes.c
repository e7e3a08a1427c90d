/* test_place_hashes.c - hashes of files' bytes are kept, and believed only of files as they were.
 */
#include "unit/source/source_fixture.h"

#include <dirent.h>
#include <fcntl.h>

#include "core/crc32c.h"
#include "session/checkpoint/place_hashes.h"
#include "unit/source/file_clock.h"
#include "unit/test_file.h"

/* Eight large files are as many reads as are worth keeping. */
enum { FILES = 8, FILE_BYTES = 300000, KEY = 77 };
enum { HEADER_BYTES = 24, CRC_AT = 12, HASH_AT = HEADER_BYTES + 40, KEPT_BYTES = 48 };

static struct folder folder;
static uint64_t hashes[FILES];

static void
path_of(int number, char path[300])
{
    snprintf(path, 300, "%s/%d", folder.path, number);
}

static void
write_file(int number, uint8_t first)
{
    uint8_t *bytes = malloc(FILE_BYTES);
    char path[300], name[8];

    for (int i = 0; i < FILE_BYTES; i++)
        bytes[i] = (uint8_t)(i * (number + 3) >> 7);
    bytes[0] = first;
    snprintf(name, sizeof name, "%d", number);
    put_file(&folder, name, bytes, FILE_BYTES);
    free(bytes);
    path_of(number, path);
    assert_int_equal(stat(path, &written), 0);
}

/* As a start finds them. */
static void
look(int count, uint64_t *ret_hashes)
{
    struct place_hashes *all = place_hashes_open(folder.cache, KEY, (uint32_t)count);
    char path[300];
    bool is_here;

    for (int i = 0; i < count; i++) {
        path_of(i, path);
        ret_hashes[i] = place_hashes_of(all, (uint32_t)i, AT_FDCWD, path, &is_here);
        assert_true(is_here);
    }
    place_hashes_close(all);
}

/* What is kept, open to be changed; -1: nothing is. */
static int
open_kept(void)
{
    DIR *entries = opendir(folder.cache);
    struct dirent *entry;
    int kept = -1;

    while (entries != NULL && (entry = readdir(entries)) != NULL)
        if (strstr(entry->d_name, ".hashes") != NULL)
            kept = openat(dirfd(entries), entry->d_name, O_RDWR | O_CLOEXEC);
    if (entries != NULL)
        closedir(entries);
    return kept;
}

static int
begin(void **state)
{

    (void)state;
    folder_open(&folder);
    tnd_clock_install(&file_clock);
    age_ns = OLD_NS;
    for (int i = 0; i < FILES; i++)
        write_file(i, 1);
    return 0;
}

static int
end(void **state)
{
    (void)state;
    tnd_clock_install(NULL);
    folder_close(&folder);
    return 0;
}

/* Nothing is read again: another hash that is kept is believed. */
static void
what_is_kept_is_believed(void **state)
{
    uint8_t bytes[FILES * KEPT_BYTES + HEADER_BYTES];
    uint64_t again[FILES], altered = 99;
    uint32_t crc;
    int kept, found = 0;

    (void)state;
    look(FILES, hashes);
    look(FILES, again);
    assert_memory_equal(again, hashes, sizeof hashes);
    kept = open_kept();
    assert_int_equal(pread(kept, bytes, sizeof bytes, 0), sizeof bytes);
    memcpy(bytes + HASH_AT, &altered, sizeof altered);
    crc = tnd_crc32c(0, bytes + HEADER_BYTES, sizeof bytes - HEADER_BYTES);
    memcpy(bytes + CRC_AT, &crc, sizeof crc);
    assert_int_equal(pwrite(kept, bytes, sizeof bytes, 0), sizeof bytes);
    close(kept);
    look(FILES, again);
    for (int i = 0; i < FILES; i++)
        found += again[i] == altered;
    assert_int_equal(found, 1);
}

/* Also if it is as long, and the time of its modification was set back. */
static void
a_changed_file_is_read_again(void **state)
{
    uint64_t again[FILES];
    char path[300];

    (void)state;
    look(FILES, hashes);
    path_of(5, path);
    assert_int_equal(stat(path, &written), 0);
    const struct timespec times[2] = { written.st_atim, written.st_mtim };
    write_file(5, 2);
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
    look(FILES, again);
    for (int i = 0; i < FILES; i++)
        if (i == 5)
            assert_int_not_equal(again[i], hashes[i]);
        else
            assert_int_equal(again[i], hashes[i]);
}

static void
those_of_young_files_are_not_kept(void **state)
{
    (void)state;
    age_ns = YOUNG_NS;
    look(FILES, hashes);
    assert_int_equal(open_kept(), -1);
}

static void
few_are_not_kept(void **state)
{
    (void)state;
    look(FILES - 1, hashes);
    assert_int_equal(open_kept(), -1);
}

static void
what_is_damaged_is_not_believed(void **state)
{
    uint64_t again[1];
    struct stat about;
    int kept;

    (void)state;
    look(FILES, hashes);
    kept = open_kept();
    assert_int_equal(fstat(kept, &about), 0);
    assert_int_equal(about.st_size, HEADER_BYTES + FILES * KEPT_BYTES);
    for (off_t i = 0; i < about.st_size; i++) {
        uint8_t byte;

        assert_int_equal(pread(kept, &byte, 1, i), 1);
        byte ^= 0x20;
        assert_int_equal(pwrite(kept, &byte, 1, i), 1);
        look(1, again);
        assert_int_equal(again[0], hashes[0]);
        byte ^= 0x20;
        assert_int_equal(pwrite(kept, &byte, 1, i), 1);
    }
    assert_int_equal(ftruncate(kept, about.st_size - 1), 0);
    look(1, again);
    assert_int_equal(again[0], hashes[0]);
    assert_int_equal(ftruncate(kept, 5), 0);
    look(1, again);
    assert_int_equal(again[0], hashes[0]);
    close(kept);
}

static void
a_missing_file_is_not_here(void **state)
{
    struct place_hashes *all = place_hashes_open(folder.cache, KEY, 1);
    char path[300];
    bool is_here = true;

    (void)state;
    path_of(FILES, path);
    (void)place_hashes_of(all, 0, AT_FDCWD, path, &is_here);
    assert_false(is_here);
    place_hashes_close(all);
}

#define WITH_FILES(test) cmocka_unit_test_setup_teardown(test, begin, end)

TEST_FILE(test_place_hashes)
{
    const struct CMUnitTest tests[] = {
        WITH_FILES(what_is_kept_is_believed),          WITH_FILES(a_changed_file_is_read_again),
        WITH_FILES(those_of_young_files_are_not_kept), WITH_FILES(few_are_not_kept),
        WITH_FILES(what_is_damaged_is_not_believed),   WITH_FILES(a_missing_file_is_not_here),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
