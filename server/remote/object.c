/* object.c - see object.h. */
#include "remote/object.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/hash_farm.h"
#include "core/memory.h"
#include "core/read_write.h"
#include "remote/parts.h"

/* Parts of one object that are fetched ahead of a reader that goes through it. */
enum { AHEAD_PARTS = 16, COPY_BYTES = 1 << 20 };

struct remote_object {
    struct remote_object *next; /* of those of the remote that are shared */
    char *name;                 /* by which they are found */
    uint32_t users;
    struct remote_url url;
    struct parts *parts;
    struct part_list list;
};

/* The cache folder is known with the first file only. */
static tundish_status
have_parts(struct remote *remote, int folder, struct parts **ret_parts)
{
    const struct spec_remote *options = &remote->options;
    /* Less would not hold what is under way. */
    const struct parts_options wanted = { .disk = remote->disk,
                                          .folder = folder,
                                          .part_bytes = options->part_bytes,
                                          .bytes = options->cache_bytes,
                                          .least_count = 2 * options->connections };
    tundish_status status = TUNDISH_OK;

    pthread_mutex_lock(&remote->lock);
    if (remote->parts == NULL)
        status = parts_open(&wanted, &remote->parts);
    if (status == TUNDISH_OK)
        *ret_parts = remote->parts;
    pthread_mutex_unlock(&remote->lock);
    return status;
}

static tundish_status
object_new(struct remote *remote, int folder, const char *name, struct remote_object **ret_object)
{
    struct remote_object *object = tnd_zalloc(1, sizeof *object);
    tundish_status status = remote_url_open(name, strlen(name), &object->url);

    if (status == TUNDISH_OK)
        status = have_parts(remote, folder, &object->parts);
    if (status != TUNDISH_OK) {
        remote_url_close(&object->url);
        free(object);
        return status;
    }
    object->name = tnd_strdup(name);
    object->users = 1;
    object->list = (struct part_list){ .remote = remote,
                                       .url = &object->url,
                                       .store = stores_find(&object->url) };
    parts_begin(object->parts, &object->list);
    *ret_object = object;
    return TUNDISH_OK;
}

static void
object_free(struct remote_object *object)
{
    parts_end(object->parts, &object->list);
    remote_url_close(&object->url);
    free(object->name);
    free(object);
}

/* Take a user's share of an object that is open already. With the lock held. */
static struct remote_object *
find_shared(struct remote *remote, const char *name)
{
    struct remote_object *object = remote->shared;

    while (object != NULL && strcmp(object->name, name) != 0)
        object = object->next;
    if (object != NULL)
        object->users++;
    return object;
}

/* Where one node fetches an object for all, what that node reads itself and what it reads for
 * others are the same parts. */
static tundish_status
open_shared(struct remote *remote, int folder, const char *name, struct remote_object **ret_object)
{
    struct remote_object *object = NULL, *found;
    tundish_status status = object_new(remote, folder, name, &object);

    if (status != TUNDISH_OK)
        return status;
    pthread_mutex_lock(&remote->lock);
    found = find_shared(remote, name);
    if (found == NULL) {
        object->next = remote->shared;
        remote->shared = object;
    }
    pthread_mutex_unlock(&remote->lock);
    if (found != NULL)
        object_free(object);
    *ret_object = found != NULL ? found : object;
    return TUNDISH_OK;
}

tundish_status
remote_object_open(struct remote *remote, int folder, const char *name,
                   struct remote_object **ret_object)
{
    return remote->options.fetch_once ? open_shared(remote, folder, name, ret_object)
                                      : object_new(remote, folder, name, ret_object);
}

/* Give up a user's share. True: it was the last one. With the lock held. */
static bool
leave_shared(struct remote *remote, struct remote_object *object)
{
    struct remote_object **link = &remote->shared;

    if (--object->users > 0)
        return false;
    while (*link != NULL && *link != object)
        link = &(*link)->next;
    if (*link != NULL)
        *link = object->next;
    return true;
}

void
remote_object_close(struct remote_object *object)
{
    struct remote *remote;
    bool is_last;

    if (object == NULL)
        return;
    remote = object->list.remote;
    pthread_mutex_lock(&remote->lock);
    is_last = leave_shared(remote, object);
    pthread_mutex_unlock(&remote->lock);
    if (is_last)
        object_free(object);
}

tundish_status
remote_object_identify(struct remote_object *object, struct object_identity *ret_identity)
{
    tundish_status status = parts_identify(object->parts, &object->list);

    if (status == TUNDISH_OK)
        *ret_identity = object->list.identity;
    return status;
}

/* `count` bytes of both buffers, from `from` on. */
static void
cut(const struct iovec to[2], size_t from, size_t count, struct iovec ret_piece[2])
{
    for (int i = 0; i < 2; i++) {
        size_t begin = from < to[i].iov_len ? from : to[i].iov_len;
        size_t bytes = to[i].iov_len - begin < count ? to[i].iov_len - begin : count;

        ret_piece[i].iov_base = bytes == 0 ? NULL : (uint8_t *)to[i].iov_base + begin;
        ret_piece[i].iov_len = bytes;
        from -= begin;
        count -= bytes;
    }
}

tundish_status
remote_object_read(struct remote_object *object, const struct iovec to[2], uint64_t offset,
                   size_t *ret_bytes)
{
    uint64_t total = object->list.identity.bytes;
    uint32_t part_bytes = object->list.remote->options.part_bytes;
    size_t bytes = to[0].iov_len + to[1].iov_len, done = 0;
    tundish_status status = TUNDISH_OK;

    if (offset >= total)
        bytes = 0;
    else if (bytes > total - offset)
        bytes = (size_t)(total - offset);
    while (done < bytes && status == TUNDISH_OK) {
        uint64_t at = offset + done;
        size_t count = part_bytes - (size_t)(at % part_bytes);
        struct iovec piece[2];

        count = count < bytes - done ? count : bytes - done;
        cut(to, done, count, piece);
        status = parts_read(object->parts, &object->list, piece, at);
        done += count;
    }
    *ret_bytes = bytes;
    return status;
}

void
remote_object_expect(struct remote_object *object, uint64_t offset, bool is_lone)
{
    parts_expect(object->parts, &object->list, offset, is_lone ? 1 : AHEAD_PARTS);
}

bool
remote_object_is_here(struct remote_object *object, size_t bytes, uint64_t offset)
{
    return parts_are_here(object->parts, &object->list, bytes, offset);
}

static tundish_status
write_all(int descriptor, const uint8_t *bytes, size_t count)
{
    int error = tnd_write(descriptor, bytes, count);

    return error == 0 ? TUNDISH_OK
                      : tnd_fail_errno(error, "no room in the cache folder for a copy of it "
                                              "(TUNDISH_CACHE names another)");
}

tundish_status
remote_object_copy(struct remote_object *object, int folder, int *ret_descriptor)
{
    int descriptor = openat(folder, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    uint8_t *buffer = tnd_alloc(COPY_BYTES);
    const struct iovec to[2] = { { buffer, COPY_BYTES } };
    struct object_identity identity = { 0 };
    tundish_status status = descriptor < 0
                                ? tnd_fail_errno(errno, "cannot make a file in the cache folder")
                                : remote_object_identify(object, &identity);
    size_t got = 0;

    for (uint64_t at = 0; status == TUNDISH_OK && at < identity.bytes; at += got) {
        remote_object_expect(object, at, false);
        status = remote_object_read(object, to, at, &got);
        if (status == TUNDISH_OK)
            status = write_all(descriptor, buffer, got);
    }
    free(buffer);
    /* The decompressor reads on from where the descriptor stands. */
    if (status == TUNDISH_OK && lseek(descriptor, 0, SEEK_SET) != 0)
        status = tnd_fail_errno(errno, "cannot read a file in the cache folder");
    if (status == TUNDISH_OK)
        *ret_descriptor = descriptor;
    else if (descriptor >= 0)
        close(descriptor);
    return status;
}

tundish_status
remote_identify(struct remote *remote, const char *name, struct object_identity *ret_identity)
{
    struct remote_url url;
    tundish_status status = remote_url_open(name, strlen(name), &url);

    if (status != TUNDISH_OK)
        return status;
    status = remote_look(remote, &url, ret_identity);
    remote_url_close(&url);
    return status;
}

uint64_t
object_identity_hash(const struct object_identity *identity)
{
    const char *text = identity->tag[0] != '\0' ? identity->tag : identity->modified;

    return tnd_hash_farm(text, strlen(text));
}

uint64_t
object_version(const struct object_identity *identity)
{
    uint64_t words[2] = { object_identity_hash(identity), identity->bytes };
    uint64_t version = tnd_hash_farm(words, sizeof words);

    if (identity->tag[0] == '\0' && identity->modified[0] == '\0')
        return 0;
    return version + (version == 0);
}
