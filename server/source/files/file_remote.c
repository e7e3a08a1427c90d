/* file_remote.c - see file_remote.h. */
#include "source/files/file_remote.h"

#include <stdlib.h>

#include "remote/object.h"
#include "remote/ranges.h"
#include "remote/seen.h"

static tundish_status
have_object(struct source_file *file, struct remote_object **ret_object)
{
    struct source_services *services = file->services;
    struct remote *remote = NULL;
    int folder = -1;
    /* Pairs with the store below. */
    struct remote_object *object = atomic_load_explicit(&file->object, memory_order_acquire);
    tundish_status status;

    if (object != NULL) {
        *ret_object = object;
        return TUNDISH_OK;
    }
    status = services_cache_folder(services, &folder);
    if (status == TUNDISH_OK)
        status = remote_get(services->remote, &remote);
    if (status != TUNDISH_OK)
        return tnd_fail_while(status, "%s", file->name);
    pthread_mutex_lock(&services->lock);
    object = atomic_load_explicit(&file->object, memory_order_relaxed);
    if (object == NULL)
        status = remote_object_open(remote, folder, file->path, &object);
    if (status == TUNDISH_OK) {
        atomic_store_explicit(&file->object, object, memory_order_release);
        *ret_object = object;
    }
    pthread_mutex_unlock(&services->lock);
    return status;
}

static tundish_status
have_ranges(struct source_file *file, struct remote_ranges **ret_ranges)
{
    struct source_services *services = file->services;
    struct remote *remote = NULL;
    /* Pairs with the store below. */
    struct remote_ranges *ranges = atomic_load_explicit(&file->ranges, memory_order_acquire);
    tundish_status status = ranges == NULL ? remote_get(services->remote, &remote) : TUNDISH_OK;

    if (status == TUNDISH_OK && ranges == NULL) {
        pthread_mutex_lock(&services->lock);
        ranges = atomic_load_explicit(&file->ranges, memory_order_relaxed);
        if (ranges == NULL)
            status = remote_ranges_open(remote, file->path, &ranges);
        if (status == TUNDISH_OK)
            atomic_store_explicit(&file->ranges, ranges, memory_order_release);
        pthread_mutex_unlock(&services->lock);
    }
    if (status == TUNDISH_OK)
        *ret_ranges = ranges;
    return status;
}

/* An object has no inode and no times. Its ETag changes with its content; one without an ETag and a
 * date is never old enough for an index to be kept. */
static struct file_identity
identity_of(const struct object_identity *object)
{
    bool has_tag = object->tag[0] != '\0' || object->modified[0] != '\0';

    return (struct file_identity){ .device = UINT64_MAX,
                                   .inode = object_identity_hash(object),
                                   .size = object->bytes,
                                   .modified_ns = has_tag ? 0 : INT64_MAX,
                                   .changed_ns = has_tag ? 0 : INT64_MAX };
}

static void
note_identity(struct source_file *file, const struct object_identity *identity)
{
    pthread_mutex_lock(&file->services->lock);
    if (!file->is_known) {
        file->identity = identity_of(identity);
        file->is_known = true;
    }
    pthread_mutex_unlock(&file->services->lock);
}

static tundish_status
identify(struct source_file *file, struct remote_object **ret_object)
{
    struct object_identity identity;
    tundish_status status = have_object(file, ret_object);

    /* Pairs with the store below: each row is read by way of here, and takes no lock to learn again
     * what the object is. */
    if (status != TUNDISH_OK || atomic_load_explicit(&file->object_is_known, memory_order_acquire))
        return status;
    status = remote_object_identify(*ret_object, &identity);
    if (status == TUNDISH_OK) {
        note_identity(file, &identity);
        atomic_store_explicit(&file->object_is_known, true, memory_order_release);
    }
    return status;
}

static tundish_status
identify_ranges(struct source_file *file, struct remote_ranges **ret_ranges)
{
    struct object_identity identity;
    tundish_status status = have_ranges(file, ret_ranges);

    if (status == TUNDISH_OK)
        status = remote_ranges_identify_by_tail(*ret_ranges, &identity);
    if (status == TUNDISH_OK)
        note_identity(file, &identity);
    return status;
}

tundish_status
file_remote_open(struct source_file *file, int *ret_descriptor)
{
    struct remote_object *object = NULL;
    struct remote_ranges *ranges;
    int folder = -1;
    tundish_status status;

    *ret_descriptor = -1;
    if (file_has_ranges(file))
        return identify_ranges(file, &ranges);
    status = identify(file, &object);
    if (status != TUNDISH_OK || file_is_remote(file))
        return status;
    status = services_cache_folder(file->services, &folder);
    return status == TUNDISH_OK ? remote_object_copy(object, folder, ret_descriptor) : status;
}

tundish_status
file_remote_look(struct source_file *file)
{
    struct remote_match found = { 0 };
    struct remote *remote = NULL;
    tundish_status status = remote_get(file->services->remote, &remote);

    if (status == TUNDISH_OK)
        status = remote_seen_look(file->services->seen, remote, file->path, &found);
    free(found.name);
    return status;
}

tundish_status
file_remote_read(struct source_file *file, const struct iovec to[2], uint64_t offset,
                 size_t *ret_bytes)
{
    struct remote_object *object = NULL;
    tundish_status status = identify(file, &object);

    return status == TUNDISH_OK ? remote_object_read(object, to, offset, ret_bytes) : status;
}

/* A file of which ranges are wanted is told about each. */
void
file_remote_follow(struct source_file *file, uint64_t offset)
{
    struct remote_object *object = NULL;

    if (!file_has_ranges(file) && have_object(file, &object) == TUNDISH_OK)
        remote_object_expect(object, offset, false);
}

bool
file_remote_is_here(struct source_file *file, size_t bytes, uint64_t offset)
{
    struct remote_object *object = NULL;

    /* A failure here is told to the one who reads. */
    if (have_object(file, &object) != TUNDISH_OK)
        return true;
    remote_object_expect(object, offset, false);
    return remote_object_is_here(object, bytes, offset);
}

void
file_remote_expect(struct source_file *file, uint64_t offset)
{
    struct remote_object *object = NULL;

    if (!file_has_ranges(file) && have_object(file, &object) == TUNDISH_OK)
        remote_object_expect(object, offset, true);
}

tundish_status
file_remote_read_range(struct source_file *file, void *to, size_t bytes, uint64_t offset)
{
    struct remote_ranges *ranges;
    tundish_status status = identify_ranges(file, &ranges);

    return status == TUNDISH_OK ? remote_ranges_read(ranges, to, bytes, offset) : status;
}

void
file_remote_forget_tail(struct source_file *file)
{
    struct remote_ranges *ranges;

    if (file_has_ranges(file) && have_ranges(file, &ranges) == TUNDISH_OK)
        remote_ranges_forget_tail(ranges);
}

void
file_remote_expect_range(struct source_file *file, size_t bytes, uint64_t offset)
{
    struct remote_ranges *ranges;

    if (have_ranges(file, &ranges) == TUNDISH_OK)
        remote_ranges_expect(ranges, bytes, offset);
}
