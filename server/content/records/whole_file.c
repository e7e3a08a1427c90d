/* whole_file.c - see whole_file.h. */
#include "content/records/whole_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "content/records/missing_file.h"
#include "core/read_write.h"

static tundish_status
fail(struct byte_view path, const char *what, int error)
{
    char reason[128];
    /* Shortage of resources stops the pipeline; anything else is a bad element. */
    bool is_resource = error == EMFILE || error == ENFILE || error == ENOMEM || error == EIO;

    return tnd_fail(is_resource ? TUNDISH_E_SYSTEM : TUNDISH_E_DATA, "%.*s: %s%s%s", (int)path.size,
                    (const char *)path.data, what, error == 0 ? "" : ": ",
                    error == 0 ? "" : strerror_r(error, reason, sizeof reason));
}

static tundish_status
read_all(struct byte_view path, int descriptor, uint8_t *to, size_t bytes)
{
    size_t got = 0;
    int error = tnd_read_at(descriptor, to, bytes, 0, &got);

    if (error != 0)
        return fail(path, "cannot be read", error);
    return got == bytes ? TUNDISH_OK : fail(path, "it became shorter while it was read", 0);
}

static tundish_status
read_open(struct byte_view path, int descriptor, struct scratch *scratch,
          struct byte_view *ret_bytes)
{
    struct stat about;
    uint8_t *bytes;
    tundish_status status;

    if (fstat(descriptor, &about) != 0)
        return fail(path, "cannot be examined", errno);
    if (!S_ISREG(about.st_mode))
        return fail(path, "it is not a regular file", S_ISDIR(about.st_mode) ? EISDIR : 0);
    if (about.st_size > INT32_MAX)
        return fail(path, "it has 2 GiB or more, and would not fit a batch", 0);
    bytes = scratch_alloc(scratch, (size_t)about.st_size);
    status = read_all(path, descriptor, bytes, (size_t)about.st_size);
    if (status == TUNDISH_OK)
        *ret_bytes = (struct byte_view){ bytes, (uint64_t)about.st_size };
    return status;
}

tundish_status
whole_file_read(const char *root, struct byte_view path, struct scratch *scratch,
                struct byte_view *ret_bytes)
{
    size_t root_bytes = path.size > 0 && path.data[0] == '/' ? 0 : strlen(root) + 1;
    char *name = scratch_alloc(scratch, root_bytes + path.size + 1);
    int descriptor;
    tundish_status status;

    if (path.size == 0)
        return tnd_fail(TUNDISH_E_DATA, "an empty path names no file");
    /* open() would stop at the NUL and open another file. */
    if (memchr(path.data, '\0', path.size) != NULL)
        return fail(path, "a path with a NUL byte names no file", 0);
    if (root_bytes > 0) {
        memcpy(name, root, root_bytes - 1);
        name[root_bytes - 1] = '/';
    }
    memcpy(name + root_bytes, path.data, path.size);
    name[root_bytes + path.size] = '\0';
    /* O_NONBLOCK: a pipe of that name must not hang the server. */
    descriptor = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0 && errno == ENOENT)
        return tnd_fail(TUNDISH_E_DATA, "%.*s: cannot be opened: No such file or directory%s",
                        (int)path.size, (const char *)path.data, missing_file_note(name));
    if (descriptor < 0)
        return fail(path, "cannot be opened", errno);
    status = read_open(path, descriptor, scratch, ret_bytes);
    close(descriptor);
    return status;
}
