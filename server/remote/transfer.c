/* transfer.c - a request, and how its attempts are set up. */
#include "remote/transfer_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/memory.h"

/* A connection below this for so long is cut. */
enum { SLOW_BYTES_A_SECOND = 64 << 10, SLOW_S = 10, CONNECT_MS = 10000, REDIRECTS_MAX = 5 };

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

void
transfer_end_attempt(struct transfer *transfer)
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
    transfer_end_attempt(transfer);
    credentials_close(&transfer->credentials);
    free((void *)(uintptr_t)transfer->want.name);
    free((void *)(uintptr_t)transfer->want.address);
    free((void *)(uintptr_t)transfer->want.tag);
    free((void *)(uintptr_t)transfer->want.modified);
    free((void *)(uintptr_t)transfer->want.region);
    free(transfer);
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
    if (want->is_tail)
        snprintf(range, sizeof range, "bytes=-%llu", (unsigned long long)want->bytes);
    else
        snprintf(range, sizeof range, "bytes=%llu-%llu",
                 (unsigned long long)(want->first + transfer->got),
                 (unsigned long long)(want->first + want->bytes - 1));
    add_header(transfer, "Range", range);
}

static bool
is_secure(const struct transfer_want *want)
{
    return strncmp(want->address, "https:", 6) == 0;
}

static void
set_rules(struct transfer *transfer)
{
    const struct curl_library *curl = transfer->curl;
    CURL *easy = transfer->easy;

    curl->curl_easy_setopt(easy, CURLOPT_URL, transfer->want.address);
    curl->curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl->curl_easy_setopt(easy, CURLOPT_REDIR_PROTOCOLS_STR,
                           is_secure(&transfer->want) ? "https" : "http,https");
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
    transfer->is_whole = false;
    transfer->has_enough = false;
    transfer->cause = CAUSE_NONE;
    /* Without a range all comes once more. */
    if (!transfer->want.is_ranged)
        transfer->got = 0;
    transfer->head_bytes = 0;
    transfer->body_bytes = 0;
    transfer->attempt_got = 0;
    transfer->problem[0] = '\0';
    transfer->begun_ns = tnd_clock_ns();
    set_rules(transfer);
    set_authorities(transfer);
    if (!transfer->asks_size && !transfer->asks_whole)
        set_range(transfer);
    add_conditions(transfer);
    /* A signature would hold it, and some stores change it on the way. */
    if (!transfer->want.is_of_store)
        add_header(transfer, "Accept-Encoding", "identity");
    sign(transfer);
    curl->curl_easy_setopt(transfer->easy, CURLOPT_HTTPHEADER, transfer->headers);
    curl->curl_easy_setopt(transfer->easy, CURLOPT_HEADERFUNCTION, transfer_take_header);
    curl->curl_easy_setopt(transfer->easy, CURLOPT_HEADERDATA, transfer);
    curl->curl_easy_setopt(transfer->easy, CURLOPT_WRITEFUNCTION, transfer_take_body);
    curl->curl_easy_setopt(transfer->easy, CURLOPT_WRITEDATA, transfer);
    curl->curl_easy_setopt(transfer->easy, CURLOPT_ERRORBUFFER, transfer->problem);
    curl->curl_easy_setopt(transfer->easy, CURLOPT_PRIVATE, transfer);
}
