/* file_remote.c - see file_remote.h. */
#include "source/files/file_remote.h"

#include "remote/object.h"

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

static tundish_status
identify(struct source_file *file, struct remote_object **ret_object)
{
    struct object_identity identity;
    tundish_status status = have_object(file, ret_object);

    if (status == TUNDISH_OK)
        status = remote_object_identify(*ret_object, &identity);
    if (status != TUNDISH_OK)
        return status;
    pthread_mutex_lock(&file->services->lock);
    if (!file->is_known) {
        file->identity = identity_of(&identity);
        file->is_known = true;
    }
    pthread_mutex_unlock(&file->services->lock);
    return TUNDISH_OK;
}

tundish_status
file_remote_open(struct source_file *file, int *ret_descriptor)
{
    struct remote_object *object;
    int folder = -1;
    tundish_status status = identify(file, &object);

    *ret_descriptor = -1;
    if (status != TUNDISH_OK || file_is_remote(file))
        return status;
    status = services_cache_folder(file->services, &folder);
    return status == TUNDISH_OK ? remote_object_copy(object, folder, ret_descriptor) : status;
}

tundish_status
file_remote_look(struct source_file *file)
{
    struct object_identity identity;
    struct remote *remote = NULL;
    tundish_status status = remote_get(file->services->remote, &remote);

    return status == TUNDISH_OK ? remote_identify(remote, file->path, &identity) : status;
}

tundish_status
file_remote_read(struct source_file *file, void *to, size_t bytes, uint64_t offset,
                 size_t *ret_bytes)
{
    struct remote_object *object;
    tundish_status status = identify(file, &object);

    return status == TUNDISH_OK ? remote_object_read(object, to, bytes, offset, ret_bytes) : status;
}

void
file_remote_follow(struct source_file *file, uint64_t offset)
{
    struct remote_object *object;

    if (have_object(file, &object) == TUNDISH_OK)
        remote_object_expect(object, offset, false);
}

void
file_remote_expect(struct source_file *file, uint64_t offset)
{
    struct remote_object *object;

    if (have_object(file, &object) == TUNDISH_OK)
        remote_object_expect(object, offset, true);
}
