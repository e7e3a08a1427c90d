/* short_calls.c - a network file system at its worst: preloaded, calls are interrupted and short.
 *
 * Of the calls that a thread makes for regular files, every third fails with EINTR, and of the
 * others every second does half of its bytes. A poll that does not wait is interrupted every second
 * time. Files of the system (/proc, /sys, libraries) and memory that processes share are left
 * alone.
 *
 * Built with _FILE_OFFSET_BITS=64, as the server is: pread and preadv are pread64 and preadv64.
 */
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static __thread unsigned calls, polls;

static int
is_spoilt(int descriptor)
{
    static const char *const left_alone[] = {
        "/proc/", "/sys/", "/dev/", "/memfd:", "/usr/", "/lib"
    };
    char link[64], path[4096];
    int error = errno, spoilt = 0;
    struct stat about;
    ssize_t bytes = 0;

    if (fstat(descriptor, &about) == 0 && S_ISREG(about.st_mode)) {
        snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
        bytes = readlink(link, path, sizeof path - 1);
        path[bytes > 0 ? bytes : 0] = '\0';
        spoilt = bytes > 0;
        for (size_t i = 0; i < sizeof left_alone / sizeof *left_alone; i++)
            spoilt = spoilt && strncmp(path, left_alone[i], strlen(left_alone[i])) != 0;
    }
    errno = error;
    return spoilt;
}

/* How many of the bytes this call does; -1: it is interrupted. */
static ssize_t
share(int descriptor, size_t bytes)
{
    unsigned call;

    if (bytes < 2 || !is_spoilt(descriptor))
        return (ssize_t)bytes;
    call = calls++;
    if (call % 3 == 0) {
        errno = EINTR;
        return -1;
    }
    return (ssize_t)(call % 3 == 1 ? bytes / 2 : bytes);
}

#define REAL(result, name, ...)                                                                    \
    result (*name##_of_system)(__VA_ARGS__);                                                       \
    find(#name, &name##_of_system, sizeof name##_of_system)

/* The system's function of that name: C converts no pointer to an object into one to a function. */
static void
find(const char *name, void *ret_function, size_t bytes)
{
    void *found = dlsym(RTLD_NEXT, name);

    memcpy(ret_function, &found, bytes);
}

ssize_t read(int descriptor, void *to, size_t bytes);
ssize_t pread64(int descriptor, void *to, size_t bytes, off_t offset);
ssize_t preadv64(int descriptor, const struct iovec *to, int count, off_t offset);
ssize_t write(int descriptor, const void *from, size_t bytes);
ssize_t pwrite64(int descriptor, const void *from, size_t bytes, off_t offset);

__attribute__((visibility("default"))) ssize_t
read(int descriptor, void *to, size_t bytes)
{
    ssize_t some = share(descriptor, bytes);
    REAL(ssize_t, read, int, void *, size_t);

    return some < 0 ? some : read_of_system(descriptor, to, (size_t)some);
}

__attribute__((visibility("default"))) ssize_t
pread64(int descriptor, void *to, size_t bytes, off_t offset)
{
    ssize_t some = share(descriptor, bytes);
    REAL(ssize_t, pread64, int, void *, size_t, off_t);

    return some < 0 ? some : pread64_of_system(descriptor, to, (size_t)some, offset);
}

__attribute__((visibility("default"))) ssize_t
preadv64(int descriptor, const struct iovec *to, int count, off_t offset)
{
    ssize_t some = share(descriptor, to[0].iov_len);
    struct iovec first = { to[0].iov_base, (size_t)some };
    REAL(ssize_t, preadv64, int, const struct iovec *, int, off_t);

    if (some < 0)
        return some;
    return (size_t)some < to[0].iov_len ? preadv64_of_system(descriptor, &first, 1, offset)
                                        : preadv64_of_system(descriptor, to, count, offset);
}

__attribute__((visibility("default"))) ssize_t
write(int descriptor, const void *from, size_t bytes)
{
    /* What a test reads of it is written by stdio, which does not ask again. */
    ssize_t some = descriptor <= STDERR_FILENO ? (ssize_t)bytes : share(descriptor, bytes);
    REAL(ssize_t, write, int, const void *, size_t);

    return some < 0 ? some : write_of_system(descriptor, from, (size_t)some);
}

__attribute__((visibility("default"))) ssize_t
pwrite64(int descriptor, const void *from, size_t bytes, off_t offset)
{
    ssize_t some = share(descriptor, bytes);
    REAL(ssize_t, pwrite64, int, const void *, size_t, off_t);

    return some < 0 ? some : pwrite64_of_system(descriptor, from, (size_t)some, offset);
}

__attribute__((visibility("default"))) int
poll(struct pollfd *descriptors, nfds_t count, int timeout_ms)
{
    REAL(int, poll, struct pollfd *, nfds_t, int);

    if (timeout_ms == 0 && polls++ % 2 == 0) {
        errno = EINTR;
        return -1;
    }
    return poll_of_system(descriptors, count, timeout_ms);
}
