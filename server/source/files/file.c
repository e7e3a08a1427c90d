/* file.c - opens, compares and reads files. */
#include "source/files/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "content/records/missing_file.h"
#include "core/clock.h"
#include "core/memory.h"
#include "core/read_write.h"
#include "remote/object.h"
#include "remote/ranges.h"
#include "source/files/file_remote.h"
#include "source/peer/peer.h"

/* How often the identity of a file that is read is compared. */
#define LOOK_EVERY_NS INT64_C(1000000000)

static tundish_status
file_fail(const struct source_file *file, const char *what, int error)
{
    char reason[128];
    /* A lack of descriptors, memory or a working disk is not the fault of the data. */
    bool is_resource = error == EMFILE || error == ENFILE || error == ENOMEM || error == EIO;

    return tnd_fail(is_resource ? TUNDISH_E_SYSTEM : TUNDISH_E_DATA, "%s: %s: %s", file->name, what,
                    strerror_r(error, reason, sizeof reason));
}

struct file_identity
file_identity_of(const struct stat *about)
{
    return (struct file_identity){
        .device = about->st_dev,
        .inode = about->st_ino,
        .size = (uint64_t)about->st_size,
        .modified_ns = about->st_mtim.tv_sec * INT64_C(1000000000) + about->st_mtim.tv_nsec,
        .changed_ns = about->st_ctim.tv_sec * INT64_C(1000000000) + about->st_ctim.tv_nsec,
    };
}

/* The time of the last status change is not compared: links and permissions may come and go. */
static tundish_status
compare_identity(const struct source_file *file, const struct file_identity *now)
{
    const struct file_identity *then = &file->identity;

    if (now->size < then->size)
        return tnd_fail(TUNDISH_E_DATA,
                        "%s: the file became shorter while it was served: %llu bytes, before %llu",
                        file->name, (unsigned long long)now->size, (unsigned long long)then->size);
    if (now->device != then->device || now->inode != then->inode || now->size != then->size ||
        now->modified_ns != then->modified_ns)
        return tnd_fail(
            TUNDISH_E_DATA,
            "%s: the file was changed or replaced while it was served; start the server again",
            file->name);
    return TUNDISH_OK;
}

/* The first look records the identity of the file, and later ones compare it. */
static tundish_status
note_or_compare(struct source_file *file, const struct file_identity *now)
{
    tundish_status status = TUNDISH_OK;

    pthread_mutex_lock(&file->services->lock);
    if (file->is_known) {
        status = compare_identity(file, now);
    } else {
        file->identity = *now;
        file->is_known = true;
    }
    pthread_mutex_unlock(&file->services->lock);
    return status;
}

static tundish_status
identify_file(struct source_file *file, int descriptor)
{
    struct stat about;
    struct file_identity now;

    if (fstat(descriptor, &about) != 0)
        return file_fail(file, "cannot be examined", errno);
    if (S_ISDIR(about.st_mode))
        return file_fail(file, "cannot be read", EISDIR);
    /* A pipe or a device gives other bytes at each read. */
    if (!S_ISREG(about.st_mode))
        return tnd_fail(TUNDISH_E_DATA, "%s: it is not a regular file", file->name);
    now = file_identity_of(&about);
    return note_or_compare(file, &now);
}

tundish_status
file_open(struct source_file *file, int *ret_descriptor)
{
    int descriptor;
    tundish_status status;

    *ret_descriptor = -1;
    if (file->peers != NULL)
        return peer_identify(file);
    if (file->is_url)
        return file_remote_open(file, ret_descriptor);
    /* O_NONBLOCK: opening a pipe by that name must not hang the server. It has no effect on regular
     * files. */
    descriptor = open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    /* The kernel's message alone would not explain why a pattern does not work here. */
    if (descriptor < 0 && errno == ENOENT && strpbrk(file->path, "*?[") != NULL)
        return file_fail(
            file, "cannot be opened; it is used as a file name, only list_files takes patterns",
            ENOENT);
    if (descriptor < 0 && errno == ENOENT)
        return tnd_fail(TUNDISH_E_DATA, "%s: cannot be opened: No such file or directory%s",
                        file->name, missing_file_note(file->path));
    if (descriptor < 0)
        return file_fail(file, "cannot be opened", errno);
    status = identify_file(file, descriptor);
    if (status != TUNDISH_OK)
        close(descriptor);
    else
        *ret_descriptor = descriptor;
    return status;
}

tundish_status
file_compare(const struct source_file *file, int descriptor)
{
    struct stat about;
    struct file_identity now;

    /* Each request for an object says which version of it is meant. */
    if (file->is_url)
        return TUNDISH_OK;
    if (fstat(descriptor, &about) != 0)
        return file_fail(file, "cannot be examined", errno);
    now = file_identity_of(&about);
    return compare_identity(file, &now);
}

static tundish_status
enter_file(struct source_file *file, int *ret_descriptor)
{
    int descriptor = -1;
    tundish_status status;

    if (door_enter(&file->door, ret_descriptor))
        return TUNDISH_OK;
    status = file_open(file, &descriptor); /* without a lock, because it may be slow */
    if (status == TUNDISH_OK)
        door_open(&file->services->doors, &file->door, descriptor, ret_descriptor);
    return status;
}

tundish_status
file_read_some(int descriptor, void *to, size_t bytes, uint64_t offset, size_t *ret_bytes)
{
    int error = tnd_read_at(descriptor, to, bytes, offset, ret_bytes);

    return error == 0 ? TUNDISH_OK : tnd_fail_errno(error, "cannot be read");
}

tundish_status
file_read_opened(struct source_file *file, int descriptor, void *to, size_t bytes, uint64_t offset,
                 size_t *ret_bytes)
{
    if (descriptor >= 0)
        return file_read_some(descriptor, to, bytes, offset, ret_bytes);
    file_remote_follow(file, offset);
    return file_remote_read(file, (struct iovec[2]){ { to, bytes } }, offset, ret_bytes);
}

/* Bytes that were overwritten are as bad as bytes that are gone, but a read does not notice them.
 * So the identity is compared once a second. */
static tundish_status
look_again(struct source_file *file, int descriptor)
{
    int64_t now = tnd_clock_coarse_ns();

    if (now - atomic_load_explicit(&file->looked_at_ns, memory_order_relaxed) < LOOK_EVERY_NS)
        return TUNDISH_OK;
    atomic_store_explicit(&file->looked_at_ns, now, memory_order_relaxed);
    return file_compare(file, descriptor);
}

/* A read under way, through the door or from the unpacked file. */
struct visit {
    struct source_file *file;
    int descriptor;
    bool is_unpacked;
};

static tundish_status
visit_begin(struct source_file *file, struct visit *ret_visit)
{
    int unpacked = atomic_load_explicit(&file->unpacked, memory_order_acquire);
    struct visit visit = { file, unpacked - 1, unpacked != 0 };
    tundish_status status = visit.is_unpacked ? TUNDISH_OK : enter_file(file, &visit.descriptor);

    if (status == TUNDISH_OK)
        *ret_visit = visit;
    return status;
}

/* A short read is good only if the file still ends where it always did. */
static tundish_status
visit_end(const struct visit *visit, tundish_status status, bool is_short)
{
    struct source_file *file = visit->file;

    if (status != TUNDISH_OK)
        status = tnd_fail_while(status, "%s", file->name);
    else if (!visit->is_unpacked)
        status =
            is_short ? file_compare(file, visit->descriptor) : look_again(file, visit->descriptor);
    if (!visit->is_unpacked)
        door_leave(&file->door);
    return status;
}

/* Into two buffers, as many bytes as there are. */
static tundish_status
read_both(struct source_file *file, const struct iovec to[2], uint64_t offset, size_t *ret_bytes)
{
    struct visit visit;
    tundish_status status;
    int error;

    if (file_is_remote(file))
        return file_remote_read(file, to, offset, ret_bytes);
    status = visit_begin(file, &visit);
    if (status != TUNDISH_OK)
        return status;
    error = tnd_read_both_at(visit.descriptor, to, offset, ret_bytes);
    if (error != 0)
        status = tnd_fail_errno(error, "cannot be read");
    return visit_end(&visit, status, *ret_bytes < to[0].iov_len + to[1].iov_len);
}

tundish_status
file_read_up_to(struct source_file *file, void *to, size_t bytes, uint64_t offset,
                size_t *ret_bytes)
{
    return read_both(file, (struct iovec[2]){ { to, bytes } }, offset, ret_bytes);
}

static tundish_status
ends_before(const struct source_file *file, uint64_t offset)
{
    return tnd_fail(TUNDISH_E_DATA, "%s: the file ends before byte %llu, where a record should end",
                    file->name, (unsigned long long)offset);
}

tundish_status
file_read(struct source_file *file, void *to, size_t bytes, uint64_t offset)
{
    size_t got = 0;
    tundish_status status = file_read_up_to(file, to, bytes, offset, &got);

    return status == TUNDISH_OK && got < bytes ? ends_before(file, offset + bytes) : status;
}

tundish_status
file_read_range(struct source_file *file, void *to, size_t bytes, uint64_t offset)
{
    if (file->peers != NULL)
        return peer_read_range(file, to, bytes, offset);
    return file_has_ranges(file) ? file_remote_read_range(file, to, bytes, offset)
                                 : file_read(file, to, bytes, offset);
}

void
file_expect_range(struct source_file *file, size_t bytes, uint64_t offset)
{
    if (file_has_ranges(file))
        file_remote_expect_range(file, bytes, offset);
    else if (file_is_remote(file))
        file_remote_expect(file, offset);
}

tundish_status
file_read_apart(struct source_file *file, void *to, size_t bytes, void *rest, size_t rest_bytes,
                uint64_t offset)
{
    const struct iovec targets[2] = { { to, bytes }, { rest, rest_bytes } };
    size_t got = 0;
    tundish_status status = read_both(file, targets, offset, &got);

    return status == TUNDISH_OK && got < bytes + rest_bytes
               ? ends_before(file, offset + bytes + rest_bytes)
               : status;
}

void
file_close(struct source_file *file)
{
    /* The unpacked file has a descriptor of its own, outside the doors, since it could not be
     * opened again. */
    int unpacked = atomic_exchange(&file->unpacked, 0);

    remote_object_close(atomic_exchange(&file->object, NULL));
    remote_ranges_close(atomic_exchange(&file->ranges, NULL));
    door_close(&file->services->doors, &file->door);
    if (unpacked != 0)
        close(unpacked - 1);
}
