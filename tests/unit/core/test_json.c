/* test_json.c - what is written reads back as the same values. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/json.h"
#include "unit/test_file.h"

static char *
written(void (*write)(struct json *json))
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *file = open_memstream(&text, &bytes);
    struct json json;

    json_start(&json, file);
    write(&json);
    fclose(file);
    return text;
}

static void
write_nested(struct json *json)
{
    json_object(json);
    json_key(json, "a");
    json_array(json);
    json_int(json, INT64_MIN);
    json_uint(json, UINT64_MAX);
    json_null(json);
    json_array_end(json);
    json_key_bool(json, "b", true);
    json_object_end(json);
}

static void
write_floats(struct json *json)
{
    json_array(json);
    json_float(json, (double)0.1f, 9);
    json_float(json, 0.1, 17);
    json_float(json, 3, 9);
    json_float(json, -0.0, 9);
    json_float(json, (double)NAN, 9);
    json_float(json, (double)-INFINITY, 17);
    json_array_end(json);
}

static void
write_texts(struct json *json)
{
    json_array(json);
    json_text(json, "a\"\\\n\x01");
    json_text(json, "gr\xc3\xbcn");
    json_bytes(json, (struct byte_view){ (const uint8_t *)"\xff\x00q", 3 });
    json_bytes(json, (struct byte_view){ (const uint8_t *)"\xed\xa0\x80", 3 }); /* a surrogate */
    json_array_end(json);
}

static void
assert_written(void (*write)(struct json *json), const char *expected)
{
    char *text = written(write);

    assert_string_equal(text, expected);
    free(text);
}

static void
commas_and_brackets_are_where_they_belong(void **state)
{
    (void)state;
    assert_written(write_nested, "{\"a\": [-9223372036854775808, 18446744073709551615, null], "
                                 "\"b\": true}");
}

enum { DEEP = 200 };

static void
write_deep(struct json *json)
{
    for (int i = 0; i < DEEP; i++) {
        json_array(json);
        json_int(json, 1);
    }
    for (int i = 0; i < DEEP; i++)
        json_array_end(json);
}

static void
depth_has_no_bound(void **state)
{
    char expected[DEEP * 5 + 1] = "";
    size_t at = 0;

    (void)state;
    for (int i = 0; i < DEEP; i++)
        at += (size_t)snprintf(expected + at, sizeof expected - at, "%s[1", i > 0 ? ", " : "");
    memset(expected + at, ']', DEEP);
    expected[at + DEEP] = '\0';
    assert_written(write_deep, expected);
}

static void
floats_are_as_short_as_they_can_be(void **state)
{
    (void)state;
    assert_written(write_floats, "[0.1, 0.1, 3.0, -0.0, \"nan\", \"-inf\"]");
}

static void
text_is_quoted_and_other_bytes_are_base64(void **state)
{
    (void)state;
    assert_written(write_texts,
                   "[\"a\\\"\\\\\\n\\u0001\", \"gr\xc3\xbcn\", {\"base64\": \"/wBx\"}, "
                   "{\"base64\": \"7aCA\"}]");
}

TEST_FILE(test_json)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(commas_and_brackets_are_where_they_belong),
        cmocka_unit_test(depth_has_no_bound),
        cmocka_unit_test(floats_are_as_short_as_they_can_be),
        cmocka_unit_test(text_is_quoted_and_other_bytes_are_base64),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
