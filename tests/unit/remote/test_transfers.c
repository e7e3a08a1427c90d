/* test_transfers.c - requests to servers that do wrong: which are made again, when, and which bytes
 * come of it. */
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
#include "core/memory.h"
#include "driven_curl.h"
#include "remote/transfers.h"
#include "unit/test_file.h"

enum { OBJECT_BYTES = 300000, RETRIES = 3 };
#define SECOND_NS INT64_C(1000000000)

static const struct curl_library *curl;
static struct transfers *transfers;
static uint8_t object[OBJECT_BYTES];

/* What came of a request. */
struct got {
    pthread_mutex_t lock;
    pthread_cond_t over;
    bool is_over;
    tundish_status status;
    char text[1024];
    struct answer answer;
    uint64_t bytes;
    uint8_t body[OBJECT_BYTES];
};

static bool
put(void *context, uint64_t offset, const void *bytes, size_t count)
{
    struct got *got = context;

    tnd_must_have(offset + count <= sizeof got->body);
    memcpy(got->body + offset, bytes, count);
    got->bytes = offset + count;
    return true;
}

static void
done(void *context, tundish_status status, const struct answer *answer)
{
    struct got *got = context;

    pthread_mutex_lock(&got->lock);
    got->status = status;
    got->answer = *answer;
    snprintf(got->text, sizeof got->text, "%s", status != TUNDISH_OK ? tnd_error_text() : "");
    got->is_over = true;
    pthread_cond_signal(&got->over);
    pthread_mutex_unlock(&got->lock);
}

/* A range of /data.bin, unless `want` says otherwise; all of its members may be 0. */
static void
fetch(const struct bad_server *server, struct transfer_want want, struct got *got)
{
    struct store store = { .name = "store" };
    char address[64];

    snprintf(address, sizeof address, "http://127.0.0.1:%u/data.bin",
             server != NULL ? (unsigned)bad_server_port(server) : 0);
    *got = (struct got){ .status = TUNDISH_OK };
    pthread_mutex_init(&got->lock, NULL);
    pthread_cond_init(&got->over, NULL);
    pthread_mutex_init(&store.lock, NULL);
    want.name = "data.bin";
    want.address = want.address != NULL ? want.address : address;
    want.is_ranged = !want.is_look && want.bytes != OBJECT_BYTES + 1;
    want.bytes = want.bytes != 0 ? want.bytes : OBJECT_BYTES;
    want.total = want.total != 0 ? want.total : UINT64_MAX;
    want.region = "here";
    want.store = want.store != NULL ? want.store : &store;
    want.put = put;
    want.done = done;
    want.context = got;
    transfers_add(transfers, &want);
    pthread_mutex_lock(&got->lock);
    while (!got->is_over)
        pthread_cond_wait(&got->over, &got->lock);
    pthread_mutex_unlock(&got->lock);
    pthread_mutex_destroy(&store.lock);
    pthread_cond_destroy(&got->over);
    pthread_mutex_destroy(&got->lock);
}

/* The head of an answer that is right, but for the lines that are added. */
static void
say_head(struct bad_server *server, const struct bad_request *request, const char *more)
{
    uint64_t last = request->last < OBJECT_BYTES - 1 ? request->last : OBJECT_BYTES - 1;

    bad_say(server,
            "HTTP/1.1 206 Partial Content\r\nETag: \"one\"\r\nContent-Range: bytes %llu-%llu/%d\r\n"
            "Content-Length: %llu\r\n%s\r\n",
            (unsigned long long)request->first, (unsigned long long)last, OBJECT_BYTES,
            (unsigned long long)(last + 1 - request->first), more);
}

static void
answer_well(struct bad_server *server, const struct bad_request *request)
{
    uint64_t end = request->last < OBJECT_BYTES ? request->last + 1 : OBJECT_BYTES;

    say_head(server, request, "");
    bad_send(server, object + request->first, end - request->first);
}

static void
assert_is_object(const struct got *got)
{
    assert_string_equal(got->text, "");
    assert_int_equal(got->status, TUNDISH_OK);
    assert_int_equal(got->bytes, OBJECT_BYTES);
    assert_memory_equal(got->body, object, OBJECT_BYTES);
    assert_true(got->answer.has_total);
    assert_int_equal(got->answer.total, OBJECT_BYTES);
}

static void
assert_refused(const struct got *got, tundish_status status, const char *part)
{
    assert_int_equal(got->status, status);
    assert_non_null(strstr(got->text, "data.bin: "));
    if (strstr(got->text, part) == NULL)
        fail_msg("%s", got->text);
}

/* The faults that pass: one after the other, each after some bytes. */

static void
reset_in_the_body(struct bad_server *server, const struct bad_request *request, const void *context)
{
    (void)context;
    if (request->number > 1) {
        answer_well(server, request);
        return;
    }
    say_head(server, request, "");
    bad_send(server, object + request->first, 70000);
    if (request->number == 0)
        bad_reset(server);
}

static void
bodies_that_end_early_go_on_where_they_ended(void **state)
{
    struct bad_server *server;
    struct got got;

    (void)state;
    bad_server_open(reset_in_the_body, NULL, &server);
    fetch(server, (struct transfer_want){ 0 }, &got);
    assert_is_object(&got);
    assert_int_equal(bad_server_count(server), 3);
    /* A reset takes with it what the client has not read. */
    assert_in_range(bad_server_request(server, 1).first, 0, 70000);
    assert_int_equal(bad_server_request(server, 2).first,
                     bad_server_request(server, 1).first + 70000);
    bad_server_close(server);
}

/* An answer without a length ends with its connection. */
static void
end_without_a_length(struct bad_server *server, const struct bad_request *request,
                     const void *context)
{
    uint64_t count = OBJECT_BYTES - request->first;

    (void)context;
    bad_say(server, "HTTP/1.1 206 P\r\nContent-Range: bytes %llu-%d/%d\r\n\r\n",
            (unsigned long long)request->first, OBJECT_BYTES - 1, OBJECT_BYTES);
    bad_send(server, object + request->first, request->number == 0 ? count / 2 : count);
}

static void
bodies_without_a_length_are_held_to_their_range(void **state)
{
    struct bad_server *server;
    struct got got;

    (void)state;
    bad_server_open(end_without_a_length, NULL, &server);
    fetch(server, (struct transfer_want){ 0 }, &got);
    assert_is_object(&got);
    assert_int_equal(bad_server_request(server, 1).first, OBJECT_BYTES / 2);
    bad_server_close(server);
}

/* Too many bytes, which are noise, first within what was asked for and then beyond it. */
struct excess {
    uint64_t total, asked;
};

static void
send_too_much(struct bad_server *server, const struct bad_request *request, const void *context)
{
    const struct excess *excess = context;
    uint64_t end = request->last < excess->total ? request->last + 1 : excess->total;

    bad_say(server,
            "HTTP/1.1 206 P\r\nETag: \"one\"\r\nContent-Range: bytes %llu-%llu/%llu\r\n"
            "Content-Length: %llu\r\n\r\n",
            (unsigned long long)request->first, (unsigned long long)end - 1,
            (unsigned long long)excess->total,
            (unsigned long long)(end - request->first + (request->number == 0 ? 500 : 0)));
    if (request->number == 0)
        bad_send(server, object + 7, end - request->first + 500);
    else
        bad_send(server, object + request->first, end - request->first);
}

static void
bodies_that_are_too_long_are_asked_for_anew(void **state)
{
    static const struct excess cases[] = { { 1000, 1000 }, { 1000, 4000 }, { 9000, 1000 } };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint64_t bytes = cases[i].total < cases[i].asked ? cases[i].total : cases[i].asked;
        struct bad_server *server;
        struct got got;

        bad_server_open(send_too_much, &cases[i], &server);
        fetch(server, (struct transfer_want){ .bytes = cases[i].asked }, &got);
        assert_string_equal(got.text, "");
        assert_int_equal(got.bytes, bytes);
        assert_memory_equal(got.body, object, bytes);
        assert_int_equal(bad_server_count(server), 2);
        assert_int_equal(bad_server_request(server, 1).first, 0);
        bad_server_close(server);
    }
}

/* Heads whose range is not the one that was asked for, and bodies that would be taken for it. */
static const char *const wrong_ranges[] = {
    "bytes 1-300000/300001", "bytes 0-299998/300000",
    "bytes 0-300000/300001", "bytes 0-300000/300000",
    "bytes */300000",        "pages 0-299999/300000",
    "bytes 5-2/300000",      "",
};

static void
say_wrong_range(struct bad_server *server, const struct bad_request *request, const void *context)
{
    size_t count = sizeof wrong_ranges / sizeof *wrong_ranges;

    (void)context;
    if (request->number % 2 == 1) {
        answer_well(server, request);
        return;
    }
    bad_say(server, "HTTP/1.1 206 P\r\nContent-Length: %d\r\nContent-Range: %s\r\n\r\n",
            OBJECT_BYTES, wrong_ranges[request->number / 2 % count]);
    bad_send(server, object, OBJECT_BYTES);
}

static void
ranges_that_were_not_asked_for_are_dropped(void **state)
{
    struct bad_server *server;

    (void)state;
    bad_server_open(say_wrong_range, NULL, &server);
    for (size_t i = 0; i < sizeof wrong_ranges / sizeof *wrong_ranges; i++) {
        struct got got;

        fetch(server, (struct transfer_want){ 0 }, &got);
        assert_is_object(&got);
        assert_int_equal(bad_server_count(server), 2 * i + 2);
    }
    bad_server_close(server);
}

static void
say_wrong_range_always(struct bad_server *server, const struct bad_request *request,
                       const void *context)
{
    (void)request;
    (void)context;
    bad_say(server,
            "HTTP/1.1 206 P\r\nContent-Length: 3\r\nContent-Range: bytes 7-9/10\r\n\r\nabc");
}

static void
a_server_that_never_sends_the_range_is_left(void **state)
{
    struct bad_server *server;
    struct got got;

    (void)state;
    bad_server_open(say_wrong_range_always, NULL, &server);
    fetch(server, (struct transfer_want){ 0 }, &got);
    assert_refused(&got, TUNDISH_E_SYSTEM, "sends other bytes than it was asked for; ");
    assert_int_equal(bad_server_count(server), RETRIES + 1);
    bad_server_close(server);
}

/* The whole object, over and over, and each time cut after more than counts as progress. */
static void
cut_the_whole(struct bad_server *server, const struct bad_request *request, const void *context)
{
    (void)request;
    (void)context;
    bad_say(server, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", OBJECT_BYTES);
    bad_send(server, object, 100000);
}

static void
bytes_that_come_again_are_not_progress(void **state)
{
    struct bad_server *server;
    struct got got;

    (void)state;
    bad_server_open(cut_the_whole, NULL, &server);
    fetch(server, (struct transfer_want){ 0 }, &got);
    assert_refused(&got, TUNDISH_E_SYSTEM, "ends too early; ");
    assert_int_equal(bad_server_count(server), RETRIES + 1);
    bad_server_close(server);
}

static void
drip(struct bad_server *server, const struct bad_request *request, const void *context)
{
    (void)context;
    say_head(server, request, "");
    bad_send(server, object + request->first, 1);
}

static void
a_byte_for_each_request_is_not_progress(void **state)
{
    struct bad_server *server;
    struct got got;

    (void)state;
    bad_server_open(drip, NULL, &server);
    fetch(server, (struct transfer_want){ 0 }, &got);
    assert_refused(&got, TUNDISH_E_SYSTEM, "ends too early; ");
    assert_int_equal(bad_server_count(server), RETRIES + 1);
    assert_int_equal(bad_server_request(server, RETRIES).first, RETRIES);
    bad_server_close(server);
}

/* Servers that send no ranges, or do not tell how much there is. */

enum ending { LENGTH, CHUNKS, CLOSE };

static const enum ending endings[] = { LENGTH, CHUNKS, CLOSE };

static void
say_whole(struct bad_server *server, const struct bad_request *request, enum ending ending)
{
    static const char *const heads[] = {
        [LENGTH] = "Content-Length: 300000\r\n",
        /* A length beside chunks is none. */
        [CHUNKS] = "Transfer-Encoding: chunked\r\nContent-Length: 7\r\n",
        [CLOSE] = "Connection: close\r\n",
    };

    bad_say(server, "HTTP/1.1 200 OK\r\nETag: \"one\"\r\n%s\r\n", heads[ending]);
    if (strncmp(request->head, "HEAD ", 5) == 0)
        return;
    if (ending == CHUNKS)
        bad_say(server, "%x\r\n", OBJECT_BYTES);
    bad_send(server, object, OBJECT_BYTES);
    if (ending == CHUNKS)
        bad_say(server, "\r\n0\r\n\r\n");
}

static void
answer_whole(struct bad_server *server, const struct bad_request *request, const void *context)
{
    say_whole(server, request, *(const enum ending *)context);
}

static void
ranges_are_cut_from_the_whole_where_that_is_what_comes(void **state)
{
    /* One that begins and ends within the object, and such as end with it. */
    static const struct transfer_want wants[] = {
        { .whole_max = 8 << 20 },
        { .first = 1000, .bytes = 70000, .whole_max = OBJECT_BYTES },
        { .first = 299999, .bytes = 1, .whole_max = OBJECT_BYTES },
        { .first = 200000, .bytes = 200000, .whole_max = 8 << 20, .total = OBJECT_BYTES },
    };

    (void)state;
    for (size_t i = 0; i < 3 * sizeof wants / sizeof *wants; i++) {
        const struct transfer_want *want = &wants[i / 3];
        uint64_t rest = OBJECT_BYTES - want->first;
        uint64_t bytes = want->bytes != 0 && want->bytes < rest ? want->bytes : rest;
        struct bad_server *server;
        struct got got;

        bad_server_open(answer_whole, &endings[i % 3], &server);
        fetch(server, *want, &got);
        assert_string_equal(got.text, "");
        assert_int_equal(got.bytes, bytes);
        assert_memory_equal(got.body, object + want->first, bytes);
        assert_true(got.answer.has_total);
        assert_int_equal(got.answer.total, OBJECT_BYTES);
        assert_int_equal(bad_server_count(server), 1);
        bad_server_close(server);
    }
}

/* All come with the last ones, and the answer says where they are. */
static void
the_whole_comes_for_its_last_bytes(void **state)
{
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct bad_server *server;
        struct got got;

        bad_server_open(answer_whole, &endings[i], &server);
        fetch(server,
              (struct transfer_want){ .is_tail = true, .bytes = 500, .whole_max = OBJECT_BYTES },
              &got);
        assert_is_object(&got);
        bad_server_close(server);
    }
}

static void
a_whole_that_is_larger_than_a_part_is_refused(void **state)
{
    static const struct transfer_want wants[] = {
        { .bytes = 1000 },
        { .first = 1000, .bytes = 299000 },
        { .is_tail = true, .bytes = 1000, .whole_max = OBJECT_BYTES - 1 },
        { .bytes = 1000, .whole_max = OBJECT_BYTES - 1 },
    };

    (void)state;
    for (size_t i = 0; i < 3 * sizeof wants / sizeof *wants; i++) {
        struct bad_server *server;
        struct got got;

        bad_server_open(answer_whole, &endings[i % 3], &server);
        fetch(server, wants[i / 3], &got);
        assert_refused(&got, TUNDISH_E_DATA, "does not send parts of files (Range)");
        assert_int_equal(bad_server_count(server), 1);
        bad_server_close(server);
    }
}

/* The object had more bytes, or fewer. A body that ends with its connection may have been cut. */
static void
a_whole_of_another_size_is_not_taken(void **state)
{
    static const enum ending ending = CLOSE;
    struct bad_server *server;
    struct got got;

    (void)state;
    bad_server_open(answer_whole, &ending, &server);
    fetch(server, (struct transfer_want){ .total = OBJECT_BYTES + 1 }, &got);
    assert_refused(&got, TUNDISH_E_SYSTEM, "ends too early; ");
    assert_int_equal(bad_server_count(server), RETRIES + 1);
    fetch(server, (struct transfer_want){ .total = OBJECT_BYTES - 1 }, &got);
    assert_refused(&got, TUNDISH_E_DATA, "was changed or replaced");
    bad_server_close(server);
}

/* The first attempt breaks off within a chunk. */
static void
cut_a_chunk_once(struct bad_server *server, const struct bad_request *request, const void *context)
{
    if (request->number > 0) {
        answer_whole(server, request, context);
        return;
    }
    bad_say(server, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n", OBJECT_BYTES);
    bad_send(server, object + 1, 100000);
}

static void
a_whole_that_was_cut_is_asked_for_anew(void **state)
{
    static const enum ending ending = CHUNKS;
    struct bad_server *server;
    struct got got;

    (void)state;
    bad_server_open(cut_a_chunk_once, &ending, &server);
    fetch(server, (struct transfer_want){ 0 }, &got);
    assert_is_object(&got);
    assert_int_equal(bad_server_count(server), 2);
    bad_server_close(server);
}

static void
the_size_is_told_by_the_whole_where_nothing_else_tells_it(void **state)
{
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct bad_server *server;
        struct got got;

        bad_server_open(answer_whole, &endings[i], &server);
        fetch(server, (struct transfer_want){ .is_look = true, .whole_max = OBJECT_BYTES }, &got);
        assert_string_equal(got.text, "");
        assert_true(got.answer.has_total);
        assert_int_equal(got.answer.total, OBJECT_BYTES);
        bad_server_close(server);
    }
}

/* Ranges whose answers do not tell the size. HEAD does, or is not known. */
static void
answer_without_a_size(struct bad_server *server, const struct bad_request *request,
                      const void *context)
{
    bool knows_head = *(const bool *)context;
    uint64_t first = request->first, last = request->last;

    if (strncmp(request->head, "HEAD ", 5) == 0 && !knows_head) {
        bad_say(server, "HTTP/1.1 405 No\r\nContent-Length: 0\r\n\r\n");
        return;
    }
    if (strncmp(request->head, "HEAD ", 5) == 0 || strstr(request->head, "\r\nRange: ") == NULL) {
        say_whole(server, request, knows_head ? LENGTH : CHUNKS);
        return;
    }
    if (strstr(request->head, "\r\nRange: bytes=-") != NULL) {
        first = OBJECT_BYTES - 1000;
        last = OBJECT_BYTES - 1;
    }
    last = last < OBJECT_BYTES ? last : OBJECT_BYTES - 1;
    bad_say(server, "HTTP/1.1 206 P\r\nETag: \"one\"\r\nContent-Range: bytes %llu-%llu/*\r\n\r\n",
            (unsigned long long)first, (unsigned long long)last);
    bad_send(server, object + first, last + 1 - first);
}

static void
a_range_may_come_without_the_size(void **state)
{
    static const struct transfer_want wants[] = {
        { .bytes = 8 << 10 },
        { .first = 100, .bytes = 70000, .total = OBJECT_BYTES },
        { .is_tail = true, .bytes = 1000 },
        { .is_look = true },
    };

    (void)state;
    for (size_t i = 0; i < 2 * sizeof wants / sizeof *wants; i++) {
        struct transfer_want want = wants[i / 2];
        const bool knows_head = i % 2 == 0;
        struct bad_server *server;
        struct got got;

        want.whole_max = OBJECT_BYTES;
        bad_server_open(answer_without_a_size, &knows_head, &server);
        fetch(server, want, &got);
        assert_string_equal(got.text, "");
        assert_true(got.answer.has_total);
        assert_int_equal(got.answer.total, OBJECT_BYTES);
        if (want.is_tail)
            assert_memory_equal(got.body + got.bytes - 1000, object + OBJECT_BYTES - 1000, 1000);
        else if (!want.is_look)
            assert_memory_equal(got.body, object + want.first, want.bytes);
        if (want.total != 0)
            assert_int_equal(bad_server_count(server), 1);
        bad_server_close(server);
    }
}

/* Another version from the second attempt on. */
static void
change_meanwhile(struct bad_server *server, const struct bad_request *request, const void *context)
{
    const char *head = context;

    if (request->number > 0) {
        bad_say(server, head, (unsigned long long)request->first);
        return;
    }
    say_head(server, request, "");
    bad_send(server, object, 100000);
}

static void
what_changes_between_attempts_is_an_error(void **state)
{
    static const char *const heads[] = {
        ("HTTP/1.1 206 P\r\nETag: \"two\"\r\nContent-Range: bytes %llu-299999/300000\r\n"
         "Content-Length: 200000\r\n\r\nother"),
        ("HTTP/1.1 206 P\r\nContent-Range: bytes %llu-299999/300001\r\nContent-Length: 200000\r\n"
         "\r\nother"),
        "HTTP/1.1 412 Precondition Failed\r\nX-At: %llu\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 416 No\r\nContent-Range: bytes */100000\r\nX-At: %llu\r\nContent-Length: "
        "0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nETag: \"two\"\r\nX-At: %llu\r\nContent-Length: 5\r\n\r\nother",
    };

    (void)state;
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        struct bad_server *server;
        struct got got;

        bad_server_open(change_meanwhile, heads[i], &server);
        fetch(server, (struct transfer_want){ 0 }, &got);
        assert_refused(&got, TUNDISH_E_DATA, "was changed or replaced");
        assert_int_equal(bad_server_count(server), 2);
        assert_non_null(strstr(bad_server_request(server, 1).head, "\r\nIf-Match: \"one\"\r\n"));
        bad_server_close(server);
    }
}

/* A weak tag cannot be a condition, and is compared all the same. */
static void
answer_with_weak_tag(struct bad_server *server, const struct bad_request *request,
                     const void *context)
{
    (void)request;
    (void)context;
    bad_say(server, "HTTP/1.1 206 P\r\nETag: W/\"two\"\r\nContent-Range: bytes 0-2/3\r\n"
                    "Content-Length: 3\r\n\r\nabc");
}

static void
weak_tags_are_compared(void **state)
{
    struct bad_server *server;
    struct got got;

    (void)state;
    bad_server_open(answer_with_weak_tag, NULL, &server);
    fetch(server, (struct transfer_want){ .tag = "W/\"one\"" }, &got);
    assert_refused(&got, TUNDISH_E_DATA, "was changed or replaced");
    assert_null(strstr(bad_server_request(server, 0).head, "If-Match"));
    fetch(server, (struct transfer_want){ .tag = "W/\"two\"" }, &got);
    assert_string_equal(got.text, "");
    bad_server_close(server);
}

/* 503 with that header, once; `least_s` to `most_s` later the request comes again. */
struct pause {
    const char *header;
    int64_t least_s, most_s;
};

static void
answer_busy(struct bad_server *server, const struct bad_request *request, const void *context)
{
    const struct pause *pause = context;

    if (request->number == 0)
        bad_say(server, "HTTP/1.1 503 Slow Down\r\n%sContent-Length: 0\r\n\r\n", pause->header);
    else
        answer_well(server, request);
}

static void
a_busy_server_is_left_alone_as_long_as_it_asks(void **state)
{
    /* The wall clock stands at 2026-01-01 00:00:00 and some. */
    static const struct pause pauses[] = {
        { "", 0, 1 },
        { "Retry-After: 7\r\n", 7, 8 },
        { "Retry-After: 99999999999999999999\r\n", 0, 1 },
        { "Retry-After: 86400\r\n", 60, 61 },
        { "Retry-After: -5\r\n", 0, 1 },
        { "Retry-After: soon\r\n", 0, 1 },
        { "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\nRetry-After: Sun, 06 Nov 1994 08:49:57 GMT\r\n",
          20, 21 },
        { "Retry-After: Sun, 06 Nov 1994 08:50:07 GMT\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n",
          30, 31 },
        { "Retry-After: Sun, 06 Nov 1994 08:49:57 GMT\r\n", 0, 1 },
        { "Retry-After: Fri, 01 Jan 2027 00:00:00 GMT\r\n", 60, 61 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof pauses / sizeof *pauses; i++) {
        struct bad_server *server;
        struct got got;
        int64_t waited_ns;

        bad_server_open(answer_busy, &pauses[i], &server);
        fetch(server, (struct transfer_want){ 0 }, &got);
        assert_is_object(&got);
        assert_int_equal(bad_server_count(server), 2);
        waited_ns = bad_server_request(server, 1).at_ns - bad_server_request(server, 0).at_ns;
        if (waited_ns < pauses[i].least_s * SECOND_NS || waited_ns > pauses[i].most_s * SECOND_NS)
            fail_msg("%s: %lld ns", pauses[i].header, (long long)waited_ns);
        bad_server_close(server);
    }
}

static void
refuse_always(struct bad_server *server, const struct bad_request *request, const void *context)
{
    const char *line = context;

    (void)request;
    bad_say(server,
            "HTTP/1.1 %s\r\nContent-Type: application/xml\r\n\r\n<Error><Code>Because</Code>"
            "<Message>it is so</Message></Error>",
            line);
}

static void
refusals_are_tried_again_where_that_can_help(void **state)
{
    static const struct {
        const char *line;
        uint32_t requests;
    } cases[] = {
        { "500 E", RETRIES + 1 }, { "502 E", RETRIES + 1 }, { "503 E", RETRIES + 1 },
        { "504 E", RETRIES + 1 }, { "429 E", RETRIES + 1 }, { "408 E", RETRIES + 1 },
        { "501 E", 1 },           { "505 E", 1 },           { "400 E", 1 },
        { "401 E", 1 },           { "403 E", 1 },           { "404 E", 1 },
        { "410 E", 1 },           { "418 E", 1 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bad_server *server;
        struct got got;
        char code[8];

        snprintf(code, sizeof code, " %.3s ", cases[i].line);
        bad_server_open(refuse_always, cases[i].line, &server);
        fetch(server, (struct transfer_want){ 0 }, &got);
        assert_non_null(strstr(got.text, code));
        assert_non_null(strstr(got.text, "Because"));
        assert_int_equal(bad_server_count(server), cases[i].requests);
        bad_server_close(server);
    }
}

/* The first is held after half of its bytes. */
static void
hold_first(struct bad_server *server, const struct bad_request *request, const void *context)
{
    (void)context;
    if (request->number > 0) {
        answer_well(server, request);
        return;
    }
    say_head(server, request, "");
    bad_send(server, object, OBJECT_BYTES / 2);
    bad_hold(server);
}

static void
a_connection_that_stalls_is_cut(void **state)
{
    struct bad_server *server;
    struct got got;

    (void)state;
    bad_server_open(hold_first, NULL, &server);
    fetch(server, (struct transfer_want){ 0 }, &got);
    assert_is_object(&got);
    assert_int_equal(bad_server_count(server), 2);
    assert_int_equal(bad_server_request(server, 1).first, OBJECT_BYTES / 2);
    /* After ten seconds below the limit. */
    assert_in_range(bad_server_request(server, 1).at_ns - bad_server_request(server, 0).at_ns,
                    10 * SECOND_NS, 12 * SECOND_NS);
    bad_server_close(server);
}

static void
hold_always(struct bad_server *server, const struct bad_request *request, const void *context)
{
    (void)context;
    (void)request;
    bad_hold(server);
}

static void
a_server_that_says_nothing_is_left(void **state)
{
    struct bad_server *server;
    struct got got;

    (void)state;
    bad_server_open(hold_always, NULL, &server);
    fetch(server, (struct transfer_want){ 0 }, &got);
    assert_refused(&got, TUNDISH_E_SYSTEM, "too slow, or cannot be reached; ");
    assert_int_equal(bad_server_count(server), RETRIES + 1);
    bad_server_close(server);
}

/* Each takes 0.5 s; the one after those that make the median is held. */
static void
take_half_a_second(struct bad_server *server, const struct bad_request *request,
                   const void *context)
{
    (void)context;
    if (request->number == STORE_RECENT) {
        say_head(server, request, "");
        bad_send(server, object, 100000);
        bad_hold(server);
        return;
    }
    driven_curl_pass(SECOND_NS / 2);
    answer_well(server, request);
}

static void
a_request_that_is_slow_for_its_store_is_asked_for_again(void **state)
{
    struct store store = { .name = "store" };
    struct bad_server *server;
    struct got got;

    (void)state;
    pthread_mutex_init(&store.lock, NULL);
    bad_server_open(take_half_a_second, NULL, &server);
    for (int i = 0; i <= STORE_RECENT; i++) {
        fetch(server, (struct transfer_want){ .store = &store }, &got);
        assert_is_object(&got);
    }
    assert_int_equal(bad_server_count(server), STORE_RECENT + 2);
    /* No byte is asked for twice; long before the connection counts as stalled. */
    assert_int_equal(bad_server_request(server, STORE_RECENT + 1).first, 100000);
    assert_in_range(bad_server_request(server, STORE_RECENT + 1).at_ns -
                        bad_server_request(server, STORE_RECENT).at_ns,
                    3 * SECOND_NS / 2, 3 * SECOND_NS);
    assert_int_equal(store.retries[RETRY_SLOW], 1);
    assert_int_equal(store.retries[RETRY_STALLED], 0);
    bad_server_close(server);
    pthread_mutex_destroy(&store.lock);
}

/* Lines of a head until the client leaves. */
static void
say_heads(struct bad_server *server, const struct bad_request *request, const void *context)
{
    (void)request;
    (void)context;
    bad_say(server, "HTTP/1.1 206 P\r\n");
    for (int i = 0; bad_say(server, "X-%d: %01000d\r\n", i, i); i++)
        continue;
}

static void
say_one_header(struct bad_server *server, const struct bad_request *request, const void *context)
{
    (void)request;
    (void)context;
    bad_say(server, "HTTP/1.1 206 P\r\nX-Long: ");
    while (bad_say(server, "%01000d", 7))
        continue;
}

static void
heads_without_end_are_left(void **state)
{
    static bad_answer *const answers[] = { say_heads, say_one_header };

    (void)state;
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        struct bad_server *server;
        struct got got;

        bad_server_open(answers[i], NULL, &server);
        fetch(server, (struct transfer_want){ 0 }, &got);
        assert_refused(&got, TUNDISH_E_SYSTEM, "head of the answer is too long; ");
        assert_int_equal(bad_server_count(server), 1);
        bad_server_close(server);
    }
}

static void
say_context(struct bad_server *server, const struct bad_request *request, const void *context)
{
    (void)request;
    bad_say(server, "%s", (const char *)context);
}

static void
lengths_that_cannot_be_are_not_believed(void **state)
{
    static const struct {
        const char *answer;
        bool is_all; /* all of it is asked for, instead of a range */
    } cases[] = {
        { "HTTP/1.1 200 OK\r\nContent-Length: 9000000000000000000\r\n\r\nabc", false },
        { "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999999\r\n\r\nabc", false },
        { "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nabc", false },
        { "HTTP/1.1 206 P\r\nContent-Range: bytes 0-299999/9223372036854775807\r\n"
          "Content-Length: 9000000000000000000\r\n\r\nabc",
          false },
        { "HTTP/1.1 206 P\r\nContent-Range: bytes "
          "0-18446744073709551615/18446744073709551616\r\n\r\n",
          false },
        { "HTTP/1.1 200 OK\r\nContent-Length: 9000000000000000000\r\n\r\nabc", true },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bad_server *server;
        struct got got;

        bad_server_open(say_context, cases[i].answer, &server);
        fetch(server,
              (struct transfer_want){ .bytes = cases[i].is_all ? OBJECT_BYTES + 1 : OBJECT_BYTES },
              &got);
        assert_int_not_equal(got.status, TUNDISH_OK);
        assert_non_null(strstr(got.text, "data.bin: "));
        assert_in_range(bad_server_count(server), 1, RETRIES + 1);
        bad_server_close(server);
    }
}

static void
send_without_end(struct bad_server *server, const struct bad_request *request, const void *context)
{
    (void)request;
    (void)context;
    bad_say(server, "HTTP/1.1 200 OK\r\n\r\n");
    while (bad_send(server, object, 1000))
        continue;
}

static void
a_body_without_end_is_left(void **state)
{
    struct bad_server *server;
    struct got got;

    (void)state;
    bad_server_open(send_without_end, NULL, &server);
    /* All of it, of which no more than that is taken. */
    fetch(server, (struct transfer_want){ .bytes = OBJECT_BYTES + 1 }, &got);
    assert_refused(&got, TUNDISH_E_DATA, "the answer is longer than 300001 bytes");
    assert_true(got.bytes <= OBJECT_BYTES);
    assert_int_equal(bad_server_count(server), 1);
    bad_server_close(server);
}

/* Pieces of growing size; the first attempt breaks off within one, the second has a size that is no
 * number. */
static void
answer_in_chunks(struct bad_server *server, const struct bad_request *request, const void *context)
{
    uint64_t at = request->first;

    (void)context;
    bad_say(server,
            "HTTP/1.1 206 P\r\nETag: \"one\"\r\nTransfer-Encoding: chunked\r\n"
            "Content-Range: bytes %llu-%d/%d\r\n\r\n",
            (unsigned long long)at, OBJECT_BYTES - 1, OBJECT_BYTES);
    for (uint64_t bytes = 1; at < OBJECT_BYTES; bytes *= 3) {
        uint64_t count = OBJECT_BYTES - at < bytes ? OBJECT_BYTES - at : bytes;

        if (request->number == 1 && bytes > 100) {
            bad_say(server, "what\r\n");
            return;
        }
        bad_say(server, "%llx;name=value\r\n", (unsigned long long)count);
        if (request->number == 0 && bytes > 50000) {
            bad_send(server, object + at, 1000);
            return;
        }
        bad_send(server, object + at, count);
        bad_say(server, "\r\n");
        at += count;
    }
    bad_say(server, "0\r\n\r\n");
}

static void
bodies_come_in_chunks(void **state)
{
    struct bad_server *server;
    struct got got;

    (void)state;
    bad_server_open(answer_in_chunks, NULL, &server);
    fetch(server, (struct transfer_want){ 0 }, &got);
    assert_is_object(&got);
    assert_int_equal(bad_server_count(server), 3);
    bad_server_close(server);
}

static void
bodies_in_another_encoding_are_refused(void **state)
{
    static const char answer[] =
        "HTTP/1.1 %s\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n%s\r\nabc";
    char whole[256], part[256];
    const char *const answers[] = { whole, part };

    (void)state;
    snprintf(whole, sizeof whole, answer, "200 OK", "");
    snprintf(part, sizeof part, answer, "206 P", "Content-Range: bytes 0-2/3\r\n");
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        struct bad_server *server;
        struct got got;
        char packed[64];

        bad_server_open(say_context, answers[i], &server);
        fetch(server, (struct transfer_want){ 0 }, &got);
        assert_refused(&got, TUNDISH_E_DATA, "as gzip (Content-Encoding), and not its own bytes; ");
        assert_int_equal(bad_server_count(server), 1);
        assert_non_null(
            strstr(bad_server_request(server, 0).head, "\r\nAccept-Encoding: identity\r\n"));
        /* Of a packed file it says what the file is. So does a store, of what it was told. */
        snprintf(packed, sizeof packed, "http://127.0.0.1:%u/a.csv.gz?x",
                 (unsigned)bad_server_port(server));
        fetch(server, (struct transfer_want){ .address = packed }, &got);
        assert_string_equal(got.text, "");
        fetch(server, (struct transfer_want){ .is_of_store = true }, &got);
        assert_string_equal(got.text, "");
        assert_null(strstr(bad_server_request(server, 2).head, "Accept-Encoding"));
        bad_server_close(server);
    }
}

/* Redirects. */

/* It says that it closes. Else the next request may be sent before the connection's end is seen,
 * and libcurl's sentence is of the reset that comes of it. */
static void
redirect(struct bad_server *server, const struct bad_request *request, const void *context)
{
    (void)request;
    bad_say(server,
            "HTTP/1.1 302 Found\r\nLocation: %s\r\nContent-Length: 0\r\n"
            "Connection: close\r\n\r\n",
            (const char *)context);
}

static void
answer_object(struct bad_server *server, const struct bad_request *request, const void *context)
{
    (void)context;
    answer_well(server, request);
}

static void
redirects_in_a_loop_are_left(void **state)
{
    struct bad_server *server;
    struct got got;

    (void)state;
    bad_server_open(redirect, "/data.bin?again", &server);
    fetch(server, (struct transfer_want){ 0 }, &got);
    assert_refused(&got, TUNDISH_E_SYSTEM, "redirects followed; ");
    assert_in_range(bad_server_count(server), 2, 10);
    bad_server_close(server);
}

static void
credentials_do_not_follow_a_redirect(void **state)
{
    static char key[] = "the-key", secret[] = "the-secret", session[] = "the-session",
                bearer[] = "the-bearer";
    const struct credentials keys = { .key = key, .secret = secret, .session = session };
    const struct credentials token = { .bearer = bearer };
    struct bad_server *first, *second;
    char there[64];
    struct got got;

    (void)state;
    bad_server_open(answer_object, NULL, &second);
    snprintf(there, sizeof there, "http://127.0.0.1:%u/data.bin",
             (unsigned)bad_server_port(second));
    bad_server_open(redirect, there, &first);
    /* A store is not followed at all. */
    fetch(first, (struct transfer_want){ .is_of_store = true, .credentials = &keys }, &got);
    assert_refused(&got, TUNDISH_E_SYSTEM, "the store sends us elsewhere");
    fetch(first, (struct transfer_want){ .is_of_store = true, .credentials = &token }, &got);
    assert_refused(&got, TUNDISH_E_SYSTEM, "the store sends us elsewhere");
    assert_int_equal(bad_server_count(second), 0);
    assert_non_null(strstr(bad_server_request(first, 0).head, "Credential=the-key/"));
    assert_null(strstr(bad_server_request(first, 0).head, "the-secret"));
    assert_non_null(strstr(bad_server_request(first, 1).head, "Authorization: Bearer the-bearer"));
    /* Other servers are, without any. */
    fetch(first, (struct transfer_want){ 0 }, &got);
    assert_is_object(&got);
    assert_int_equal(bad_server_count(second), 1);
    assert_null(strstr(bad_server_request(second, 0).head, "Authorization"));
    bad_server_close(first);
    bad_server_close(second);
}

static void
redirects_to_other_protocols_are_refused(void **state)
{
    static const char *const places[] = { "file:///etc/passwd", "ftp://127.0.0.1/x", "gopher://x/",
                                          "dict://127.0.0.1:1/x" };

    (void)state;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        struct bad_server *server;
        struct got got;

        bad_server_open(redirect, places[i], &server);
        fetch(server, (struct transfer_want){ 0 }, &got);
        assert_refused(&got, TUNDISH_E_SYSTEM, "the request failed: ");
        assert_int_equal(bad_server_count(server), 1);
        assert_int_equal(got.bytes, 0);
        bad_server_close(server);
    }
}

/* Of an object without bytes a store can send no range. */
static void
be_empty(struct bad_server *server, const struct bad_request *request, const void *context)
{
    (void)context;
    if (strncmp(request->head, "HEAD ", 5) == 0)
        bad_say(server, "HTTP/1.1 200 OK\r\nETag: \"none\"\r\nContent-Length: 0\r\n\r\n");
    else
        bad_say(server, "HTTP/1.1 416 No\r\nContent-Length: 0\r\n\r\n");
}

static void
an_empty_object_is_one_without_bytes(void **state)
{
    struct bad_server *server;
    struct got got;

    (void)state;
    bad_server_open(be_empty, NULL, &server);
    fetch(server, (struct transfer_want){ 0 }, &got);
    assert_string_equal(got.text, "");
    assert_true(got.answer.has_total);
    assert_int_equal(got.answer.total, 0);
    /* It was not empty before. */
    fetch(server, (struct transfer_want){ .total = 100, .tag = "\"one\"" }, &got);
    assert_refused(&got, TUNDISH_E_DATA, "was changed or replaced");
    bad_server_close(server);
}

static void
nobody_listens_is_said_after_some_attempts(void **state)
{
    struct got got;

    (void)state;
    /* Port 1 is not given to anybody. */
    fetch(NULL, (struct transfer_want){ .address = "http://127.0.0.1:1/x" }, &got);
    assert_refused(&got, TUNDISH_E_SYSTEM, "check the network and remote.endpoint");
}

static int
open_transfers(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof object; i++)
        object[i] = (uint8_t)((i * 2654435761U) >> 13);
    curl = driven_curl_open();
    return transfers_open(curl, &(struct transfer_limits){ .connections = 1, .retries = RETRIES },
                          &transfers);
}

static int
stop_transfers(void **state)
{
    (void)state;
    transfers_stop(transfers);
    driven_curl_close();
    return 0;
}

TEST_FILE(test_transfers)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bodies_that_end_early_go_on_where_they_ended),
        cmocka_unit_test(bodies_without_a_length_are_held_to_their_range),
        cmocka_unit_test(bodies_that_are_too_long_are_asked_for_anew),
        cmocka_unit_test(ranges_that_were_not_asked_for_are_dropped),
        cmocka_unit_test(a_server_that_never_sends_the_range_is_left),
        cmocka_unit_test(bytes_that_come_again_are_not_progress),
        cmocka_unit_test(a_byte_for_each_request_is_not_progress),
        cmocka_unit_test(ranges_are_cut_from_the_whole_where_that_is_what_comes),
        cmocka_unit_test(the_whole_comes_for_its_last_bytes),
        cmocka_unit_test(a_whole_that_is_larger_than_a_part_is_refused),
        cmocka_unit_test(a_whole_of_another_size_is_not_taken),
        cmocka_unit_test(a_whole_that_was_cut_is_asked_for_anew),
        cmocka_unit_test(the_size_is_told_by_the_whole_where_nothing_else_tells_it),
        cmocka_unit_test(a_range_may_come_without_the_size),
        cmocka_unit_test(what_changes_between_attempts_is_an_error),
        cmocka_unit_test(weak_tags_are_compared),
        cmocka_unit_test(a_busy_server_is_left_alone_as_long_as_it_asks),
        cmocka_unit_test(refusals_are_tried_again_where_that_can_help),
        cmocka_unit_test(a_connection_that_stalls_is_cut),
        cmocka_unit_test(a_server_that_says_nothing_is_left),
        cmocka_unit_test(a_request_that_is_slow_for_its_store_is_asked_for_again),
        cmocka_unit_test(heads_without_end_are_left),
        cmocka_unit_test(lengths_that_cannot_be_are_not_believed),
        cmocka_unit_test(a_body_without_end_is_left),
        cmocka_unit_test(bodies_come_in_chunks),
        cmocka_unit_test(bodies_in_another_encoding_are_refused),
        cmocka_unit_test(redirects_in_a_loop_are_left),
        cmocka_unit_test(credentials_do_not_follow_a_redirect),
        cmocka_unit_test(redirects_to_other_protocols_are_refused),
        cmocka_unit_test(an_empty_object_is_one_without_bytes),
        cmocka_unit_test(nobody_listens_is_said_after_some_attempts),
    };

    return cmocka_run_group_tests(tests, open_transfers, stop_transfers);
}
