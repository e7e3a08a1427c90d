/* learned_file.c - read a file of the analysis folder into memory. */
#include "content/learned/learned_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/hash_farm.h"
#include "core/memory.h"
#include "core/read_write.h"

enum { BLOCK_BYTES = 1 << 20 };

static tundish_status
read_all(int descriptor, const char *path, struct learned_file *ret_file)
{
    struct stat stat;
    size_t done = 0;
    int error;

    if (fstat(descriptor, &stat) != 0)
        return tnd_fail_errno(errno, "%s", path);
    /* A pipe or a folder has no size to read. */
    if (!S_ISREG(stat.st_mode))
        return tnd_fail(TUNDISH_E_DATA, "%s is not a regular file", path);
    ret_file->byte_count = (size_t)stat.st_size;
    /* Parsers may read up to 64 bytes past the end. */
    ret_file->bytes = tnd_zalloc(ret_file->byte_count + 64, 1);
    error = tnd_read(descriptor, ret_file->bytes, ret_file->byte_count, &done);
    if (error == 0 && done == ret_file->byte_count)
        return TUNDISH_OK;
    free(ret_file->bytes);
    /* The file may be replaced or cut while it is read: then its size was another file's. */
    return error != 0 ? tnd_fail_errno(error, "%s", path)
                      : tnd_fail(TUNDISH_E_DATA, "%s became shorter while it was read", path);
}

tundish_status
learned_file_read(const char *path, struct learned_file *ret_file)
{
    struct learned_file file = { 0 };
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    tundish_status status;

    if (descriptor < 0)
        return tnd_fail_errno(errno, "%s", path);
    status = read_all(descriptor, path, &file);
    close(descriptor);
    if (status == TUNDISH_OK)
        *ret_file = file;
    return status;
}

void
learned_file_close(struct learned_file *file)
{
    free(file->bytes);
    *file = (struct learned_file){ 0 };
}

uint64_t
learned_bytes_hash(const uint8_t *bytes, size_t byte_count)
{
    uint64_t hash = 0;

    for (size_t at = 0; at < byte_count; at += BLOCK_BYTES)
        hash = tnd_hash_farm_chain(hash, bytes + at,
                                   byte_count - at < BLOCK_BYTES ? byte_count - at : BLOCK_BYTES);
    return hash;
}

/* Hash a file in blocks of BLOCK_BYTES, as learned_bytes_hash does. */
static tundish_status
hash_open(int descriptor, const char *path, uint64_t *ret_hash)
{
    uint8_t *block = tnd_alloc(BLOCK_BYTES);
    uint64_t hash = 0;
    size_t got = 0;
    int error;

    while ((error = tnd_read(descriptor, block, BLOCK_BYTES, &got)) == 0 && got > 0)
        hash = tnd_hash_farm_chain(hash, block, got);
    free(block);
    if (error != 0)
        return tnd_fail_errno(error, "%s", path);
    *ret_hash = hash;
    return TUNDISH_OK;
}

tundish_status
learned_file_hash(const char *path, uint64_t *ret_hash)
{
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    tundish_status status;

    if (descriptor < 0)
        return tnd_fail_errno(errno, "%s", path);
    status = hash_open(descriptor, path, ret_hash);
    close(descriptor);
    return status;
}
