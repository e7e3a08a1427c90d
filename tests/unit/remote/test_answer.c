/* test_answer.c - heads of answers, and errors in their bodies. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "remote/answer.h"
#include "unit/test_file.h"

static struct answer
answer_of(const char *const *lines)
{
    struct answer answer;

    answer_begin(&answer);
    for (; *lines != NULL; lines++)
        answer_line(&answer, *lines, strlen(*lines));
    return answer;
}

static void
a_head_is_read(void **state)
{
    const struct answer answer = answer_of((const char *const[]){
        "HTTP/1.1 206 Partial Content\r\n", "ETag:  \"ab\" \r\n", "content-RANGE: bytes 5-9/20\r\n",
        "Content-Length: 5\r\n", "Retry-After: 7\r\n", "Last-Modified: Mon\r\n",
        "x-amz-bucket-region: r\r\n", "\r\n", NULL });

    (void)state;
    assert_int_equal(answer.code, 206);
    assert_string_equal(answer.tag, "\"ab\"");
    assert_true(answer.has_range && answer.has_total && answer.has_length);
    assert_int_equal(answer.first, 5);
    assert_int_equal(answer.last, 9);
    assert_int_equal(answer.total, 20);
    assert_int_equal(answer.length, 5);
    assert_int_equal(answer.retry_after_s, 7);
    assert_string_equal(answer.modified, "Mon");
    assert_string_equal(answer.region, "r");
}

static void
a_new_status_line_begins_anew(void **state)
{
    const struct answer answer = answer_of((const char *const[]){
        "HTTP/1.1 302 Found", "ETag: \"old\"", "Content-Length: 3", "HTTP/1.1 200 OK", NULL });

    (void)state;
    assert_int_equal(answer.code, 200);
    assert_string_equal(answer.tag, "");
    assert_false(answer.has_length);
}

static void
ranges_that_make_no_sense_are_none(void **state)
{
    static const char *const ranges[] = {
        "Content-Range: bytes 9-5/20",  "Content-Range: bytes 5-20/20",
        "Content-Range: bytes -5/20",   "Content-Range: bytes 5-/20",
        "Content-Range: lines 5-9/20",  "Content-Range: bytes 5-9",
        "Content-Range: bytes 5-9/2x0", "Content-Range: bytes 0-99999999999999999999/*",
    };

    (void)state;
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        const struct answer answer =
            answer_of((const char *const[]){ "HTTP/1.1 206 x", ranges[i], NULL });

        assert_false(answer.has_range && answer.has_total);
    }
}

static void
the_code_of_an_error_is_found(void **state)
{
    static const char body[] = "<?xml version=\"1.0\"?><Error><Code>NoSuchKey</Code>"
                               "<Message>a\nb &lt;</Message><Region>r</Region><Key";
    struct answer_error error;

    (void)state;
    answer_read_error(body, strlen(body), &error);
    assert_string_equal(error.code, "NoSuchKey");
    assert_string_equal(error.message, "a b <");
    assert_string_equal(error.region, "r");
    answer_read_error("<html>no<br>", 12, &error);
    assert_string_equal(error.code, "");
}

TEST_FILE(test_answer)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_head_is_read),
        cmocka_unit_test(a_new_status_line_begins_anew),
        cmocka_unit_test(ranges_that_make_no_sense_are_none),
        cmocka_unit_test(the_code_of_an_error_is_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
