/* request.c - see request.h. */
#include "remote/request.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/memory.h"
#include "core/read_write.h"

enum { WAIT_NS = 100000000 };

tundish_status
request_object(struct remote *remote, const struct remote_url *url,
               const struct object_identity *identity, struct transfer_want *want)
{
    struct remote_site site = remote_site_of(remote);
    struct credentials credentials;
    char *address = want->address == NULL ? remote_url_address(url, &site) : NULL;
    tundish_status status = remote_credentials(remote, url->scheme, &credentials);

    want->name = url->name;
    if (address != NULL)
        want->address = address;
    want->region = site.region;
    want->is_of_store = remote_url_is_of_store(url);
    want->credentials = &credentials;
    if (want->store == NULL)
        want->store = stores_find(url);
    /* A HEAD request costs no room. */
    want->whole_max = want->is_look && remote->disk != NULL ? remote->options.cache_bytes
                                                            : remote->options.part_bytes;
    want->has_disk = remote->disk != NULL;
    want->total = UINT64_MAX;
    if (identity != NULL && identity->is_known) {
        want->tag = identity->tag[0] != '\0' ? identity->tag : NULL;
        want->modified = identity->modified[0] != '\0' ? identity->modified : NULL;
        want->total = identity->bytes;
    }
    if (status == TUNDISH_OK)
        transfers_add(remote->transfers, want);
    credentials_close(&credentials);
    free(address);
    return status == TUNDISH_OK ? status : tnd_fail_while(status, "%s", url->name);
}

uint32_t
remote_part_bytes(const struct remote *remote)
{
    return remote->options.part_bytes;
}

struct object_identity
request_identity(const struct answer *answer)
{
    struct object_identity identity = { .is_known = true, .bytes = answer->total };

    memcpy(identity.tag, answer->tag, sizeof identity.tag);
    memcpy(identity.modified, answer->modified, sizeof identity.modified);
    return identity;
}

struct reply {
    struct remote *remote;
    const struct remote_url *url; /* of the one that asked */
    enum remote_scheme scheme;
    struct store *store;
    pthread_mutex_t lock;
    pthread_cond_t over;
    bool is_over, is_left; /* ... by the one that waited */
    tundish_status status;
    char *text;
    struct answer answer;
    int file; /* -1: they go into memory */
    uint8_t *bytes;
    size_t used, room;
};

static void
free_reply(struct reply *reply)
{
    pthread_cond_destroy(&reply->over);
    pthread_mutex_destroy(&reply->lock);
    if (reply->file >= 0)
        close(reply->file);
    free(reply->bytes);
    free(reply->text);
    free(reply);
}

static bool
put_into_file(const struct reply *reply, uint64_t offset, const void *bytes, size_t count)
{
    int error = tnd_write_at(reply->file, bytes, count, offset);

    if (error != 0)
        (void)tnd_fail_errno(error, "no room for it in the cache on disk (remote.cache)");
    return error == 0;
}

/* Only this thread touches the bytes until the reply is over. */
static bool
put_bytes(void *context, uint64_t offset, const void *bytes, size_t count)
{
    struct reply *reply = context;
    size_t end = (size_t)offset + count;

    if (reply->file >= 0)
        return put_into_file(reply, offset, bytes, count);
    if (end > reply->room) {
        reply->room = end > 2 * reply->room ? end : 2 * reply->room;
        reply->bytes = tnd_realloc(reply->bytes, reply->room, 1);
    }
    memcpy(reply->bytes + offset, bytes, count);
    reply->used = end;
    return true;
}

static void
end_reply(void *context, tundish_status status, const struct answer *answer)
{
    struct reply *reply = context;
    bool is_left;

    if (answer->calls_expired)
        (void)remote_credentials_forget(reply->remote, reply->scheme, answer->look);
    pthread_mutex_lock(&reply->lock);
    reply->is_over = true;
    reply->status = status;
    if (status != TUNDISH_OK)
        reply->text = tnd_strdup(tnd_error_text());
    reply->answer = *answer;
    is_left = reply->is_left;
    pthread_cond_signal(&reply->over);
    pthread_mutex_unlock(&reply->lock);
    if (is_left)
        free_reply(reply);
}

/* The file is the reply's, unless it fails. */
static tundish_status
ask_into(struct remote *remote, const struct remote_url *url,
         const struct object_identity *identity, struct transfer_want *want, int file,
         struct reply **ret_reply)
{
    struct reply *reply = tnd_zalloc(1, sizeof *reply);
    tundish_status status;

    reply->remote = remote;
    reply->file = file;
    reply->url = url;
    reply->scheme = url->scheme;
    reply->store = want->store = stores_find(url);
    pthread_mutex_init(&reply->lock, NULL);
    tnd_condition_open(&reply->over);
    want->put = put_bytes;
    want->done = end_reply;
    want->context = reply;
    status = request_object(remote, url, identity, want);
    if (status == TUNDISH_OK)
        *ret_reply = reply;
    else
        free_reply(reply);
    return status;
}

static tundish_status
ask(struct remote *remote, const struct remote_url *url, const struct object_identity *identity,
    struct transfer_want *want, struct reply **ret_reply)
{
    return ask_into(remote, url, identity, want, -1, ret_reply);
}

tundish_status
request_ask_all(struct remote *remote, const struct remote_url *url, const char *address,
                uint64_t bytes_max, struct reply **ret_reply)
{
    struct transfer_want want = { .address = address, .bytes = bytes_max, .is_urgent = true };

    return ask(remote, url, NULL, &want, ret_reply);
}

tundish_status
request_ask_look(struct remote *remote, const struct remote_url *url, struct reply **ret_reply)
{
    struct transfer_want want = { .is_look = true, .is_urgent = true };

    return ask(remote, url, NULL, &want, ret_reply);
}

tundish_status
request_ask(struct remote *remote, const struct remote_url *url, const struct reply_range *range,
            struct reply **ret_reply)
{
    struct transfer_want want = { .is_ranged = true,
                                  .first = range->first,
                                  .bytes = range->bytes,
                                  .is_urgent = range->is_urgent };

    return ask(remote, url, range->identity, &want, ret_reply);
}

tundish_status
request_ask_into(struct remote *remote, const struct remote_url *url,
                 const struct object_identity *identity, int file, struct reply **ret_reply)
{
    struct transfer_want want = { .is_ranged = true,
                                  .bytes = remote->options.cache_bytes,
                                  .is_urgent = true };

    return ask_into(remote, url, identity, &want, file, ret_reply);
}

bool
request_is_too_large(struct reply *reply, struct object_identity *ret_identity)
{
    bool is_too_large;

    pthread_mutex_lock(&reply->lock);
    is_too_large = reply->is_over && reply->answer.is_too_large;
    *ret_identity = request_identity(&reply->answer);
    ret_identity->is_known = reply->answer.has_total;
    pthread_mutex_unlock(&reply->lock);
    return is_too_large;
}

tundish_status
request_ask_tail(struct remote *remote, const struct remote_url *url, uint64_t bytes,
                 struct reply **ret_reply)
{
    struct transfer_want want = {
        .is_ranged = true, .is_tail = true, .bytes = bytes, .is_urgent = true
    };

    return ask(remote, url, NULL, &want, ret_reply);
}

tundish_status
request_wait(struct reply *reply, const uint8_t **ret_bytes, size_t *ret_count,
             const struct answer **ret_answer)
{
    struct store_wait wait;
    tundish_status status = TUNDISH_OK;

    store_wait_begin(reply->store, &wait, reply->url->name);
    pthread_mutex_lock(&reply->lock);
    while (!reply->is_over && status == TUNDISH_OK) {
        struct timespec until;

        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += WAIT_NS;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&reply->over, &reply->lock, &until);
        if (!reply->is_over && remote_has_given_up())
            status = tnd_fail(TUNDISH_STOPPED, "stopped while a server was waited for");
    }
    if (status == TUNDISH_OK && reply->status != TUNDISH_OK)
        status = tnd_fail(reply->status, "%s", reply->text);
    pthread_mutex_unlock(&reply->lock);
    store_wait_end(reply->store, &wait);
    if (status == TUNDISH_OK) {
        *ret_bytes = reply->bytes;
        *ret_count = reply->used;
        *ret_answer = &reply->answer;
    }
    return status;
}

void
request_close(struct reply *reply)
{
    bool is_over;

    if (reply == NULL)
        return;
    pthread_mutex_lock(&reply->lock);
    is_over = reply->is_over;
    reply->is_left = true;
    pthread_mutex_unlock(&reply->lock);
    if (is_over)
        free_reply(reply);
}

tundish_status
remote_look(struct remote *remote, const struct remote_url *url,
            struct object_identity *ret_identity)
{
    struct reply *reply = NULL;
    const struct answer *answer;
    const uint8_t *bytes;
    size_t count;
    tundish_status status = request_ask_look(remote, url, &reply);

    if (status == TUNDISH_OK)
        status = request_wait(reply, &bytes, &count, &answer);
    if (status == TUNDISH_OK)
        *ret_identity = request_identity(answer);
    request_close(reply);
    return status;
}
