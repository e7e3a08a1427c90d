/* test_list.c - a bucket's list of keys, page after page, from stores that do wrong. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bad_server.h"
#include "driven_curl.h"
#include "remote/list.h"
#include "remote/remote_private.h"
#include "unit/test_file.h"

/* The one that all tests use, each with its own endpoint. */
static struct remote remote;
static char region[] = "here";

#define LIST "<ListBucketResult xmlns='http://s3.amazonaws.com/doc/2006-03-01/'>"
#define KEY(key) "<Contents><Key>" key "</Key><ETag>&quot;t&quot;</ETag><Size>3</Size></Contents>"

static tundish_status
list(const struct bad_server *server, struct remote_matches *ret_matches)
{
    char endpoint[64];

    snprintf(endpoint, sizeof endpoint, "http://127.0.0.1:%u", (unsigned)bad_server_port(server));
    remote.endpoint = endpoint;
    return remote_list(&remote, "s3://bucket/k*", ret_matches);
}

static void
say_page(struct bad_server *server, const char *body)
{
    bad_say(server, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n%s", strlen(body), body);
}

static void
assert_refused(struct bad_server *server, const char *part, uint32_t requests_max)
{
    struct remote_matches matches = { 0 };
    tundish_status status = list(server, &matches);

    assert_int_equal(status, TUNDISH_E_DATA);
    assert_non_null(strstr(tnd_error_text(), "s3://bucket/k*: "));
    if (strstr(tnd_error_text(), part) == NULL)
        fail_msg("%s", tnd_error_text());
    assert_in_range(bad_server_count(server), 1, requests_max);
    assert_null(matches.list);
    bad_server_close(server);
}

/* Pages that lead on to others: the number of the request, and of the page within a ring. */
struct endless {
    uint32_t ring;     /* tokens come again after so many; 0: never */
    uint32_t key_ring; /* so do keys; 0: there are none */
};

static void
go_on_for_ever(struct bad_server *server, const struct bad_request *request, const void *context)
{
    const struct endless *endless = context;
    uint32_t token = endless->ring != 0 ? request->number % endless->ring : request->number;
    char key[128] = "", body[512];

    if (endless->key_ring != 0)
        snprintf(key, sizeof key, "<Contents><Key>k%u</Key><Size>1</Size></Contents>",
                 request->number % endless->key_ring);
    snprintf(body, sizeof body,
             LIST "<IsTruncated>true</IsTruncated>%s<NextContinuationToken>t%u"
                  "</NextContinuationToken></ListBucketResult>",
             key, token);
    say_page(server, body);
}

static void
a_list_that_comes_back_to_where_it_was_is_left(void **state)
{
    static const struct endless cases[] = { { 1, 0 }, { 2, 0 }, { 7, 0 },
                                            { 0, 1 }, { 0, 5 }, { 3, 4 } };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bad_server *server;

        bad_server_open(go_on_for_ever, &cases[i], &server);
        assert_refused(server, "has no end", 40);
    }
}

/* Tokens that are ever new, on pages without a key, or with one that is. */
static void
a_list_of_ever_new_pages_is_left(void **state)
{
    static const struct endless cases[] = { { 0, 0 }, { 0, UINT32_MAX } };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bad_server *server;

        bad_server_open(go_on_for_ever, &cases[i], &server);
        assert_refused(server, "has no end: 4", 5000);
    }
}

/* Pages with 20 keys each, an end after 4,500. */
static void
go_on_for_long(struct bad_server *server, const struct bad_request *request, const void *context)
{
    char body[2048];
    size_t used = (size_t)snprintf(body, sizeof body, LIST);

    (void)context;
    for (uint32_t i = 0; i < 20; i++)
        used += (size_t)snprintf(body + used, sizeof body - used,
                                 "<Contents><Key>k%u</Key><Size>1</Size></Contents>",
                                 20 * request->number + i);
    if (request->number < 4499)
        used += (size_t)snprintf(body + used, sizeof body - used,
                                 "<IsTruncated>true</IsTruncated><NextContinuationToken>t%u"
                                 "</NextContinuationToken>",
                                 request->number);
    snprintf(body + used, sizeof body - used, "</ListBucketResult>");
    say_page(server, body);
}

static void
a_long_list_is_read_to_its_end(void **state)
{
    struct remote_matches matches = { 0 };
    struct bad_server *server;

    (void)state;
    bad_server_open(go_on_for_long, NULL, &server);
    assert_int_equal(list(server, &matches), TUNDISH_OK);
    assert_int_equal(matches.count, 20 * 4500);
    remote_matches_close(&matches);
    bad_server_close(server);
}

static void
say_context(struct bad_server *server, const struct bad_request *request, const void *context)
{
    (void)request;
    say_page(server, context);
}

static void
pages_that_play_tricks_are_refused(void **state)
{
    static const char *const pages[] = {
        /* Entities, from within and from elsewhere. */
        ("<!DOCTYPE l [<!ENTITY e 'kkk'>]>" LIST KEY("&e;") "</ListBucketResult>"),
        ("<!DOCTYPE l [<!ENTITY a 'kkkkkkkkkk'><!ENTITY b '&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;'>"
         "<!ENTITY c '&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;'><!ENTITY d '&c;&c;&c;&c;&c;&c;&c;&c;'>]>" LIST
         "<Prefix>&d;</Prefix></ListBucketResult>"),
        ("<!DOCTYPE l SYSTEM 'file:///etc/passwd'>" LIST KEY("k") "</ListBucketResult>"),
        ("<!DOCTYPE l [<!ENTITY e SYSTEM 'file:///etc/passwd'>]>" LIST KEY(
            "&e;") "</ListBucketResult>"),
        (LIST KEY("&e;") "</ListBucketResult>"),
        /* Names that are others. */
        "<x:ListBucketResult xmlns:x='u'>" KEY("k") "</x:ListBucketResult>",
        (LIST "<Contents><x:Key xmlns:x='u'>k</x:Key></Contents></ListBucketResult>"),
        (LIST "<Contents><Owner><Key>k</Key></Owner></Contents></ListBucketResult>"),
        "<Error><Code>AccessDenied</Code></Error>",
        "<ListAllMyBucketsResult>" KEY("k") "</ListAllMyBucketsResult>",
        /* Bytes that are no text, or of an encoding that nobody knows. */
        (LIST KEY("k\xff\xfe") "</ListBucketResult>"),
        ("<?xml version='1.0' encoding='klingon'?>" LIST KEY("k") "</ListBucketResult>"),
        ("\x1f\x8b\x08\x00" LIST KEY("k") "</ListBucketResult>"),
        "{\"Contents\": []}",
        /* Sizes that are none. */
        (LIST "<Contents><Key>k</Key><Size>-1</Size></Contents></ListBucketResult>"),
        (LIST "<Contents><Key>k</Key><Size>1e3</Size></Contents></ListBucketResult>"),
        (LIST "<Contents><Key>k</Key><Size>99999999999999999999</Size></Contents>"
              "</ListBucketResult>"),
    };

    (void)state;
    for (size_t i = 0; i < sizeof pages / sizeof *pages; i++) {
        struct bad_server *server;

        bad_server_open(say_context, pages[i], &server);
        assert_refused(server, "the list of keys that the store sent cannot be read: ", 1);
    }
}

static void
encodings_that_are_known_are_read(void **state)
{
    static const char *const pages[] = {
        ("<?xml version='1.0' encoding='iso-8859-1'?>" LIST KEY("k\xfc") "</ListBucketResult>"),
        ("<?xml version='1.0' encoding='UTF-8'?>" LIST KEY("k\xc3\xbc") "</ListBucketResult>"),
        (LIST KEY("k&#xfc;") "</ListBucketResult>"),
        (LIST KEY("<![CDATA[k\xc3\xbc]]>") "</ListBucketResult>"),
        (LIST KEY("k%C3%bc") "<EncodingType>url</EncodingType></ListBucketResult>"),
    };

    (void)state;
    for (size_t i = 0; i < sizeof pages / sizeof *pages; i++) {
        struct remote_matches matches = { 0 };
        struct bad_server *server;

        bad_server_open(say_context, pages[i], &server);
        assert_int_equal(list(server, &matches), TUNDISH_OK);
        assert_int_equal(matches.count, 1);
        assert_string_equal(matches.list[0].name, "s3://bucket/k\xc3\xbc");
        assert_int_equal(matches.list[0].bytes, 3);
        remote_matches_close(&matches);
        bad_server_close(server);
    }
}

/* Cut in mid-list, and then another time. */
static void
cut_twice(struct bad_server *server, const struct bad_request *request, const void *context)
{
    static const char body[] = LIST KEY("k2") KEY("k1") KEY("x") KEY("k3/") "</ListBucketResult>";

    (void)context;
    bad_say(server, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n", sizeof body - 1);
    if (request->number == 0) {
        bad_send(server, body, sizeof body / 2);
        bad_reset(server);
    } else {
        bad_send(server, body, request->number == 1 ? 10 : sizeof body - 1);
    }
}

static void
a_page_that_was_cut_is_asked_for_again(void **state)
{
    struct remote_matches matches = { 0 };
    struct bad_server *server;

    (void)state;
    bad_server_open(cut_twice, NULL, &server);
    assert_int_equal(list(server, &matches), TUNDISH_OK);
    assert_int_equal(bad_server_count(server), 3);
    assert_int_equal(matches.count, 2);
    assert_string_equal(matches.list[0].name, "s3://bucket/k1");
    assert_string_equal(matches.list[1].name, "s3://bucket/k2");
    remote_matches_close(&matches);
    bad_server_close(server);
}

static int
open_remote(void **state)
{
    const struct curl_library *curl = driven_curl_open();

    (void)state;
    remote.options = (struct spec_remote){ .credentials = "none", .part_bytes = 64 << 10 };
    remote.curl = curl;
    remote.region = region;
    remote.has_looked[0] = true;
    pthread_mutex_init(&remote.lock, NULL);
    return transfers_open(curl, &(struct transfer_limits){ .connections = 1, .retries = 3 },
                          &remote.transfers);
}

static int
close_remote(void **state)
{
    (void)state;
    transfers_stop(remote.transfers);
    driven_curl_close();
    return 0;
}

TEST_FILE(test_list)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_list_that_comes_back_to_where_it_was_is_left),
        cmocka_unit_test(a_list_of_ever_new_pages_is_left),
        cmocka_unit_test(a_long_list_is_read_to_its_end),
        cmocka_unit_test(pages_that_play_tricks_are_refused),
        cmocka_unit_test(encodings_that_are_known_are_read),
        cmocka_unit_test(a_page_that_was_cut_is_asked_for_again),
    };

    return cmocka_run_group_tests(tests, open_remote, close_remote);
}
