/* test_own_file.c - whose files and folders are taken. */
#include "unit/test_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "../remove_tree.h"
#include "core/own_file.h"

enum { STRANGER = 12345, FRIEND = 12346 };

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

static void
only_a_file_that_no_other_may_write_to_is_our_own(void **state)
{
    struct stat about = { .st_mode = S_IFREG | 0644, .st_uid = geteuid() };

    (void)state;
    assert_true(tnd_own_file_is_ours(&about));
    about.st_mode = S_IFREG | 0664;
    assert_false(tnd_own_file_is_ours(&about));
    about.st_mode = S_IFREG | 0602;
    assert_false(tnd_own_file_is_ours(&about));
    about.st_mode = S_IFLNK | 0600;
    assert_false(tnd_own_file_is_ours(&about));
    about.st_mode = S_IFREG | 0600;
    about.st_uid = geteuid() + 1;
    assert_false(tnd_own_file_is_ours(&about));
}

/* A file of `owner` in a folder of this user with `mode`. */
static bool
is_planted(mode_t mode, uid_t owner)
{
    const struct stat about = { .st_mode = S_IFREG | 0600, .st_uid = owner };
    char path[128];

    assert_int_equal(chmod(top, mode), 0);
    snprintf(path, sizeof path, "%s/file", top);
    return tnd_own_file_is_planted(path, &about);
}

static void
a_stranger_s_file_is_planted_where_every_user_may_write(void **state)
{
    (void)state;
    assert_true(is_planted(0777, STRANGER));
    assert_true(is_planted(01777, STRANGER));
    assert_false(is_planted(01777, geteuid()));
    assert_false(is_planted(01777, 0));
    assert_false(is_planted(0775, STRANGER)); /* of a team */
    assert_false(is_planted(0755, STRANGER));
    assert_int_equal(chmod(top, 0700), 0);
}

static void
what_belongs_to_the_owner_of_its_folder_is_not_planted(void **state)
{
    const struct stat about = { .st_mode = S_IFREG | 0600, .st_uid = FRIEND };
    char path[128];

    (void)state;
    snprintf(path, sizeof path, "%s/file", top);
    if (chown(top, FRIEND, FRIEND) != 0)
        skip(); /* only root may */
    assert_int_equal(chmod(top, 01777), 0);
    assert_false(tnd_own_file_is_planted(path, &about));
    assert_int_equal(chown(top, geteuid(), getegid()), 0);
    assert_int_equal(chmod(top, 0700), 0);
}

static void
a_name_without_a_folder_lies_in_this_one(void **state)
{
    const struct stat stranger = { .st_mode = S_IFREG | 0600, .st_uid = STRANGER };

    (void)state;
    assert_int_equal(chdir(top), 0);
    assert_int_equal(chmod(top, 01777), 0);
    assert_true(tnd_own_file_is_planted("file", &stranger));
    assert_int_equal(chmod(top, 0700), 0);
    assert_false(tnd_own_file_is_planted("file", &stranger));
    assert_int_equal(chdir("/"), 0);
}

TEST_FILE(test_own_file)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_a_file_that_no_other_may_write_to_is_our_own),
        cmocka_unit_test(a_stranger_s_file_is_planted_where_every_user_may_write),
        cmocka_unit_test(what_belongs_to_the_owner_of_its_folder_is_not_planted),
        cmocka_unit_test(a_name_without_a_folder_lies_in_this_one),
    };

    return cmocka_run_group_tests(tests, make_top, remove_top);
}
