/* slow_reads.c - storage that takes its time: preloaded, reads of files in a folder wait first.
 *
 *   SLOW_READS_IN   the folder; files elsewhere are as fast as ever
 *   SLOW_READS_MS   a file that says how long each read waits; without it none does, and those that
 *                   wait go on
 *
 * Built with _FILE_OFFSET_BITS=64, as the server is: pread and preadv are pread64 and preadv64.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static int
is_slow(int descriptor)
{
    const char *folder = getenv("SLOW_READS_IN");
    char link[64], path[4096];
    ssize_t bytes;

    if (folder == NULL)
        return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    bytes = readlink(link, path, sizeof path);
    return bytes >= (ssize_t)strlen(folder) && strncmp(path, folder, strlen(folder)) == 0;
}

static long
wanted_ms(void)
{
    const char *path = getenv("SLOW_READS_MS");
    FILE *file = path != NULL ? fopen(path, "re") : NULL;
    char text[16] = "";

    if (file == NULL)
        return 0;
    (void)!fread(text, 1, sizeof text - 1, file);
    fclose(file);
    return strtol(text, NULL, 10);
}

static void
wait_for_storage(int descriptor)
{
    enum { EVERY_MS = 10 };

    if (is_slow(descriptor))
        for (long waited_ms = 0; waited_ms < wanted_ms(); waited_ms += EVERY_MS)
            nanosleep(&(struct timespec){ .tv_nsec = EVERY_MS * 1000000L }, NULL);
}

__attribute__((visibility("default"))) ssize_t
pread(int descriptor, void *to, size_t bytes, off_t offset)
{
    ssize_t (*next)(int, void *, size_t, off_t);

    *(void **)&next = dlsym(RTLD_NEXT, "pread64");
    wait_for_storage(descriptor);
    return next(descriptor, to, bytes, offset);
}

__attribute__((visibility("default"))) ssize_t
preadv(int descriptor, const struct iovec *places, int count, off_t offset)
{
    ssize_t (*next)(int, const struct iovec *, int, off_t);

    *(void **)&next = dlsym(RTLD_NEXT, "preadv64");
    wait_for_storage(descriptor);
    return next(descriptor, places, count, offset);
}
