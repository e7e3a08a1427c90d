/* test_listing.c - pages of a bucket's list of keys. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "remote/listing.h"
#include "unit/test_file.h"

static tundish_status
open_page(const char *xml, struct listing_page *ret_page)
{
    return listing_page_open(xml, strlen(xml), ret_page);
}

static void
a_page_has_keys_and_a_token(void **state)
{
    struct listing_page page;

    (void)state;
    assert_int_equal(
        open_page(
            "<ListBucketResult xmlns='u'><IsTruncated>true</IsTruncated><Contents><Key>a%20b+c"
            "</Key><ETag>&quot;x&quot;</ETag><Size>7</Size><Owner><ID>n</ID></Owner></Contents>"
            "<CommonPrefixes><Prefix>p/</Prefix></CommonPrefixes><NextContinuationToken>t/=="
            "</NextContinuationToken><EncodingType>url</EncodingType></ListBucketResult>",
            &page),
        TUNDISH_OK);
    assert_int_equal(page.count, 1);
    assert_string_equal(page.objects[0].key, "a b c");
    assert_string_equal(page.objects[0].tag, "\"x\"");
    assert_int_equal(page.objects[0].bytes, 7);
    assert_string_equal(page.next, "t/==");
    listing_page_close(&page);
}

static void
keys_stay_as_they_are_where_nothing_is_said(void **state)
{
    struct listing_page page;

    (void)state;
    assert_int_equal(
        open_page("<ListBucketResult><Contents><Key>a+%41</Key></Contents>"
                  "<NextContinuationToken>t</NextContinuationToken></ListBucketResult>",
                  &page),
        TUNDISH_OK);
    assert_string_equal(page.objects[0].key, "a+%41");
    assert_null(page.next);
    listing_page_close(&page);
}

static void
what_is_no_list_is_refused(void **state)
{
    static const char *const pages[] = {
        "",
        "<html></html>",
        "<ListBucketResult><Contents><Key>a</Key></Contents>",
        "<ListBucketResult><Contents><Size>1</Size></Contents></ListBucketResult>",
        "<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>",
        ("<ListBucketResult><a><a><a><a><a><a><a><a></a></a></a></a></a></a></a></a>"
         "</ListBucketResult>"),
    };

    (void)state;
    for (size_t i = 0; i < sizeof pages / sizeof *pages; i++)
        assert_int_equal(open_page(pages[i], &(struct listing_page){ 0 }), TUNDISH_E_DATA);
}

TEST_FILE(test_listing)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_page_has_keys_and_a_token),
        cmocka_unit_test(keys_stay_as_they_are_where_nothing_is_said),
        cmocka_unit_test(what_is_no_list_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
