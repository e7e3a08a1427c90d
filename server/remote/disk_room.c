/* disk_room.c - deletes the parts that were used longest ago, once there are too many.
 *
 * Any server may do it, one at a time. Others may add parts meanwhile, which each of them counts
 * for itself, so each looks often enough that all together stay below the bound. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/memory.h"
#include "remote/disk_private.h"

/* Look after so large a share of the bound; leave such a share free. */
enum { LOOK_SHARE = 32, FREE_SHARE = 8 };

struct found_part {
    int64_t used_ns;
    uint64_t bytes;
    char name[40];
};

struct found {
    struct found_part *parts;
    size_t count;
    uint64_t bytes;
};

/* A file that nobody writes any more is of a server that was killed. */
static void
remove_if_left(const struct disk *disk, const char *name)
{
    int file = openat(disk->folder, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW);

    if (file < 0)
        return;
    if (flock(file, LOCK_EX | LOCK_NB) == 0 && disk_is_named(disk, name, file))
        unlinkat(disk->folder, name, 0);
    close(file);
}

static void
add_file(const struct disk *disk, struct found *found, const char *folder, const char *file)
{
    size_t bytes = strlen(file);
    struct found_part part;
    struct stat about;

    if (bytes < 18 || bytes > sizeof part.name - 4)
        return; /* it is not ours */
    snprintf(part.name, sizeof part.name, "%.2s/%.36s", folder, file);
    if (fstatat(disk->folder, part.name, &about, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISREG(about.st_mode))
        return;
    found->bytes += (uint64_t)about.st_size;
    if (strcmp(file + bytes - 4, ".new") == 0) {
        remove_if_left(disk, part.name);
        return;
    }
    part.bytes = (uint64_t)about.st_size;
    part.used_ns = about.st_mtim.tv_sec * INT64_C(1000000000) + about.st_mtim.tv_nsec;
    found->parts = tnd_grow(found->parts, found->count, sizeof *found->parts);
    found->parts[found->count++] = part;
}

static void
look_into(const struct disk *disk, struct found *found, const char *name)
{
    int folder = openat(disk->folder, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    DIR *list = folder >= 0 ? fdopendir(folder) : NULL;
    const struct dirent *entry;

    if (list == NULL) {
        if (folder >= 0)
            close(folder);
        return;
    }
    while ((entry = readdir(list)) != NULL)
        add_file(disk, found, name, entry->d_name);
    closedir(list);
}

static int
by_use(const void *a, const void *b)
{
    const struct found_part *one = a, *other = b;

    return (one->used_ns > other->used_ns) - (one->used_ns < other->used_ns);
}

static void
delete_oldest(const struct disk *disk, struct found *found)
{
    uint64_t wanted = disk->bytes_max - disk->bytes_max / FREE_SHARE;

    if (found->bytes <= wanted || found->count == 0)
        return;
    qsort(found->parts, found->count, sizeof *found->parts, by_use);
    for (size_t i = 0; i < found->count && found->bytes > wanted; i++)
        if (unlinkat(disk->folder, found->parts[i].name, 0) == 0)
            found->bytes -= found->parts[i].bytes;
}

static bool
is_time(const struct disk *disk)
{
    uint64_t added = atomic_load_explicit(&disk->added_bytes, memory_order_relaxed);
    uint64_t known = atomic_load_explicit(&disk->known_bytes, memory_order_relaxed);

    return added >= disk->bytes_max / LOOK_SHARE || known + added > disk->bytes_max;
}

void
disk_make_room(struct disk *disk)
{
    struct found found = { 0 };
    int lock;

    if (!is_time(disk))
        return;
    lock = openat(disk->folder, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    /* The lock is gone with its holder. While another deletes there is nothing to do. */
    if (lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) == 0) {
        atomic_store_explicit(&disk->added_bytes, 0, memory_order_relaxed);
        for (unsigned i = 0; i < 256; i++) {
            char name[8];

            snprintf(name, sizeof name, "%02x", i);
            look_into(disk, &found, name);
        }
        delete_oldest(disk, &found);
        atomic_store_explicit(&disk->known_bytes, found.bytes, memory_order_relaxed);
        free(found.parts);
    }
    if (lock >= 0)
        close(lock);
}
