/* test_printable.c - what of a stranger's text is shown as it is. */
#include "core/printable.h"
#include "unit/test_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void
assert_shown(const char *text, const char *wanted)
{
    char shown[200];

    assert_int_equal(tnd_printable(text, shown, sizeof shown), strlen(wanted));
    assert_string_equal(shown, wanted);
}

static void
text_stays_as_it_is(void **state)
{
    (void)state;
    assert_shown("", "");
    assert_shown("part-3.csv: \"x\" \\ y", "part-3.csv: \"x\" \\ y");
    assert_shown("\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80",
                 "\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80");
}

static void
what_forges_lines_or_moves_cursors_is_escaped(void **state)
{
    (void)state;
    assert_shown("a\nb\r", "a\\x0ab\\x0d");
    assert_shown("\x1b[2J\x7f", "\\x1b[2J\\x7f");
    assert_shown("\xc2\x9b", "\\xc2\\x9b"); /* the terminal's CSI, in one character */
}

static void
what_is_not_utf8_is_escaped(void **state)
{
    (void)state;
    assert_shown("\xff", "\\xff");
    assert_shown("\xc3", "\\xc3");                   /* cut short */
    assert_shown("\xc0\xaf", "\\xc0\\xaf");          /* longer than it need be */
    assert_shown("\xed\xa0\x80", "\\xed\\xa0\\x80"); /* half of a pair */
}

static void
a_cut_falls_between_characters(void **state)
{
    char shown[5];

    (void)state;
    assert_int_equal(tnd_printable("abc\xc3\xa9", shown, sizeof shown), 5);
    assert_string_equal(shown, "abc");
    assert_int_equal(tnd_printable("abc\nd", shown, sizeof shown), 8);
    assert_string_equal(shown, "abc"); /* not "abcd": nothing is left out in the middle */
}

TEST_FILE(test_printable)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_stays_as_it_is),
        cmocka_unit_test(what_forges_lines_or_moves_cursors_is_escaped),
        cmocka_unit_test(what_is_not_utf8_is_escaped),
        cmocka_unit_test(a_cut_falls_between_characters),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
