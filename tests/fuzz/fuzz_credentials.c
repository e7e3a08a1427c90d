/* fuzz_credentials.c - any bytes as a file of profiles, and as the answers of a metadata service:
 * what comes of them is whole words, and nothing is lost. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/must.h"
#include "remote/credentials.h"

/* Answers that are left, one for each request, with a zero byte between them. */
static const uint8_t *answers;
static size_t answer_bytes;

static curl_write_callback write_body;
static void *write_context;

static CURL *
open_easy(void)
{
    return (CURL *)&answers;
}

static CURLcode
set_option(CURL *easy, CURLoption option, ...)
{
    va_list values;

    (void)easy;
    va_start(values, option);
    if (option == CURLOPT_WRITEFUNCTION)
        write_body = va_arg(values, curl_write_callback);
    else if (option == CURLOPT_WRITEDATA)
        write_context = va_arg(values, void *);
    va_end(values);
    return CURLE_OK;
}

/* In two pieces. */
static CURLcode
perform(CURL *easy)
{
    const uint8_t *end = answer_bytes > 0 ? memchr(answers, 0, answer_bytes) : NULL;
    size_t bytes = end != NULL ? (size_t)(end - answers) : answer_bytes, half = bytes / 2;
    char *copy = malloc(bytes + 1);
    bool is_taken;

    (void)easy;
    if (bytes > 0)
        memcpy(copy, answers, bytes);
    is_taken = write_body(copy, 1, half, write_context) == half &&
               write_body(copy + half, 1, bytes - half, write_context) == bytes - half;
    free(copy);
    bytes += end != NULL;
    answers += bytes;
    answer_bytes -= bytes;
    return is_taken ? CURLE_OK : CURLE_WRITE_ERROR;
}

static CURLcode
tell(CURL *easy, CURLINFO info, ...)
{
    va_list values;

    (void)easy;
    (void)info;
    va_start(values, info);
    *va_arg(values, long *) = 200;
    va_end(values);
    return CURLE_OK;
}

static void
close_easy(CURL *easy)
{
    (void)easy;
}

static struct curl_slist *
add_to_list(struct curl_slist *list, const char *text)
{
    must(text != NULL);
    return list;
}

static void
free_list(struct curl_slist *list)
{
    must(list == NULL);
}

static void
try_metadata(enum remote_scheme scheme, const uint8_t *data, size_t bytes)
{
    static const struct curl_library curl = { .curl_easy_init = open_easy,
                                              .curl_easy_setopt = set_option,
                                              .curl_easy_perform = perform,
                                              .curl_easy_getinfo = tell,
                                              .curl_easy_cleanup = close_easy,
                                              .curl_slist_append = add_to_list,
                                              .curl_slist_free_all = free_list };
    const struct credential_source source = { .choice = "auto", .scheme = scheme, .curl = &curl };
    struct credentials found = { 0 };

    answers = data;
    answer_bytes = bytes;
    if (metadata_find(&source, &found))
        must(scheme == REMOTE_GS ? found.bearer != NULL
                                 : found.key != NULL && found.secret != NULL);
    credentials_close(&found);
}

static bool
are_words(const struct credentials *found)
{
    return credentials_are_words(found->key) && credentials_are_words(found->secret) &&
           credentials_are_words(found->session) && credentials_are_words(found->bearer);
}

static void
try_profile(const uint8_t *data, size_t bytes)
{
    int file = memfd_create("profile", MFD_CLOEXEC);
    struct credentials found = { 0 };
    char path[32];

    must(file >= 0 && (bytes == 0 || write(file, data, bytes) == (ssize_t)bytes));
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    if (profile_read_keys(path, "default", &found))
        must(found.key != NULL && found.secret != NULL);
    credentials_close(&found);
    if (credentials_find(&(struct credential_source){ .choice = path, .scheme = REMOTE_S3 },
                         &found) == TUNDISH_OK)
        must(are_words(&found) && (found.bearer != NULL) != (found.key != NULL));
    credentials_close(&found);
    setenv("AWS_CONFIG_FILE", path, 1);
    free(profile_read_region());
    close(file);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    if (bytes == 0)
        return 0;
    setenv("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/role", 1);
    if (data[0] % 3 == 0)
        try_profile(data + 1, bytes - 1);
    else
        try_metadata(data[0] % 3 == 1 ? REMOTE_GS : REMOTE_S3, data + 1, bytes - 1);
    return 0;
}
