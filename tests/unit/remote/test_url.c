/* test_url.c - names of remote files, and the addresses made of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "remote/url.h"
#include "unit/test_file.h"

static void
assert_address(const char *name, const struct remote_site *site, const char *expected)
{
    struct remote_url url;
    char *address;

    assert_int_equal(remote_url_open(name, strlen(name), &url), TUNDISH_OK);
    address = remote_url_address(&url, site);
    assert_string_equal(address, expected);
    free(address);
    remote_url_close(&url);
}

static void
keys_are_encoded_strictly(void **state)
{
    const struct remote_site amazon = { .region = "eu-west-3" };
    const struct remote_site own = { .endpoint = "http://[::1]:9000/", .region = "x" };

    (void)state;
    assert_address("s3://bucket/a b/c+d=*~(e)'f", &amazon,
                   "https://bucket.s3.eu-west-3.amazonaws.com/a%20b/c%2Bd%3D%2A~%28e%29%27f");
    assert_address("s3://buc.ket/%41?#", &amazon,
                   "https://s3.eu-west-3.amazonaws.com/buc.ket/%2541%3F%23");
    assert_address("s3://bucket//k", &own, "http://[::1]:9000/bucket//k");
    assert_address("gs://bucket/k", &amazon, "https://storage.googleapis.com/bucket/k");
    assert_address("gs://bucket/\xc3\xbc", &own, "http://[::1]:9000/bucket/%C3%BC");
    assert_address("https://host/a%20b?c=d", &own, "https://host/a%20b?c=d");
}

static void
names_that_cannot_be_are_refused(void **state)
{
    static const char *const names[] = {
        "s3://",
        "s3://bucket",
        "s3://bucket/",
        "s3:///key",
        "s3://b@d/key",
        "s3://../key",
        "http://",
        "http:///x",
        "http://u:p@h/a b",
        "https://h/a b?sig=ab",
        "http://h/x\x7f",
        "https://h/x#y",
        "ftp://h/x",
        "S3://bucket/folder",
    };

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct remote_url url;

        assert_int_equal(remote_url_open(names[i], strlen(names[i]), &url), TUNDISH_E_PIPELINE);
        /* What is secret is not said again. */
        assert_null(strstr(tnd_error_text(), "u:p"));
        assert_null(strstr(tnd_error_text(), "sig=ab"));
    }
    assert_int_equal(remote_url_open("s3://b/a\0b", 10, &(struct remote_url){ 0 }),
                     TUNDISH_E_PIPELINE);
}

static void
decoding_undoes_what_stores_write(void **state)
{
    char text[] = "a+b%2Bc%2fd%C3%BC%4";

    (void)state;
    remote_url_decode(text);
    assert_string_equal(text, "a b+c/d\xc3\xbc%4");
}

TEST_FILE(test_url)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_are_encoded_strictly),
        cmocka_unit_test(names_that_cannot_be_are_refused),
        cmocka_unit_test(decoding_undoes_what_stores_write),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
