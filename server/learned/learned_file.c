/* learned_file.c - a file of the analysis folder in memory. */
#include "learned/learned_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/memory.h"

static tundish_status
read_all(int descriptor, const char *path, struct learned_file *ret_file)
{
    struct stat stat;
    size_t done = 0;

    if (fstat(descriptor, &stat) != 0)
        return tnd_fail_errno(errno, "%s", path);
    if (!S_ISREG(stat.st_mode))
        return tnd_fail(TUNDISH_E_DATA, "%s is no plain file", path);
    ret_file->byte_count = (size_t)stat.st_size;
    ret_file->bytes = tnd_zalloc(ret_file->byte_count + 64, 1);
    while (done < ret_file->byte_count) {
        ssize_t got = read(descriptor, ret_file->bytes + done, ret_file->byte_count - done);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            free(ret_file->bytes);
            return got < 0 ? tnd_fail_errno(errno, "%s", path)
                           : tnd_fail(TUNDISH_E_DATA, "%s became shorter while it was read", path);
        }
        done += (size_t)got;
    }
    return TUNDISH_OK;
}

tundish_status
learned_file_read(const char *path, struct learned_file *ret_file)
{
    struct learned_file file = { 0 };
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
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
