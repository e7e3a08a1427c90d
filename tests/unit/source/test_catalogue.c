/* test_catalogue.c - the files of all nodes as one list. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "source/files/catalogue.h"
#include "source/files/matching_files.h"
#include "unit/test_file.h"

static void
a_file_of_two_nodes_has_the_first_for_its_owner(void **state)
{
    struct catalogue catalogue = { 0 };
    const char *name = NULL;
    uint32_t owners[2];

    (void)state;
    catalogue_add(&catalogue, "b", 2, 2, false);
    catalogue_add(&catalogue, "a", 1, 1, true);
    catalogue_add(&catalogue, "a", 1, 0, false);
    catalogue_add(&catalogue, "a", 1, 0, false); /* found by two patterns */
    assert_int_equal(catalogue_finish(&catalogue, &name, owners), TUNDISH_OK);
    assert_int_equal(catalogue.count, 2);
    assert_int_equal(catalogue_find(&catalogue, "a")->owner, 0);
    assert_true(catalogue_find(&catalogue, "a")->is_here);
    assert_int_equal(catalogue_find(&catalogue, "b")->owner, 2);
    assert_false(catalogue_find(&catalogue, "b")->is_here);
    assert_null(catalogue_find(&catalogue, "c"));
    catalogue_close(&catalogue);
}

static void
unlike_files_by_one_name_are_refused(void **state)
{
    struct catalogue catalogue = { 0 };
    const char *name = NULL;
    uint32_t owners[2];

    (void)state;
    catalogue_add(&catalogue, "x", 1, 0, true);
    catalogue_add(&catalogue, "a", 1, 0, true);
    catalogue_add(&catalogue, "a", 2, 3, false);
    catalogue_add(&catalogue, "a", 1, 4, false);
    assert_int_equal(catalogue_finish(&catalogue, &name, owners), TUNDISH_E_ARGUMENT);
    assert_string_equal(name, "a");
    assert_int_equal(owners[0], 0);
    assert_int_equal(owners[1], 3);
    assert_false(catalogue.is_made);
    catalogue_close(&catalogue);
}

static void
patterns_match_names_as_they_match_paths(void **state)
{
    const char *patterns[] = { "data/*.txt", "data/a?.txt" };
    const char *const names[] = { "data/b.txt", "data/a1.txt", "data/.c.txt", "data/x/a2.txt",
                                  "a3.txt" };
    struct catalogue catalogue = { 0 };
    struct matching_files list = { 0 };
    const char *name = NULL;
    uint32_t owners[2];

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        catalogue_add(&catalogue, names[i], i, (uint32_t)i, false);
    assert_int_equal(catalogue_finish(&catalogue, &name, owners), TUNDISH_OK);
    catalogue_glob(&catalogue, patterns, 2, &list);
    assert_int_equal(list.count, 4);
    assert_string_equal(list.paths[0], "data/.c.txt");
    assert_string_equal(list.paths[1], "data/a1.txt");
    assert_string_equal(list.paths[2], "data/a1.txt");
    assert_string_equal(list.paths[3], "data/b.txt");
    matching_files_close(&list);
    catalogue_close(&catalogue);
}

static void
no_files_at_all_are_found_by_nobody(void **state)
{
    const char *pattern = "*";
    struct catalogue catalogue = { 0 };
    struct matching_files list = { 0 };
    const char *name = NULL;
    uint32_t owners[2];

    (void)state;
    assert_int_equal(catalogue_finish(&catalogue, &name, owners), TUNDISH_OK);
    assert_true(catalogue.is_made);
    assert_null(catalogue_find(&catalogue, "a"));
    catalogue_glob(&catalogue, &pattern, 1, &list);
    assert_int_equal(list.count, 0);
    matching_files_close(&list);
    catalogue_close(&catalogue);
}

static void
files_at_urls_are_dealt_by_turns_and_no_others(void **state)
{
    static const char *const names[] = { "s3://b/2", "s3://b/0", "own.txt", "s3://b/1" };
    struct catalogue catalogue = { 0 };
    const char *name = NULL;
    uint32_t owners[2];

    (void)state;
    for (int i = 0; i < 4; i++)
        catalogue_add(&catalogue, names[i], 7, 0, true);
    assert_int_equal(catalogue_finish(&catalogue, &name, owners), TUNDISH_OK);
    catalogue_deal_urls(&catalogue, 2, 1);
    assert_int_equal(catalogue_find(&catalogue, "s3://b/0")->owner, 0);
    assert_int_equal(catalogue_find(&catalogue, "s3://b/1")->owner, 1);
    assert_int_equal(catalogue_find(&catalogue, "s3://b/2")->owner, 0);
    assert_false(catalogue_find(&catalogue, "s3://b/0")->is_here);
    assert_true(catalogue_find(&catalogue, "s3://b/1")->is_here);
    assert_true(catalogue_find(&catalogue, "own.txt")->is_here);
    catalogue_close(&catalogue);
}

TEST_FILE(test_catalogue)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_of_two_nodes_has_the_first_for_its_owner),
        cmocka_unit_test(unlike_files_by_one_name_are_refused),
        cmocka_unit_test(patterns_match_names_as_they_match_paths),
        cmocka_unit_test(no_files_at_all_are_found_by_nobody),
        cmocka_unit_test(files_at_urls_are_dealt_by_turns_and_no_others),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
