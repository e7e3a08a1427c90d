/* test_cache_folder.c - which folders are refused, and that files appear whole or not at all. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "../remove_tree.h"
#include "core/cache_folder.h"
#include "core/status.h"
#include "unit/test_file.h"

static char top[] = "/tmp/tundish-test-XXXXXX";

static int
make_top(void **state)
{
    (void)state;
    return mkdtemp(top) == NULL;
}

static int
remove_top(void **state)
{
    (void)state;
    return remove_tree(top);
}

static int
open_folder(const char *name)
{
    char path[256];
    int folder;

    snprintf(path, sizeof path, "%s/%s", top, name);
    assert_int_equal(tnd_cache_folder_open(path, &folder), TUNDISH_OK);
    return folder;
}

static void
a_missing_folder_is_made_for_the_user_alone(void **state)
{
    int folder = open_folder("made/with/parents");
    struct stat about;

    (void)state;
    assert_int_equal(fstat(folder, &about), 0);
    assert_int_equal(about.st_mode & 07777, 0700);
    close(folder);
}

static void
a_folder_that_others_can_write_to_is_refused(void **state)
{
    static const mode_t modes[] = { 0775, 0757, 0777, 01777, 02770 };
    char path[256], mode[16];
    int folder = -7;

    (void)state;
    snprintf(path, sizeof path, "%s/open", top);
    assert_int_equal(mkdir(path, 0700), 0);
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        assert_int_equal(chmod(path, modes[i]), 0);
        assert_int_equal(tnd_cache_folder_open(path, &folder), TUNDISH_E_SYSTEM);
        assert_int_equal(folder, -7);
        snprintf(mode, sizeof mode, "%04o", modes[i]);
        assert_non_null(strstr(tnd_error_text(), path));
        assert_non_null(strstr(tnd_error_text(), mode));
        assert_non_null(strstr(tnd_error_text(), "TUNDISH_CACHE"));
    }
}

static void
a_folder_that_others_can_only_look_into_is_taken(void **state)
{
    static const mode_t modes[] = { 0755, 0750, 02755, 0711, 0700 };
    char path[256];
    int folder;

    (void)state;
    snprintf(path, sizeof path, "%s/visible", top);
    assert_int_equal(mkdir(path, 0700), 0);
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        assert_int_equal(chmod(path, modes[i]), 0);
        assert_int_equal(tnd_cache_folder_open(path, &folder), TUNDISH_OK);
        close(folder);
    }
}

/* Its writer has it open, and could go on after it is published. */
static void
a_building_file_of_someone_else_is_not_built_in(void **state)
{
    int folder = open_folder("planted");
    int planted = openat(folder, "x.building", O_CREAT | O_RDWR, 0666);
    struct tnd_cache_build build;
    struct stat before, after;

    (void)state;
    assert_true(planted >= 0);
    assert_int_equal(fchmod(planted, 0666), 0);
    assert_int_equal(fstat(planted, &before), 0);
    assert_int_equal(tnd_cache_build_begin(folder, "x", &build), TUNDISH_OK);
    assert_int_equal(fstat(build.file, &after), 0);
    assert_true(before.st_ino != after.st_ino);
    assert_int_equal(after.st_mode & 07777, 0600);
    tnd_cache_build_cancel(&build);
    close(planted);
    close(folder);
}

static void
a_folder_of_someone_else_is_refused(void **state)
{
    int folder;

    (void)state;
    folder = open_folder("foreign");
    if (fchown(folder, 12345, 12345) != 0)
        skip(); /* only root may, and not everywhere */
    close(folder);
    {
        char path[256];

        snprintf(path, sizeof path, "%s/foreign", top);
        assert_int_equal(tnd_cache_folder_open(path, &folder), TUNDISH_E_SYSTEM);
        assert_non_null(strstr(tnd_error_text(), "12345"));
    }
}

static void
the_environment_names_the_folder(void **state)
{
    char path[256], expected[300];
    int folder;

    (void)state;
    snprintf(path, sizeof path, "%s/env", top);
    setenv("TUNDISH_CACHE", path, 1);
    assert_int_equal(tnd_cache_folder_open(NULL, &folder), TUNDISH_OK);
    close(folder);
    assert_int_equal(access(path, X_OK), 0);
    unsetenv("TUNDISH_CACHE");
    setenv("XDG_CACHE_HOME", path, 1);
    assert_int_equal(tnd_cache_folder_open(NULL, &folder), TUNDISH_OK);
    close(folder);
    snprintf(expected, sizeof expected, "%s/tundish", path);
    assert_int_equal(access(expected, X_OK), 0);
    unsetenv("XDG_CACHE_HOME");
    setenv("HOME", path, 1);
    assert_int_equal(tnd_cache_folder_open(NULL, &folder), TUNDISH_OK);
    close(folder);
    snprintf(expected, sizeof expected, "%s/.cache/tundish", path);
    assert_int_equal(access(expected, X_OK), 0);
}

static void
a_file_is_there_only_after_publish(void **state)
{
    int folder = open_folder("publish");
    struct tnd_cache_build build;
    char text[8] = "";
    int file;

    (void)state;
    assert_int_equal(tnd_cache_build_begin(folder, "x", &build), TUNDISH_OK);
    assert_int_equal(tnd_cache_build_write(&build, "whole", 5), TUNDISH_OK);
    assert_int_not_equal(faccessat(folder, "x", F_OK, 0), 0);
    assert_int_equal(tnd_cache_build_publish(&build, &file), TUNDISH_OK);
    assert_int_equal(pread(file, text, 8, 0), 5);
    assert_string_equal(text, "whole");
    close(file);
    assert_int_equal(faccessat(folder, "x", F_OK, 0), 0);
    assert_int_not_equal(faccessat(folder, "x.building", F_OK, 0), 0);
    tnd_cache_build_cancel(&build);
    close(folder);
}

static void
a_cancelled_build_leaves_the_old_file(void **state)
{
    int folder = open_folder("cancel");
    struct tnd_cache_build build;
    struct stat about;

    (void)state;
    assert_int_equal(tnd_cache_build_begin(folder, "x", &build), TUNDISH_OK);
    assert_int_equal(tnd_cache_build_write(&build, "old", 3), TUNDISH_OK);
    assert_int_equal(tnd_cache_build_publish(&build, NULL), TUNDISH_OK);
    assert_int_equal(tnd_cache_build_begin(folder, "x", &build), TUNDISH_OK);
    assert_int_equal(tnd_cache_build_write(&build, "newer", 5), TUNDISH_OK);
    tnd_cache_build_cancel(&build);
    assert_int_equal(fstatat(folder, "x", &about, 0), 0);
    assert_int_equal(about.st_size, 3);
    assert_int_not_equal(faccessat(folder, "x.building", F_OK, 0), 0);
    close(folder);
}

/* Each process adds one to a number in the file; none may be lost. */
static void
builders_take_turns(void **state)
{
    enum { processes = 8, rounds = 20 };
    int folder = open_folder("turns");
    int number = 0;
    int file;

    (void)state;
    for (int p = 0; p < processes; p++)
        if (fork() == 0) {
            for (int r = 0; r < rounds; r++) {
                struct tnd_cache_build build;

                if (tnd_cache_build_begin(folder, "n", &build) != TUNDISH_OK)
                    _exit(1);
                number = 0;
                file = openat(folder, "n", O_RDONLY);
                if (file >= 0 && read(file, &number, sizeof number) != sizeof number)
                    _exit(2);
                close(file);
                number++;
                if (r % 3 == 2)
                    tnd_cache_build_cancel(&build);
                else if (tnd_cache_build_write(&build, &number, sizeof number) != TUNDISH_OK ||
                         tnd_cache_build_publish(&build, NULL) != TUNDISH_OK)
                    _exit(3);
            }
            _exit(0);
        }
    for (int p = 0; p < processes; p++) {
        int result;

        assert_true(wait(&result) > 0);
        assert_int_equal(result, 0);
    }
    file = openat(folder, "n", O_RDONLY);
    assert_int_equal(read(file, &number, sizeof number), sizeof number);
    assert_int_equal(number, processes * (rounds - rounds / 3));
    close(file);
    close(folder);
}

/* A limit on file size stands in for a full disk. */
static void
a_write_that_does_not_fit_is_told_with_a_remedy(void **state)
{
    int folder = open_folder("full");
    struct rlimit before, tight = { 4096, RLIM_INFINITY };
    struct tnd_cache_build build;
    char data[8192] = "";

    (void)state;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    tight.rlim_max = before.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
    assert_int_equal(tnd_cache_build_begin(folder, "big", &build), TUNDISH_OK);
    assert_int_equal(tnd_cache_build_write(&build, data, sizeof data), TUNDISH_E_SYSTEM);
    tnd_cache_build_cancel(&build);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_non_null(strstr(tnd_error_text(), "big"));
    assert_non_null(strstr(tnd_error_text(), "TUNDISH_CACHE"));
    assert_int_not_equal(faccessat(folder, "big.building", F_OK, 0), 0);
    close(folder);
}

TEST_FILE(test_cache_folder)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_missing_folder_is_made_for_the_user_alone),
        cmocka_unit_test(a_folder_that_others_can_write_to_is_refused),
        cmocka_unit_test(a_folder_that_others_can_only_look_into_is_taken),
        cmocka_unit_test(a_building_file_of_someone_else_is_not_built_in),
        cmocka_unit_test(a_folder_of_someone_else_is_refused),
        cmocka_unit_test(the_environment_names_the_folder),
        cmocka_unit_test(a_file_is_there_only_after_publish),
        cmocka_unit_test(a_cancelled_build_leaves_the_old_file),
        cmocka_unit_test(builders_take_turns),
        cmocka_unit_test(a_write_that_does_not_fit_is_told_with_a_remedy),
    };

    return cmocka_run_group_tests(tests, make_top, remove_top);
}
