/* disk_private.h - what the parts of the cache on disk know of each other. */
#ifndef REMOTE_DISK_PRIVATE_H
#define REMOTE_DISK_PRIVATE_H

#include "remote/disk.h"

struct disk {
    char *path;
    int folder;
    uint32_t part_bytes;
    uint64_t bytes_max;
    int64_t begun_ns; /* wall clock */
    _Atomic int is_off;
    _Atomic uint64_t added_bytes; /* since it was last looked at */
    _Atomic uint64_t known_bytes; /* then */
};

/* Does the name still lead to the file? Another process may have renamed or deleted it between our
 * opening and our lock. */
bool disk_is_named(const struct disk *disk, const char *name, int descriptor);

#endif
