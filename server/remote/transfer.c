/* transfer.c - see transfer.h. */
#include "remote/transfer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/memory.h"
#include "remote/refusal.h"

/* A connection below this for so long is cut. */
enum { SLOW_BYTES_A_SECOND = 64 << 10, SLOW_S = 10, CONNECT_MS = 10000, REDIRECTS_MAX = 5 };

/* Fewer bytes than this do not count as progress: a server that sends one at a time and closes must
 * not be asked for ever. */
enum { PROGRESS_BYTES = 64 << 10 };

static char *
copy(const char *text)
{
    return text != NULL ? tnd_strdup(text) : NULL;
}

struct transfer *
transfer_open(const struct curl_library *curl, const struct transfer_want *want)
{
    struct transfer *transfer = tnd_zalloc(1, sizeof *transfer);
    const struct credentials *given = want->credentials;

    transfer->want = *want;
    transfer->want.name = copy(want->name);
    transfer->want.address = copy(want->address);
    transfer->want.tag = copy(want->tag);
    transfer->want.modified = copy(want->modified);
    transfer->want.region = copy(want->region);
    transfer->want.credentials = &transfer->credentials;
    if (given != NULL)
        transfer->credentials =
            (struct credentials){ copy(given->key),    copy(given->secret), copy(given->session),
                                  copy(given->bearer), given->expires_s,    given->look };
    transfer->curl = curl;
    transfer->asks_size = want->is_look;
    return transfer;
}

static void
end_attempt(struct transfer *transfer)
{
    transfer->curl->curl_slist_free_all(transfer->headers);
    transfer->headers = NULL;
    if (transfer->easy != NULL)
        transfer->curl->curl_easy_cleanup(transfer->easy);
    transfer->easy = NULL;
}

void
transfer_close(struct transfer *transfer)
{
    end_attempt(transfer);
    credentials_close(&transfer->credentials);
    free((void *)(uintptr_t)transfer->want.name);
    free((void *)(uintptr_t)transfer->want.address);
    free((void *)(uintptr_t)transfer->want.tag);
    free((void *)(uintptr_t)transfer->want.modified);
    free((void *)(uintptr_t)transfer->want.region);
    free(transfer);
}

/* The attempt ends here, and no other may help. */
static bool
refuse(struct transfer *transfer, tundish_status status)
{
    transfer->cause = CAUSE_FINAL;
    transfer->status = status;
    snprintf(transfer->sentence, sizeof transfer->sentence, "%s", tnd_error_text());
    return false;
}

static bool
try_again(struct transfer *transfer, enum transfer_cause cause)
{
    transfer->cause = cause;
    return false;
}

/* ETags are compared here too: weak ones cannot be a condition, and not every server keeps to
 * conditions. */
static bool
has_changed(const struct transfer *transfer)
{
    const struct transfer_want *want = &transfer->want;
    const struct answer *answer = &transfer->answer;

    if (want->tag != NULL && answer->tag[0] != '\0')
        return strcmp(want->tag, answer->tag) != 0;
    if (want->modified != NULL && answer->modified[0] != '\0' &&
        strcmp(want->modified, answer->modified) != 0)
        return true;
    return want->total != UINT64_MAX && answer->has_total && answer->total != want->total;
}

static tundish_status
changed(const struct transfer *transfer)
{
    return tnd_fail(TUNDISH_E_DATA,
                    "%s: the object was changed or replaced while it was served; restart the "
                    "stream",
                    transfer->want.name);
}

/* 200: the server sends the whole object, which is well where it is the whole that is wanted, or no
 * more than it. */
static bool
accept_whole(struct transfer *transfer)
{
    const struct transfer_want *want = &transfer->want;
    struct answer *answer = &transfer->answer;

    if (!want->is_ranged)
        return true;
    if (answer->has_length && want->first == 0 && answer->length <= want->bytes) {
        answer->has_total = true;
        answer->total = answer->length;
        /* The bytes before are sent once more. */
        transfer->got = 0;
        return !has_changed(transfer) || refuse(transfer, changed(transfer));
    }
    return refuse(
        transfer,
        tnd_fail(TUNDISH_E_DATA,
                 "%s: the server does not send parts of files (Range), and this one is larger than "
                 "a part; serve it from a store, or from a server that does",
                 want->name));
}

static bool
accept_part(struct transfer *transfer)
{
    const struct transfer_want *want = &transfer->want;
    const struct answer *answer = &transfer->answer;
    uint64_t first = want->first + transfer->got;

    if (!want->is_ranged || !answer->has_range || !answer->has_total || answer->first != first ||
        answer->last - want->first >= want->bytes)
        return try_again(transfer, CAUSE_WRONG);
    if (has_changed(transfer))
        return refuse(transfer, changed(transfer));
    /* All that there is of it. */
    if (answer->last - want->first + 1 != want->bytes && answer->last + 1 != answer->total)
        return try_again(transfer, CAUSE_WRONG);
    return true;
}

/* What is asked for again must be of the version that has begun to come. */
static void
hold_version(struct transfer *transfer)
{
    struct transfer_want *want = &transfer->want;
    const struct answer *answer = &transfer->answer;

    if (want->tag == NULL && answer->tag[0] != '\0')
        want->tag = tnd_strdup(answer->tag);
    if (want->modified == NULL && answer->modified[0] != '\0')
        want->modified = tnd_strdup(answer->modified);
    want->total = answer->total;
    if (want->begun != NULL)
        want->begun(want->context, answer);
    want->begun = NULL;
}

static size_t
take_header(char *line, size_t size, size_t count, void *context)
{
    struct transfer *transfer = context;

    answer_line(&transfer->answer, line, size * count);
    return size * count;
}

static bool
is_success(int code)
{
    return code == 200 || code == 206;
}

/* Returning less than what came ends the attempt. */
static size_t
take_body(char *data, size_t size, size_t count, void *context)
{
    struct transfer *transfer = context;
    const struct transfer_want *want = &transfer->want;
    size_t bytes = size * count;

    if (!is_success(transfer->answer.code)) {
        size_t room = TRANSFER_BODY_BYTES - transfer->body_bytes;

        memcpy(transfer->body + transfer->body_bytes, data, bytes < room ? bytes : room);
        transfer->body_bytes += bytes < room ? bytes : room;
        return bytes;
    }
    if (!transfer->is_accepted) {
        if (!(transfer->answer.code == 206 ? accept_part(transfer) : accept_whole(transfer)))
            return 0;
        transfer->is_accepted = true;
        if (want->is_ranged)
            hold_version(transfer);
    }
    if (bytes > want->bytes - transfer->got) {
        if (want->is_ranged)
            return try_again(transfer, CAUSE_WRONG);
        return refuse(transfer, tnd_fail(TUNDISH_E_DATA, "%s: the answer is longer than %llu bytes",
                                         want->name, (unsigned long long)want->bytes));
    }
    if (!want->put(want->context, transfer->got, data, bytes))
        return refuse(transfer, TUNDISH_E_SYSTEM);
    transfer->got += bytes;
    transfer->attempt_got += bytes;
    return bytes;
}

static void
add_header(struct transfer *transfer, const char *name, const char *value)
{
    char *line = tnd_sprintf("%s: %s", name, value);

    transfer->headers = transfer->curl->curl_slist_append(transfer->headers, line);
    tnd_must_have(transfer->headers != NULL);
    explicit_bzero(line, strlen(line));
    free(line);
}

/* SHA-256 of nothing: of the body of a GET. */
#define EMPTY_HASH "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

static void
sign(struct transfer *transfer)
{
    const struct curl_library *curl = transfer->curl;
    const struct credentials *credentials = &transfer->credentials;
    char *how;

    if (credentials->bearer != NULL) {
        char *value = tnd_sprintf("Bearer %s", credentials->bearer);

        add_header(transfer, "Authorization", value);
        explicit_bzero(value, strlen(value));
        free(value);
    }
    if (credentials->key == NULL)
        return;
    how = tnd_sprintf("aws:amz:%s:s3", transfer->want.region);
    curl->curl_easy_setopt(transfer->easy, CURLOPT_AWS_SIGV4, how);
    curl->curl_easy_setopt(transfer->easy, CURLOPT_USERNAME, credentials->key);
    curl->curl_easy_setopt(transfer->easy, CURLOPT_PASSWORD, credentials->secret);
    add_header(transfer, "x-amz-content-sha256", EMPTY_HASH);
    if (credentials->session != NULL)
        add_header(transfer, "x-amz-security-token", credentials->session);
    free(how);
}

/* A weak tag cannot be a condition. */
static void
add_conditions(struct transfer *transfer)
{
    const struct transfer_want *want = &transfer->want;

    if (want->tag != NULL && strncmp(want->tag, "W/", 2) != 0)
        add_header(transfer, "If-Match", want->tag);
    else if (want->tag == NULL && want->modified != NULL)
        add_header(transfer, "If-Unmodified-Since", want->modified);
}

static void
set_range(struct transfer *transfer)
{
    const struct transfer_want *want = &transfer->want;
    char range[64];

    if (!want->is_ranged)
        return;
    snprintf(range, sizeof range, "bytes=%llu-%llu",
             (unsigned long long)(want->first + transfer->got),
             (unsigned long long)(want->first + want->bytes - 1));
    add_header(transfer, "Range", range);
}

static void
set_rules(struct transfer *transfer)
{
    const struct curl_library *curl = transfer->curl;
    CURL *easy = transfer->easy;

    curl->curl_easy_setopt(easy, CURLOPT_URL, transfer->want.address);
    curl->curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl->curl_easy_setopt(easy, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
    curl->curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, transfer->want.is_of_store ? 0L : 1L);
    curl->curl_easy_setopt(easy, CURLOPT_MAXREDIRS, (long)REDIRECTS_MAX);
    curl->curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl->curl_easy_setopt(easy, CURLOPT_USERAGENT, "tundish");
    /* One connection of HTTP/2 carries less than several of 1.1. */
    curl->curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl->curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
    curl->curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, (long)SLOW_BYTES_A_SECOND);
    curl->curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME, (long)SLOW_S);
    curl->curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, 256L << 10);
    /* A path is signed as it is written. */
    curl->curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
    if (transfer->failures > 0 || transfer->cuts > 0) {
        curl->curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, 1L);
        curl->curl_easy_setopt(easy, CURLOPT_DNS_CACHE_TIMEOUT, 0L);
    }
    if (transfer->asks_size)
        curl->curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
}

static void
set_authorities(struct transfer *transfer)
{
    static const char *const names[] = { "AWS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE" };

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *path = getenv(names[i]);

        if (path != NULL && path[0] != '\0') {
            transfer->curl->curl_easy_setopt(transfer->easy, CURLOPT_CAINFO, path);
            return;
        }
    }
}

void
transfer_begin(struct transfer *transfer)
{
    const struct curl_library *curl = transfer->curl;

    transfer->easy = curl->curl_easy_init();
    tnd_must_have(transfer->easy != NULL);
    answer_begin(&transfer->answer);
    transfer->is_accepted = false;
    transfer->cause = CAUSE_NONE;
    transfer->body_bytes = 0;
    transfer->attempt_got = 0;
    transfer->begun_ns = tnd_clock_ns();
    set_rules(transfer);
    set_authorities(transfer);
    if (!transfer->asks_size)
        set_range(transfer);
    add_conditions(transfer);
    sign(transfer);
    curl->curl_easy_setopt(transfer->easy, CURLOPT_HTTPHEADER, transfer->headers);
    curl->curl_easy_setopt(transfer->easy, CURLOPT_HEADERFUNCTION, take_header);
    curl->curl_easy_setopt(transfer->easy, CURLOPT_HEADERDATA, transfer);
    curl->curl_easy_setopt(transfer->easy, CURLOPT_WRITEFUNCTION, take_body);
    curl->curl_easy_setopt(transfer->easy, CURLOPT_WRITEDATA, transfer);
    curl->curl_easy_setopt(transfer->easy, CURLOPT_PRIVATE, transfer);
}

static enum transfer_cause
end_finally(struct transfer *transfer, tundish_status status)
{
    (void)refuse(transfer, status);
    return CAUSE_FINAL;
}

/* The server has no bytes at that range. Of an empty object that is as it should be; but not every
 * store says the size with it, so it is asked for. */
static enum transfer_cause
judge_unsatisfied(struct transfer *transfer)
{
    const struct transfer_want *want = &transfer->want;
    struct answer *answer = &transfer->answer;

    if (answer->has_total && answer->total == 0 && want->first == 0 &&
        (want->total == UINT64_MAX || want->total == 0))
        return CAUSE_NONE;
    if (want->total != UINT64_MAX)
        return end_finally(transfer, changed(transfer));
    if (!answer->has_total && !transfer->asks_size && want->first == 0) {
        transfer->asks_size = true;
        return CAUSE_WRONG;
    }
    return CAUSE_WRONG;
}

static enum transfer_cause
judge_size(struct transfer *transfer)
{
    struct answer *answer = &transfer->answer;

    if (!answer->has_length || (answer->length > 0 && !transfer->want.is_look)) {
        transfer->asks_size = transfer->want.is_look;
        return CAUSE_WRONG;
    }
    answer->has_total = true;
    answer->total = answer->length;
    return CAUSE_NONE;
}

/* An answer that is complete as HTTP goes. */
static enum transfer_cause
judge_body(struct transfer *transfer)
{
    const struct transfer_want *want = &transfer->want;
    const struct answer *answer = &transfer->answer;
    uint64_t end;

    /* A body of no bytes was never looked at. */
    if (!transfer->is_accepted &&
        !(answer->code == 206 ? accept_part(transfer) : accept_whole(transfer)))
        return transfer->cause;
    if (!want->is_ranged)
        return CAUSE_NONE;
    end = answer->total - want->first < want->bytes ? answer->total - want->first : want->bytes;
    return transfer->got == end ? CAUSE_NONE : CAUSE_SHORT;
}

static enum transfer_cause
judge_answer(struct transfer *transfer)
{
    int code = transfer->answer.code;

    if (transfer->asks_size && code == 200)
        return judge_size(transfer);
    if (is_success(code))
        return judge_body(transfer);
    if (code == 416)
        return judge_unsatisfied(transfer);
    if (code == 412)
        return end_finally(transfer, changed(transfer));
    if (refusal_may_pass(code, transfer->body, transfer->body_bytes))
        return CAUSE_SERVER;
    return end_finally(transfer, refusal_of_answer(transfer));
}

static enum transfer_cause
judge(struct transfer *transfer, CURLcode result)
{
    /* Found while it came: the code of libcurl says only that it was cut. */
    if (transfer->cause != CAUSE_NONE)
        return transfer->cause;
    switch (result) {
    case CURLE_OK:
        return judge_answer(transfer);
    case CURLE_OPERATION_TIMEDOUT:
        return CAUSE_STALLED;
    case CURLE_PARTIAL_FILE:
        return CAUSE_SHORT;
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
        return CAUSE_CONNECT;
    default:
        return end_finally(transfer, refusal_of_library(transfer, result));
    }
}

enum transfer_cause
transfer_end(struct transfer *transfer, CURLcode result)
{
    enum transfer_cause cause = judge(transfer, result);

    /* Said now, in case that this was the last attempt. */
    if (cause != CAUSE_NONE && cause != CAUSE_FINAL) {
        transfer->status = refusal_of_attempt(transfer, cause, result);
        snprintf(transfer->sentence, sizeof transfer->sentence, "%s", tnd_error_text());
    }
    transfer->failures = transfer->attempt_got >= PROGRESS_BYTES ? 1 : transfer->failures + 1;
    end_attempt(transfer);
    return cause;
}

void
transfer_cut(struct transfer *transfer)
{
    transfer->cuts++;
    end_attempt(transfer);
}
