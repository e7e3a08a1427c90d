/* stats_page.c - the file of figures beside the socket. */
#include "session/stats_page.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/clock.h"

_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2, "shared atomics must not need a lock");

enum { PATH_BYTES = 160 };

static void
path_of(const char *socket_path, const char *suffix, char path[PATH_BYTES])
{
    snprintf(path, PATH_BYTES, "%.120s%s", socket_path, suffix);
}

tundish_status
stats_page_create(const char *socket_path, struct stats_page **ret_page)
{
    char path[PATH_BYTES], fresh[PATH_BYTES];
    struct stats_page *page;
    int file;

    path_of(socket_path, ".stats", path);
    path_of(socket_path, ".stats.new", fresh);
    unlink(fresh);
    file = open(fresh, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0)
        return tnd_fail_errno(errno, "make %s", fresh);
    if (posix_fallocate(file, 0, sizeof *page) != 0) {
        close(file);
        unlink(fresh);
        return tnd_fail(TUNDISH_E_SYSTEM, "no room for %s", fresh);
    }
    page = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (page == MAP_FAILED || rename(fresh, path) != 0) {
        int error = errno;

        unlink(fresh);
        return tnd_fail_errno(error, "make %s", path);
    }
    page->process = getpid();
    page->started_ns = tnd_clock_ns();
    *ret_page = page;
    return TUNDISH_OK;
}

void
stats_page_remove(const char *socket_path, struct stats_page *page)
{
    char path[PATH_BYTES];

    if (page == NULL)
        return;
    path_of(socket_path, ".stats", path);
    unlink(path);
    munmap(page, sizeof *page);
}

tundish_status
stats_page_map(const char *socket_path, const struct stats_page **ret_page)
{
    char path[PATH_BYTES];
    struct stat about;
    const struct stats_page *page;
    int file;

    path_of(socket_path, ".stats", path);
    file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return tnd_fail(TUNDISH_E_SERVER_GONE, "no server is at %s", socket_path);
    if (fstat(file, &about) != 0 || about.st_size < (off_t)sizeof *page) {
        close(file);
        return tnd_fail(TUNDISH_E_LAYOUT, "%s is too short", path);
    }
    page = mmap(NULL, sizeof *page, PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (page == MAP_FAILED)
        return tnd_fail_errno(errno, "map %s", path);
    if (atomic_load_explicit(&page->magic, memory_order_acquire) != STATS_MAGIC ||
        page->stream_count > STATS_STREAMS) {
        stats_page_unmap(page);
        return tnd_fail(TUNDISH_E_LAYOUT, "%s is of another version", path);
    }
    *ret_page = page;
    return TUNDISH_OK;
}

void
stats_page_unmap(const struct stats_page *page)
{
    if (page != NULL)
        munmap((void *)(uintptr_t)page, sizeof *page);
}
