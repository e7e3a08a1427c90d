/* test_mapped.c - a file that is cut short while it is mapped. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/mapped.h"
#include "core/status.h"
#include "unit/test_file.h"

enum { PAGES = 4 };

static struct tnd_mapped *
map_file(enum tnd_mapped_use use, char path[32], int *ret_file)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    struct tnd_mapped *mapped = NULL;
    char *bytes = malloc(PAGES * page);

    memset(bytes, 'x', PAGES * page);
    strcpy(path, "/tmp/tundish-test-XXXXXX");
    *ret_file = mkstemp(path);
    assert_true(*ret_file >= 0);
    assert_int_equal(write(*ret_file, bytes, PAGES * page), PAGES * page);
    assert_int_equal(tnd_mapped_open(*ret_file, PAGES * page, use, &mapped), TUNDISH_OK);
    free(bytes);
    return mapped;
}

static void
what_is_gone_reads_as_zeros_and_is_told(void **state)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char cut_path[32], whole_path[32];
    int cut_file, whole_file;
    struct tnd_mapped *cut = map_file(TND_MAPPED_READ, cut_path, &cut_file);
    struct tnd_mapped *whole = map_file(TND_MAPPED_READ, whole_path, &whole_file);
    const volatile char *bytes = tnd_mapped_bytes(cut);

    (void)state;
    assert_int_equal(bytes[2 * page], 'x');
    assert_int_equal(ftruncate(cut_file, (off_t)page), 0);
    assert_int_equal(bytes[0], 'x');
    assert_int_equal(tnd_mapped_check(), TUNDISH_OK); /* nothing was read that is gone */
    assert_int_equal(bytes[2 * page], 0);
    assert_int_equal(bytes[PAGES * page - 1], 0);
    assert_int_equal(bytes[page - 1], 'x');
    assert_true(tnd_mapped_is_cut(cut));
    assert_false(tnd_mapped_is_cut(whole));
    assert_int_equal(tnd_mapped_check(), TUNDISH_E_CORRUPT);
    assert_non_null(strstr(tnd_error_text(), cut_path));
    tnd_mapped_close(cut);
    assert_int_equal(tnd_mapped_check(), TUNDISH_OK);
    assert_int_equal(((const char *)tnd_mapped_bytes(whole))[2 * page], 'x');
    tnd_mapped_close(whole);
    close(cut_file);
    close(whole_file);
    unlink(cut_path);
    unlink(whole_path);
}

static void
what_is_written_behind_the_end_goes_nowhere(void **state)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char path[32];
    int file;
    struct tnd_mapped *mapped = map_file(TND_MAPPED_WRITE, path, &file);
    volatile char *bytes = tnd_mapped_bytes(mapped);

    (void)state;
    assert_int_equal(ftruncate(file, 0), 0);
    bytes[page] = 'y';
    bytes[0] = 'y';
    assert_int_equal(bytes[page], 'y');
    assert_true(tnd_mapped_is_cut(mapped));
    assert_int_equal(tnd_mapped_check(), TUNDISH_OK); /* that is of files that are read */
    tnd_mapped_close(mapped);
    close(file);
    unlink(path);
}

TEST_FILE(test_mapped)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_gone_reads_as_zeros_and_is_told),
        cmocka_unit_test(what_is_written_behind_the_end_goes_nowhere),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
