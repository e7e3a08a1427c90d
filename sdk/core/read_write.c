/* read_write.c - see read_write.h. */
#include "core/read_write.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
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

/* If the system call reads less, all is read piece by piece. */
int
tnd_read_both_at(int descriptor, const struct iovec to[2], uint64_t offset, size_t *ret_bytes)
{
    size_t bytes = to[0].iov_len, rest = 0;
    int error;

    if (to[1].iov_len == 0)
        return tnd_read_at(descriptor, to[0].iov_base, bytes, offset, ret_bytes);
    *ret_bytes = bytes + to[1].iov_len;
    if (preadv(descriptor, to, 2, (off_t)offset) == (ssize_t)*ret_bytes)
        return 0;
    error = tnd_read_at(descriptor, to[0].iov_base, bytes, offset, ret_bytes);
    if (error == 0 && *ret_bytes == bytes)
        error = tnd_read_at(descriptor, to[1].iov_base, to[1].iov_len, offset + bytes, &rest);
    *ret_bytes += rest;
    return error;
}

int
tnd_read(int descriptor, void *to, size_t bytes, size_t *ret_bytes)
{
    size_t done = 0;
    int error = 0;

    while (done < bytes && error == 0) {
        ssize_t got = read(descriptor, (uint8_t *)to + done, bytes - done);

        if (got < 0 && errno != EINTR)
            error = errno;
        if (got == 0)
            break;
        done += got > 0 ? (size_t)got : 0;
    }
    *ret_bytes = done;
    return error;
}

/* A call that writes nothing, and has no error, would be made for ever. */
static int
error_of(ssize_t put)
{
    if (put == 0)
        return EIO;
    return put < 0 && errno != EINTR ? errno : 0;
}

int
tnd_write_at(int descriptor, const void *from, size_t bytes, uint64_t offset)
{
    size_t done = 0;
    int error = 0;

    while (done < bytes && error == 0) {
        ssize_t put =
            pwrite(descriptor, (const uint8_t *)from + done, bytes - done, (off_t)(offset + done));

        error = error_of(put);
        done += put > 0 ? (size_t)put : 0;
    }
    return error;
}

int
tnd_write_parts_at(int descriptor, struct iovec *parts, size_t count, uint64_t offset)
{
    int error = 0;

    while (error == 0) {
        ssize_t put;

        while (count > 0 && parts->iov_len == 0) {
            parts++;
            count--;
        }
        if (count == 0)
            break;
        put = pwritev(descriptor, parts, count < IOV_MAX ? (int)count : IOV_MAX, (off_t)offset);
        error = error_of(put);
        offset += put > 0 ? (uint64_t)put : 0;
        while (put > 0) {
            size_t some = (size_t)put < parts->iov_len ? (size_t)put : parts->iov_len;

            parts->iov_base = (uint8_t *)parts->iov_base + some;
            parts->iov_len -= some;
            put -= (ssize_t)some;
            if (parts->iov_len == 0) {
                parts++;
                count--;
            }
        }
    }
    return error;
}

int
tnd_write(int descriptor, const void *from, size_t bytes)
{
    size_t done = 0;
    int error = 0;

    while (done < bytes && error == 0) {
        ssize_t put = write(descriptor, (const uint8_t *)from + done, bytes - done);

        error = error_of(put);
        done += put > 0 ? (size_t)put : 0;
    }
    return error;
}

bool
tnd_write_allowed(int descriptor)
{
    struct pollfd room = { .fd = descriptor, .events = POLLOUT };
    int found;

    do
        found = poll(&room, 1, 0);
    while (found < 0 && errno == EINTR);
    return found == 1 && (room.revents & POLLOUT) != 0;
}
