/* refusal.c - see refusal.h. */
#include "remote/refusal.h"

#include <string.h>

/* By the store's code; of several that begin alike, the first. Settings of s3:// and gs:// do
 * nothing for an address. */
static const struct remedy {
    const char *code, *text, *of_address; /* NULL: the same */
} remedies[] = {
    { "NoSuchKey", "there is no such object", NULL },
    { "NoSuchBucket", "there is no such bucket; check its name, remote.endpoint and remote.region",
      "there is no such bucket; check the address" },
    { "ExpiredToken", "the credentials have expired; renew them",
      "what it was signed with has expired; sign the address again" },
    { "TokenRefreshRequired", "the credentials have expired; renew them",
      "what it was signed with has expired; sign the address again" },
    { "RequestTimeTooSkewed", "this machine's clock is wrong; set it", NULL },
    { "InvalidAccessKeyId", "the store does not know the access key; check the credentials",
      "the store does not know the access key; sign the address again" },
    { "SignatureDoesNotMatch",
      "the secret does not belong to the access key, or remote.region is wrong; check both",
      "the address was changed after it was signed, or signed with a wrong secret or region; sign "
      "it again" },
    { "PermanentRedirect", "the bucket is elsewhere; set remote.region or remote.endpoint",
      "the bucket is elsewhere; write the address that it has there" },
    { "AuthorizationHeaderMalformed", "remote.region is wrong; set the bucket's",
      "the region is wrong; sign the address again, with the bucket's" },
    { "InvalidObjectState", "the object is archived; restore it first", NULL },
    { "InvalidRange", "the object is shorter than it was", NULL },
};

static const char *
remedy_of_code(const char *code, bool is_of_store)
{
    for (size_t i = 0; i < sizeof remedies / sizeof *remedies; i++)
        if (strcmp(remedies[i].code, code) == 0)
            return is_of_store || remedies[i].of_address == NULL ? remedies[i].text
                                                                 : remedies[i].of_address;
    return NULL;
}

static const char *
remedy_of(const struct transfer *transfer, const char *code)
{
    bool is_signed = transfer->credentials.key != NULL || transfer->credentials.bearer != NULL;
    bool is_of_store = transfer->want.is_of_store;
    const char *known = remedy_of_code(code, is_of_store);

    if (known != NULL)
        return known;
    switch (transfer->answer.code) {
    case 404:
    case 410:
        return "there is no such file";
    case 401:
    case 403:
        if (!is_of_store)
            return "the server does not give it to us";
        return is_signed ? "the credentials may not read it; grant them GetObject and ListBucket"
                         : "no credentials were found; set them (AWS_ACCESS_KEY_ID, "
                           "AWS_SECRET_ACCESS_KEY, a profile), or make the bucket public";
    case 301:
    case 302:
    case 303:
    case 307:
    case 308:
        return is_of_store ? "the store sends us elsewhere; set remote.region or remote.endpoint"
                           : "it sends us elsewhere, and does not say where (Location); write the "
                             "address that it should lead to";
    default:
        return is_of_store ? "check the name and remote.endpoint" : "check the address";
    }
}

bool
refusal_may_pass(int code, const char *body, size_t bytes)
{
    struct answer_error error;

    if (code == 408 || code == 429 || code >= 500)
        return code != 501 && code != 505;
    if (code != 400)
        return false;
    answer_read_error(body, bytes, &error);
    return strcmp(error.code, "RequestTimeout") == 0 || strcmp(error.code, "SlowDown") == 0;
}

static bool
calls_expired(const struct transfer *transfer, const char *code)
{
    return strcmp(code, "ExpiredToken") == 0 || strcmp(code, "TokenRefreshRequired") == 0 ||
           (transfer->answer.code == 401 && transfer->credentials.bearer != NULL);
}

tundish_status
refusal_of_answer(struct transfer *transfer)
{
    struct answer_error error;
    const char *region;

    answer_read_error(transfer->body, transfer->body_bytes, &error);
    transfer->answer.calls_expired = calls_expired(transfer, error.code);
    transfer->answer.look = transfer->credentials.look;
    region = error.region[0] != '\0' ? error.region : transfer->answer.region;
    if (region[0] != '\0' && transfer->want.is_of_store &&
        strcmp(region, transfer->want.region) != 0)
        return tnd_fail(TUNDISH_E_SYSTEM,
                        "%s: the store answers %d%s%s: the bucket is in the region %s; set "
                        "remote.region to it",
                        transfer->want.name, transfer->answer.code,
                        error.code[0] != '\0' ? " " : "", error.code, region);
    /* A stream may leave out the row of an object that is not there; nothing else is the fault of
     * its data. */
    return tnd_fail(transfer->answer.code == 404 || transfer->answer.code == 410 ? TUNDISH_E_DATA
                                                                                 : TUNDISH_E_SYSTEM,
                    "%s: the %s answers %d%s%s%s%s%s: %s", transfer->want.name,
                    transfer->want.is_of_store ? "store" : "server", transfer->answer.code,
                    error.code[0] != '\0' ? " " : "", error.code,
                    error.message[0] != '\0' ? " (" : "", error.message,
                    error.message[0] != '\0' ? ")" : "", remedy_of(transfer, error.code));
}

/* libcurl's words about this request, or else about its status. */
static const char *
words_of_library(const struct transfer *transfer, CURLcode result)
{
    /* A connection that was lost on the way may have written there first. */
    if (result == CURLE_TOO_MANY_REDIRECTS)
        return "too many redirects followed";
    return transfer->problem[0] != '\0' ? transfer->problem
                                        : transfer->curl->curl_easy_strerror(result);
}

tundish_status
refusal_of_head(const struct transfer *transfer)
{
    return tnd_fail(TUNDISH_E_SYSTEM,
                    "%s: the head of the answer is too long; check the name and remote.endpoint",
                    transfer->want.name);
}

bool
refusal_is_of_plain_server(const struct transfer *transfer)
{
    /* As OpenSSL, GnuTLS and NSS say it. */
    static const char *const words[] = { "wrong version number", "unexpected TLS packet",
                                         "packet length too long", "RECORD_TOO_LONG" };

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strstr(transfer->problem, words[i]) != NULL)
            return true;
    return false;
}

static const char *
remedy_of_library(const struct transfer *transfer, CURLcode result)
{
    switch (result) {
    case CURLE_PEER_FAILED_VERIFICATION:
        return "renew the server's certificate, ask for the name that it is made out to, or give "
               "the file of its authority in SSL_CERT_FILE; a wrong clock makes it invalid too";
    case CURLE_SSL_CACERT_BADFILE:
        return "check AWS_CA_BUNDLE, CURL_CA_BUNDLE and SSL_CERT_FILE";
    case CURLE_SSL_CONNECT_ERROR:
        return refusal_is_of_plain_server(transfer)
                   ? "the server does not speak TLS at this port; write http://, or its port for "
                     "https"
                   : "check the server's TLS";
    case CURLE_TOO_MANY_REDIRECTS:
        return "the server's redirects lead nowhere; ask for the address that they should lead to";
    case CURLE_UNSUPPORTED_PROTOCOL:
        return "only redirects to http and https are followed, and from https only to https";
    default:
        return "check the name and remote.endpoint";
    }
}

tundish_status
refusal_of_library(const struct transfer *transfer, CURLcode result)
{
    /* A header of hundreds of kilobytes. */
    if (result == CURLE_OUT_OF_MEMORY && transfer->attempt_got == 0)
        return refusal_of_head(transfer);
    return tnd_fail(TUNDISH_E_SYSTEM, "%s: the request failed: %s; %s", transfer->want.name,
                    words_of_library(transfer, result), remedy_of_library(transfer, result));
}

tundish_status
refusal_of_attempt(const struct transfer *transfer, enum transfer_cause cause, CURLcode result)
{
    struct answer_error error;
    const char *name = transfer->want.name;

    switch (cause) {
    case CAUSE_STALLED:
        return tnd_fail(TUNDISH_E_SYSTEM,
                        "%s: the server is too slow, or cannot be reached; check the network and "
                        "remote.endpoint",
                        name);
    case CAUSE_SHORT:
        return tnd_fail(TUNDISH_E_SYSTEM,
                        "%s: the server's answer ends too early; check the server, and proxies on "
                        "the way",
                        name);
    case CAUSE_ASK: /* given up in between */
    case CAUSE_WRONG:
        return tnd_fail(TUNDISH_E_SYSTEM,
                        "%s: the server sends other bytes than it was asked for; check the server, "
                        "and proxies on the way",
                        name);
    case CAUSE_SERVER:
        answer_read_error(transfer->body, transfer->body_bytes, &error);
        return tnd_fail(TUNDISH_E_SYSTEM,
                        "%s: the server answers %d%s%s; it has too much to do, or is "
                        "broken; try later, or lower remote.connections",
                        name, transfer->answer.code, error.code[0] != '\0' ? " " : "", error.code);
    default:
        return tnd_fail(TUNDISH_E_SYSTEM,
                        "%s: no connection to the server: %s; check the network and "
                        "remote.endpoint",
                        name, words_of_library(transfer, result));
    }
}
