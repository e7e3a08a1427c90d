/* remote.c - see remote.h. */
#include "remote/remote.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/memory.h"
#include "remote/disk.h"
#include "remote/remote_private.h"

/* Renew credentials so long before they expire: a request may be tried again for minutes. */
enum { RENEW_S = 300 };

static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;
static struct remote *all;
static _Atomic int has_given_up;

static const char *
first_variable(const char *a, const char *b)
{
    const char *value = getenv(a);

    if (value == NULL || value[0] == '\0')
        value = getenv(b);
    return value != NULL && value[0] != '\0' ? value : NULL;
}

static char *
find_region(const struct spec_remote *options)
{
    const char *given = options->region != NULL
                            ? options->region
                            : first_variable("AWS_REGION", "AWS_DEFAULT_REGION");
    char *region = given != NULL ? tnd_strdup(given) : profile_read_region();

    return region != NULL ? region : tnd_strdup("us-east-1");
}

static char *
copy(const char *text)
{
    return text != NULL ? tnd_strdup(text) : NULL;
}

static void
free_remote(struct remote *remote)
{
    free((void *)(uintptr_t)remote->options.endpoint);
    free((void *)(uintptr_t)remote->options.region);
    free((void *)(uintptr_t)remote->options.credentials);
    free((void *)(uintptr_t)remote->options.cache);
    disk_close(remote->disk);
    free(remote->endpoint);
    free(remote->region);
    pthread_mutex_destroy(&remote->lock);
    free(remote);
}

static tundish_status
open_remote(const struct spec_remote *options, const struct curl_library *curl,
            struct remote **ret_remote)
{
    struct remote *remote = tnd_zalloc(1, sizeof *remote);
    tundish_status status;

    remote->options = *options;
    remote->options.endpoint = copy(options->endpoint);
    remote->options.region = copy(options->region);
    remote->options.credentials = copy(options->credentials);
    remote->options.cache = copy(options->cache);
    remote->curl = curl;
    remote->endpoint =
        copy(options->endpoint != NULL ? options->endpoint
                                       : first_variable("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"));
    remote->region = find_region(options);
    pthread_mutex_init(&remote->lock, NULL);
    status = credentials_are_words(remote->region)
                 ? TUNDISH_OK
                 : tnd_fail(TUNDISH_E_PIPELINE, "remote.region contains a control character");
    if (status == TUNDISH_OK && options->cache != NULL)
        status = disk_open(remote->options.cache, options->part_bytes, options->cache_bytes,
                           &remote->disk);
    if (status == TUNDISH_OK)
        status = transfers_open(curl,
                                &(struct transfer_limits){ .connections = options->connections,
                                                           .retries = options->retries },
                                &remote->transfers);
    if (status == TUNDISH_OK)
        *ret_remote = remote;
    else
        free_remote(remote);
    return status;
}

/* TLS libraries free what the threads use when the process ends; this runs before. */
static void
stop_all(void)
{
    remote_give_up();
    for (struct remote *remote = all; remote != NULL; remote = remote->next)
        transfers_stop(remote->transfers);
}

static bool
is_same_text(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

static bool
is_same(const struct spec_remote *a, const struct spec_remote *b)
{
    return is_same_text(a->endpoint, b->endpoint) && is_same_text(a->region, b->region) &&
           is_same_text(a->credentials, b->credentials) && is_same_text(a->cache, b->cache) &&
           a->part_bytes == b->part_bytes && a->connections == b->connections &&
           a->retries == b->retries && a->cache_bytes == b->cache_bytes &&
           a->fetch_once == b->fetch_once;
}

tundish_status
remote_get(const struct spec_remote *options, struct remote **ret_remote)
{
    const struct curl_library *curl = NULL;
    struct remote *found;
    tundish_status status;

    if (options == NULL)
        options = &spec_remote_default;
    status = curl_library_open(&curl);
    if (status != TUNDISH_OK)
        return status;
    pthread_mutex_lock(&all_lock);
    for (found = all; found != NULL && !is_same(&found->options, options); found = found->next)
        continue;
    if (found == NULL) {
        status = open_remote(options, curl, &found);
        if (status == TUNDISH_OK) {
            if (all == NULL)
                atexit(stop_all);
            found->next = all;
            all = found;
        }
    }
    pthread_mutex_unlock(&all_lock);
    if (status == TUNDISH_OK)
        *ret_remote = found;
    return status;
}

void
remote_give_up(void)
{
    atomic_store_explicit(&has_given_up, 1, memory_order_relaxed);
}

bool
remote_has_given_up(void)
{
    return atomic_load_explicit(&has_given_up, memory_order_relaxed) != 0;
}

struct remote_site
remote_site_of(const struct remote *remote)
{
    return (struct remote_site){ .endpoint = remote->endpoint, .region = remote->region };
}

static bool
is_stale(const struct credentials *credentials)
{
    return credentials->expires_s != 0 &&
           tnd_clock_wall_ns() / 1000000000 > credentials->expires_s - RENEW_S;
}

/* A file that another program renews is read again for each request: it is small. */
static bool
is_kept(const struct remote *remote)
{
    const char *choice = remote->options.credentials;

    return strcmp(choice, "auto") == 0 || strcmp(choice, "environment") == 0 ||
           strcmp(choice, "none") == 0;
}

tundish_status
remote_credentials(struct remote *remote, enum remote_scheme scheme,
                   struct credentials *ret_credentials)
{
    int index = scheme == REMOTE_GS;
    struct credentials *known = &remote->credentials[index];
    tundish_status status = TUNDISH_OK;

    *ret_credentials = (struct credentials){ 0 };
    if (scheme != REMOTE_S3 && scheme != REMOTE_GS)
        return TUNDISH_OK;
    pthread_mutex_lock(&remote->lock);
    if (!remote->has_looked[index] || !is_kept(remote) || is_stale(known)) {
        struct credentials found;

        status = credentials_find(
            &(struct credential_source){ remote->options.credentials, scheme, remote->curl },
            &found);
        /* While a metadata service does not answer, old ones may still do. */
        if (status == TUNDISH_OK &&
            (found.key != NULL || found.bearer != NULL || !remote->has_looked[index])) {
            credentials_close(known);
            *known = found;
        }
        remote->has_looked[index] |= status == TUNDISH_OK;
        known->look = ++remote->looks;
    }
    if (status == TUNDISH_OK)
        *ret_credentials =
            (struct credentials){ copy(known->key),    copy(known->secret), copy(known->session),
                                  copy(known->bearer), known->expires_s,    known->look };
    pthread_mutex_unlock(&remote->lock);
    return status;
}

bool
remote_credentials_forget(struct remote *remote, enum remote_scheme scheme, uint64_t look)
{
    int index = scheme == REMOTE_GS;
    bool are_renewed;

    pthread_mutex_lock(&remote->lock);
    if (remote->credentials[index].look == look)
        remote->has_looked[index] = false;
    are_renewed = remote->credentials[index].expires_s != 0;
    pthread_mutex_unlock(&remote->lock);
    return are_renewed;
}
