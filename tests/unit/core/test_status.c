/* test_status.c - explanations are kept per thread and built up from the inside out. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/status.h"
#include "unit/test_file.h"

static void
fail_while_puts_the_outer_action_first(void **state)
{
    (void)state;
    assert_int_equal(tnd_fail(TUNDISH_E_DATA, "row %d is bad", 7), TUNDISH_E_DATA);
    assert_int_equal(tnd_fail_while(TUNDISH_E_DATA, "read %s", "a.csv"), TUNDISH_E_DATA);
    assert_string_equal(tnd_error_text(), "read a.csv: row 7 is bad");
}

static void
fail_while_names_a_file_once(void **state)
{
    (void)state;
    tnd_fail(TUNDISH_E_DATA, "s3://b/a: the store answers 404: gone");
    tnd_fail_while(TUNDISH_E_DATA, "s3://b/a");
    assert_string_equal(tnd_error_text(), "s3://b/a: the store answers 404: gone");
    tnd_fail_while(TUNDISH_E_DATA, "s3://b/a, row group 2");
    assert_string_equal(tnd_error_text(), "s3://b/a, row group 2: the store answers 404: gone");
    tnd_fail(TUNDISH_E_DATA, "s3://b/a: gone");
    tnd_fail_while(TUNDISH_E_DATA, "vocabulary %s", "s3://b/a");
    assert_string_equal(tnd_error_text(), "vocabulary s3://b/a: gone");
    tnd_fail(TUNDISH_E_DATA, "a: gone");
    tnd_fail_while(TUNDISH_E_DATA, "s3://b/a");
    assert_string_equal(tnd_error_text(), "s3://b/a: a: gone");
}

static void
fail_errno_names_the_reason(void **state)
{
    (void)state;
    assert_int_equal(tnd_fail_errno(ENOENT, "open %s", "x"), TUNDISH_E_SYSTEM);
    assert_string_equal(tnd_error_text(), "open x: No such file or directory");
}

static void
bytes_that_are_no_text_are_marked(void **state)
{
    (void)state;
    tnd_fail(TUNDISH_E_DATA, "\"%s\"",
             "a\xff\xc3\xa9\xe6\x97|\xed\xa0\x80\xf0\x9f\x98\x80\xc0\x80\xe2");
    assert_string_equal(tnd_error_text(), "\"a?\xc3\xa9??|???\xf0\x9f\x98\x80???\"");
}

TEST_FILE(test_status)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fail_while_puts_the_outer_action_first),
        cmocka_unit_test(fail_while_names_a_file_once),
        cmocka_unit_test(fail_errno_names_the_reason),
        cmocka_unit_test(bytes_that_are_no_text_are_marked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
