/* test_redact.c - no secret of an address is shown, and all that tells it from others is. */
#include "unit/test_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "core/redact.h"
#include "core/status.h"

static void
assert_shown(const char *text, const char *expected)
{
    char shown[512];

    snprintf(shown, sizeof shown, "%s", text);
    tnd_redact(shown);
    assert_string_equal(shown, expected);
}

static void
secrets_are_not_shown(void **state)
{
    (void)state;
    assert_shown("https://h/a?token=abcdef", "https://h/a?token=***");
    assert_shown("https://h/a?access_token=abcdef&part=3", "https://h/a?access_token=***&part=3");
    assert_shown("https://h/a?key=abcdef is gone", "https://h/a?key=*** is gone");
    assert_shown("http://h/a?X-Amz-Security-Token=a%2Fbc/d&X-Amz-Signature=0123&X-Amz-Date=20",
                 "http://h/a?X-Amz-Security-Token=***&X-Amz-Signature=***&X-Amz-Date=20");
    assert_shown("https://h/a?key=abcdef: no", "https://h/a?key=***: no");
    assert_shown("http://user:secret@h:80/a", "http://***@h:80/a");
    assert_shown("http://a@b:secret@h", "http://***@h");
    assert_shown("https://h?sig=x", "https://h?sig=*");
    assert_shown("https://h?sig=", "https://h?sig=");
    assert_shown("https://h/?hdnea=exp=9~hmac=777", "https://h/?hdnea=***");
}

static void
each_address_of_a_text_is_looked_at(void **state)
{
    (void)state;
    assert_shown("read \"http://u:p1234@h/a?sig=12345\" and s3://b/k?x=secret, then stop",
                 "read \"http://***@h/a?sig=***\" and s3://b/k?x=***, then stop");
}

static void
harmless_texts_stay(void **state)
{
    static const char *const texts[] = { "",
                                         "://",
                                         "http://",
                                         "http://h",
                                         "http://h/?",
                                         "http://h/?a",
                                         "http://h/a@b/c",
                                         "s3://b/key?versionId=7&part=2",
                                         "https://h/?id=5;name=x",
                                         "who@where?token=x" };

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_shown(texts[i], texts[i]);
}

static void
no_sentence_has_them(void **state)
{
    (void)state;
    (void)tnd_fail(TUNDISH_E_DATA, "%s: gone", "http://u:pass@h/x?token=hidden");
    assert_null(strstr(tnd_error_text(), "hidden"));
    assert_null(strstr(tnd_error_text(), "pass"));
    (void)tnd_fail_while(TUNDISH_E_DATA, "open %s", "http://h/x?sig=concealed");
    assert_null(strstr(tnd_error_text(), "concealed"));
    (void)tnd_fail_errno(2, "open %s", "http://h/x?sig=concealed");
    assert_null(strstr(tnd_error_text(), "concealed"));
}

static void
a_signature_is_left_out_of_a_name(void **state)
{
    static const struct {
        const char *text, *left;
    } cases[] = {
        { "https://h/a?X-Amz-Date=20&X-Amz-Signature=5f", "https://h/a" },
        { "https://h/a?sv=1;sig=a/b", "https://h/a" },
        { "https://h/a?token=", "https://h/a" },
        { "https://h/a?id=5&token=x", "https://h/a" },
        { "https://h/a?id=5", "https://h/a?id=5" },
        { "https://h/a?", "https://h/a?" },
        { "https://h/a?b&c", "https://h/a?b&c" },
        { "s3://b/year=202?/day=*", "s3://b/year=202?/day=*" },
        { "a?b=c", "a?b=c" },
        { "", "" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(tnd_redact_unsigned_bytes(cases[i].text), strlen(cases[i].left));
}

TEST_FILE(test_redact)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_signature_is_left_out_of_a_name),
        cmocka_unit_test(secrets_are_not_shown),
        cmocka_unit_test(each_address_of_a_text_is_looked_at),
        cmocka_unit_test(harmless_texts_stay),
        cmocka_unit_test(no_sentence_has_them),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
