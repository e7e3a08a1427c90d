/* read_at.c - see read_at.h. */
#include "core/read_at.h"

#include <errno.h>
#include <unistd.h>

int
tnd_read_at(int descriptor, void *to, size_t bytes, uint64_t offset, size_t *ret_bytes)
{
    size_t done = 0;
    int error = 0;

    while (done < bytes && error == 0) {
        ssize_t got = pread(descriptor, (uint8_t *)to + done, bytes - done, (off_t)(offset + done));

        if (got < 0 && errno != EINTR)
            error = errno;
        if (got == 0)
            break;
        done += got > 0 ? (size_t)got : 0;
    }
    *ret_bytes = done;
    return error;
}
