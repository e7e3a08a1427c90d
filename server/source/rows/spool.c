/* spool.c - see spool.h. */
#include "source/rows/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "source/files/files_private.h"

#include "core/read_write.h"

tundish_status
spool_open(struct source_files *files, const char *name, int descriptor, struct spool *ret_spool)
{
    int folder = -1;
    tundish_status status = TUNDISH_OK;

    if (descriptor < 0)
        status = services_cache_folder(files_services(files), &folder);
    if (status != TUNDISH_OK)
        return status;
    /* Without a name the file is gone with its last descriptor, even after a crash. */
    if (descriptor < 0)
        descriptor = openat(folder, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (descriptor < 0)
        return tnd_fail_errno(errno, "cannot make a file in the cache folder for what %s gives",
                              name);
    *ret_spool = (struct spool){ .file = files_enter_open(files, name, descriptor) };
    ret_spool->file->is_spool = true;
    return TUNDISH_OK;
}

/* The size moves on only after all bytes are written, so that after an error the next append
 * overwrites the partial one. */
tundish_status
spool_append(struct spool *spool, const void *data, size_t bytes)
{
    int descriptor = atomic_load_explicit(&spool->file->unpacked, memory_order_relaxed) - 1;
    int error = tnd_write_at(descriptor, data, bytes, spool->bytes);

    if (error != 0)
        return tnd_fail_errno(error, "cannot write");
    spool->bytes += bytes;
    return TUNDISH_OK;
}

void
spool_drop_all(struct source_files *files)
{
    struct source_file *file;

    for (uint32_t i = 0; (file = files_file(files, i)) != NULL; i++) {
        int unpacked = file->is_spool ? atomic_exchange(&file->unpacked, 0) : 0;

        if (unpacked != 0)
            close(unpacked - 1);
    }
}
