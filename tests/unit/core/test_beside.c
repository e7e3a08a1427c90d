/* test_beside.c - a file beside the program has its folder, whatever the current one is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "core/beside.h"
#include "unit/test_file.h"

static void
it_is_in_the_folder_of_the_program(void **state)
{
    char path[PATH_MAX], program[PATH_MAX];
    size_t folder_bytes;

    (void)state;
    assert_non_null(realpath("/proc/self/exe", program));
    folder_bytes = (size_t)(strrchr(program, '/') + 1 - program);
    assert_true(tnd_beside_program("a file", path));
    assert_memory_equal(path, program, folder_bytes);
    assert_string_equal(path + folder_bytes, "a file");
}

static void
a_name_that_is_too_long_is_none(void **state)
{
    char name[PATH_MAX], path[PATH_MAX] = "as it was";

    (void)state;
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    assert_false(tnd_beside_program(name, path));
    assert_string_equal(path, "as it was");
}

TEST_FILE(test_beside)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_in_the_folder_of_the_program),
        cmocka_unit_test(a_name_that_is_too_long_is_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
