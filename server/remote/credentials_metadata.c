/* credentials_metadata.c - credentials of the machine itself: of a container's task (ECS, EKS), of
 * an instance (IMDSv2), of a machine at Google. Each is a short request to an address that only
 * this machine sees. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/clock.h"
#include "core/memory.h"
#include "remote/credentials.h"

/* Outside of such a machine nobody answers: do not wait for long. */
enum { CONNECT_MS = 1000, ANSWER_MS = 5000, BODY_BYTES_MAX = 16 << 10 };

/* How long a token is good: where it is not said, and at most. */
enum { USUAL_S = 300, LEFT_S_MAX = 24 * 3600 };

struct body {
    size_t used;
    char text[BODY_BYTES_MAX + 1];
};

static size_t
take_body(char *data, size_t size, size_t count, void *context)
{
    struct body *body = context;
    size_t bytes = size * count;

    if (bytes > BODY_BYTES_MAX - body->used)
        return 0;
    memcpy(body->text + body->used, data, bytes);
    body->used += bytes;
    body->text[body->used] = '\0';
    return bytes;
}

struct question {
    const char *url;
    const char *method; /* NULL: GET */
    const char *header; /* or NULL */
};

/* True: answered with 200, the body in `body`. */
static bool
ask(const struct curl_library *curl, const struct question *question, struct body *body)
{
    CURL *easy = curl->curl_easy_init();
    struct curl_slist *headers = NULL;
    long code = 0;
    bool is_answered;

    body->used = 0;
    body->text[0] = '\0';
    tnd_must_have(easy != NULL);
    if (question->header != NULL)
        headers = curl->curl_slist_append(headers, question->header);
    curl->curl_easy_setopt(easy, CURLOPT_URL, question->url);
    curl->curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl->curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl->curl_easy_setopt(easy, CURLOPT_NOPROXY, "*");
    curl->curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
    curl->curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)ANSWER_MS);
    curl->curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_body);
    curl->curl_easy_setopt(easy, CURLOPT_WRITEDATA, body);
    curl->curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
    if (question->method != NULL)
        curl->curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, question->method);
    is_answered = curl->curl_easy_perform(easy) == CURLE_OK &&
                  curl->curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &code) == CURLE_OK &&
                  code == 200;
    curl->curl_slist_free_all(headers);
    curl->curl_easy_cleanup(easy);
    return is_answered;
}

/* The text of "name": "text" in a flat object. These services escape nothing but slashes. NULL: it
 * is not there. */
static char *
json_text(const char *json, const char *name)
{
    char *quoted = tnd_sprintf("\"%s\"", name);
    const char *at = strstr(json, quoted), *end;
    char *text = NULL, *to;

    if (at != NULL)
        at += strlen(quoted) + strspn(at + strlen(quoted), " \t\r\n:");
    free(quoted);
    if (at == NULL || *at != '"' || (end = strchr(at + 1, '"')) == NULL)
        return NULL;
    text = to = tnd_strndup(at + 1, (size_t)(end - at - 1));
    for (const char *from = text; *from != '\0'; from++)
        if (*from != '\\')
            *to++ = *from;
    *to = '\0';
    return text;
}

/* 2026-01-31T12:00:00Z. */
static int64_t
read_moment(const char *text)
{
    struct tm time = { 0 };

    if (text == NULL || sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2d", &time.tm_year, &time.tm_mon,
                               &time.tm_mday, &time.tm_hour, &time.tm_min, &time.tm_sec) != 6)
        return 0;
    time.tm_year -= 1900;
    time.tm_mon--;
    return timegm(&time);
}

static bool
read_keys(const char *json, struct credentials *ret_credentials)
{
    char *expires = json_text(json, "Expiration");
    struct credentials found = {
        .key = json_text(json, "AccessKeyId"),
        .secret = json_text(json, "SecretAccessKey"),
        .session = json_text(json, "Token"),
        .expires_s = read_moment(expires),
    };

    free(expires);
    if (found.key == NULL || found.secret == NULL) {
        credentials_close(&found);
        return false;
    }
    *ret_credentials = found;
    return true;
}

/* The token for a container's service, from the file that the platform renews. */
static char *
container_header(void)
{
    const char *path = getenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
    const char *given = getenv("AWS_CONTAINER_AUTHORIZATION_TOKEN");
    FILE *file = path != NULL ? fopen(path, "re") : NULL;
    char token[BODY_BYTES_MAX] = "";
    char *header = NULL;

    if (file != NULL && fgets(token, sizeof token, file) != NULL) {
        token[strcspn(token, "\r\n")] = '\0';
        given = token;
    }
    if (file != NULL)
        fclose(file);
    if (given != NULL && credentials_are_words(given))
        header = tnd_sprintf("Authorization: %s", given);
    explicit_bzero(token, sizeof token);
    return header;
}

/* Over plain HTTP the token goes to this machine alone, and to the addresses of the platforms. */
static bool
may_be_asked(const char *url)
{
    static const char *const hosts[] = { "https://",
                                         "http://127.0.0.1",
                                         "http://localhost",
                                         "http://169.254.170.2/",
                                         "http://169.254.170.23/",
                                         "http://[::1]" };

    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++) {
        size_t bytes = strlen(hosts[i]);
        bool ends_in_host = i > 0 && hosts[i][bytes - 1] != '/';

        if (strncmp(url, hosts[i], bytes) == 0 &&
            (!ends_in_host || url[bytes] == ':' || url[bytes] == '/' || url[bytes] == '\0'))
            return true;
    }
    return false;
}

static bool
find_of_container(const struct curl_library *curl, struct body *body,
                  struct credentials *ret_credentials)
{
    const char *relative = getenv("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
    const char *full = getenv("AWS_CONTAINER_CREDENTIALS_FULL_URI");
    char *url = relative != NULL ? tnd_sprintf("http://169.254.170.2%s", relative)
                : full != NULL   ? tnd_strdup(full)
                                 : NULL;
    char *header = container_header();
    bool found = url != NULL && may_be_asked(url) &&
                 ask(curl, &(struct question){ url, NULL, header }, body) &&
                 read_keys(body->text, ret_credentials);

    free(url);
    if (header != NULL)
        explicit_bzero(header, strlen(header));
    free(header);
    return found;
}

static bool
find_of_instance(const struct curl_library *curl, struct body *body,
                 struct credentials *ret_credentials)
{
    static const char path[] = "latest/meta-data/iam/security-credentials/";
    const char *disabled = getenv("AWS_EC2_METADATA_DISABLED");
    const char *endpoint = getenv("AWS_EC2_METADATA_SERVICE_ENDPOINT");
    char *url, *header;
    bool found;

    if (disabled != NULL && strcmp(disabled, "true") == 0)
        return false;
    if (endpoint == NULL || endpoint[0] == '\0')
        endpoint = "http://169.254.169.254/";
    url = tnd_sprintf("%s%slatest/api/token", endpoint,
                      endpoint[strlen(endpoint) - 1] == '/' ? "" : "/");
    found =
        ask(curl, &(struct question){ url, "PUT", "X-aws-ec2-metadata-token-ttl-seconds: 21600" },
            body);
    found = found && credentials_are_words(body->text);
    header = tnd_sprintf("X-aws-ec2-metadata-token: %s", body->text);
    url[strlen(url) - strlen("latest/api/token")] = '\0';
    if (found) {
        char *roles = tnd_sprintf("%s%s", url, path);

        found = ask(curl, &(struct question){ roles, NULL, header }, body);
        free(roles);
    }
    if (found) {
        char *role;

        body->text[strcspn(body->text, "\r\n")] = '\0';
        role = tnd_sprintf("%s%s%s", url, path, body->text);
        found = credentials_are_words(role) &&
                ask(curl, &(struct question){ role, NULL, header }, body) &&
                read_keys(body->text, ret_credentials);
        free(role);
    }
    explicit_bzero(header, strlen(header));
    free(header);
    free(url);
    return found;
}

static bool
find_at_google(const struct curl_library *curl, struct body *body,
               struct credentials *ret_credentials)
{
    const char *host = getenv("GCE_METADATA_HOST");
    char *url = tnd_sprintf("http://%s/computeMetadata/v1/instance/service-accounts/default/token",
                            host != NULL && host[0] != '\0' ? host : "metadata.google.internal");
    const char *left;
    int64_t left_s = USUAL_S;
    bool found = ask(curl, &(struct question){ url, NULL, "Metadata-Flavor: Google" }, body);

    free(url);
    if (!found)
        return false;
    ret_credentials->bearer = json_text(body->text, "access_token");
    left = strstr(body->text, "\"expires_in\"");
    if (left != NULL)
        left_s = strtol(left + 12 + strcspn(left + 12, "0123456789"), NULL, 10);
    /* The answer may say anything. */
    left_s = left_s < LEFT_S_MAX ? left_s : LEFT_S_MAX;
    ret_credentials->expires_s = tnd_clock_wall_ns() / 1000000000 + left_s;
    return ret_credentials->bearer != NULL;
}

bool
metadata_find(const struct credential_source *source, struct credentials *ret_credentials)
{
    struct body *body = tnd_zalloc(1, sizeof *body);
    bool found = source->scheme == REMOTE_GS
                     ? find_at_google(source->curl, body, ret_credentials)
                     : find_of_container(source->curl, body, ret_credentials) ||
                           find_of_instance(source->curl, body, ret_credentials);

    explicit_bzero(body, sizeof *body);
    free(body);
    return found;
}
