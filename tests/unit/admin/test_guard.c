/* test_guard.c - which requests are answered. */
#include "guard.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "unit/test_file.h"

static const struct guard guard = { .hosts = { "127.0.0.1:1", "localhost:1" },
                                    .host_count = 2,
                                    .token = "0123456789abcdef" };

static unsigned
check(const struct guard *by, struct guard_request request)
{
    const char *sentence = NULL;
    unsigned status = guard_check(by, &request, &sentence);

    if (status != 0)
        assert_non_null(sentence);
    return status;
}

static void
reading_needs_our_host_and_no_more(void **state)
{
    (void)state;
    assert_int_equal(check(&guard, (struct guard_request){ .host = "localhost:1" }), 0);
    assert_int_equal(check(&guard, (struct guard_request){ .host = "LOCALHOST:1" }), 0);
    assert_int_equal(check(&guard, (struct guard_request){ .host = "localhost:12" }), 421);
    assert_int_equal(check(&guard, (struct guard_request){ .host = NULL }), 421);
}

static void
an_origin_has_our_scheme_and_host(void **state)
{
    struct guard_request request = { .host = "localhost:1", .origin = "http://localhost:1" };
    struct guard tls = guard;

    (void)state;
    assert_int_equal(check(&guard, request), 0);
    tls.tls = true;
    assert_int_equal(check(&tls, request), 403);
    request.origin = "https://localhost:1";
    assert_int_equal(check(&guard, request), 403);
    assert_int_equal(check(&tls, request), 0);
    request.origin = "https://localhost:1.evil";
    assert_int_equal(check(&tls, request), 403);
}

static void
a_token_is_right_whole_or_not_at_all(void **state)
{
    static const char *const wrong[] = { "Bearer 0123456789abcde",
                                         "Bearer 0123456789abcdef0",
                                         "Bearer ",
                                         "Bearer",
                                         "Basic 0123456789abcdef",
                                         "0123456789abcdef",
                                         "Bearer 0123456789abcdeF" };
    struct guard_request request = { .host = "localhost:1", .changes_something = true };

    (void)state;
    assert_int_equal(check(&guard, request), 401);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        request.authorization = wrong[i];
        assert_int_equal(check(&guard, request), 401);
    }
    request.authorization = "Bearer 0123456789abcdef";
    assert_int_equal(check(&guard, request), 0);
}

static void
off_loopback_all_but_the_page_needs_the_token(void **state)
{
    struct guard remote = guard;
    struct guard_request request = { .host = "localhost:1" };

    (void)state;
    remote.reading_needs_token = true;
    assert_int_equal(check(&remote, request), 401);
    request.is_public = true;
    assert_int_equal(check(&remote, request), 0);
}

static void
a_token_file_is_its_owners_alone(void **state)
{
    char path[] = "/tmp/test_guard.XXXXXX", token[GUARD_TOKEN_BYTES];
    int file = mkstemp(path);

    (void)state;
    assert_int_equal(write(file, "0123456789abcdef\n", 17), 17);
    assert_null(guard_read_token(path, token));
    assert_string_equal(token, "0123456789abcdef");
    assert_int_equal(fchmod(file, 0640), 0);
    assert_non_null(strstr(guard_read_token(path, token), "chmod 600"));
    close(file);
    unlink(path);
    assert_non_null(guard_read_token(path, token));
}

TEST_FILE(test_guard)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reading_needs_our_host_and_no_more),
        cmocka_unit_test(an_origin_has_our_scheme_and_host),
        cmocka_unit_test(a_token_is_right_whole_or_not_at_all),
        cmocka_unit_test(off_loopback_all_but_the_page_needs_the_token),
        cmocka_unit_test(a_token_file_is_its_owners_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
