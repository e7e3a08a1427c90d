/* whole.c - see whole.h. */
#include "remote/whole.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/hash_farm.h"
#include "core/memory.h"
#include "core/read_write.h"
#include "remote/disk.h"

/* Threads that want the same object wait for the one that reads it. */
enum { LOCKS = 16 };
static pthread_mutex_t locks[LOCKS] = {
    PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER,
    PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER,
    PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER,
    PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER,
    PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER,
    PTHREAD_MUTEX_INITIALIZER,
};

bool
whole_is_wanted(const struct remote *remote, const struct answer *answer)
{
    return answer->is_too_large && remote->disk != NULL && !disk_is_off(remote->disk);
}

static tundish_status
keep_parts(struct remote *remote, const char *address, const struct object_identity *identity,
           int file)
{
    uint32_t part_bytes = remote->options.part_bytes;
    struct disk_kept kept = { .address = address, .identity = *identity };
    uint8_t *bytes = tnd_alloc(part_bytes);
    int error = 0;

    for (uint64_t at = 0; at < identity->bytes && error == 0; at += part_bytes, kept.part++) {
        uint64_t left = identity->bytes - at;
        size_t got = 0;

        kept.bytes = left < part_bytes ? left : part_bytes;
        error = tnd_read_at(file, bytes, (size_t)kept.bytes, at, &got);
        if (error == 0)
            disk_put(remote->disk, &kept, bytes);
    }
    free(bytes);
    return error == 0 ? TUNDISH_OK : tnd_fail_errno(error, "the cache of what was fetched");
}

static tundish_status
fetch(struct remote *remote, const struct remote_url *url, const char *address,
      struct object_identity *identity)
{
    struct reply *reply = NULL;
    const struct answer *answer;
    const uint8_t *bytes;
    size_t count;
    int file = -1;
    tundish_status status = disk_open_unnamed(remote->disk, &file);

    if (status == TUNDISH_OK)
        status = request_ask_into(remote, url, identity, file, &reply);

    if (status == TUNDISH_OK)
        status = request_wait(reply, &bytes, &count, &answer);
    if (status == TUNDISH_OK) {
        *identity = request_identity(answer);
        status = keep_parts(remote, address, identity, file);
    }
    request_close(reply);
    return status;
}

tundish_status
whole_have_part(struct remote *remote, const struct remote_url *url, uint32_t part,
                struct object_identity *identity, int *ret_descriptor)
{
    struct remote_site site = remote_site_of(remote);
    char *address = remote_url_address(url, &site);
    const struct disk_wanted wanted = { .address = address, .identity = identity, .part = part };
    pthread_mutex_t *lock = &locks[tnd_hash_farm(address, strlen(address)) % LOCKS];
    tundish_status status = TUNDISH_OK;

    pthread_mutex_lock(lock);
    if (!identity->is_known || !disk_take(remote->disk, &wanted, ret_descriptor)) {
        status = fetch(remote, url, address, identity);
        if (status == TUNDISH_OK && !disk_take(remote->disk, &wanted, ret_descriptor))
            status = tnd_fail(TUNDISH_E_SYSTEM,
                              "%s: its server does not send parts of files (Range), and the cache "
                              "has no room for all of it (remote.cache_bytes)",
                              url->name);
    }
    pthread_mutex_unlock(lock);
    free(address);
    return status;
}

tundish_status
whole_read(struct remote *remote, const struct remote_url *url, struct whole_span span,
           struct object_identity *identity, uint8_t *to)
{
    uint32_t part_bytes = remote->options.part_bytes;
    tundish_status status = TUNDISH_OK;

    for (size_t done = 0; done < span.bytes && status == TUNDISH_OK;) {
        uint64_t at = span.offset + done, from = at % part_bytes;
        size_t count = part_bytes - (size_t)from, got = 0;
        int descriptor = -1, error;

        count = count < span.bytes - done ? count : span.bytes - done;
        status = whole_have_part(remote, url, (uint32_t)(at / part_bytes), identity, &descriptor);
        if (status != TUNDISH_OK)
            break;
        error = tnd_read_at(descriptor, to + done, count, from, &got);
        close(descriptor);
        if (error != 0 || got < count)
            status = tnd_fail_errno(error != 0 ? error : EIO, "the cache of what was fetched");
        done += count;
    }
    return status;
}
