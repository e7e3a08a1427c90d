/* memory.c - allocation that cannot fail. */
#include "core/memory.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/log_writer.h"
#include "core/status.h"

enum {
    EXIT_MACHINE = 3,        /* as for all that the machine refuses */
    THREAD_BYTES = 32 << 20, /* a stack, and the first that the allocator takes for a thread */
    HUGE_PAGE_BYTES = 2 << 20
};

static _Noreturn void
end(const char *what)
{
    char line[200];
    int bytes = snprintf(line, sizeof line,
                         "tundish: out of memory%s: raise the limit (ulimit -v, the container's "
                         "limit), or make buffers and batches smaller\n",
                         what);

    /* No allocation from here on, and _exit rather than exit: handlers might allocate. */
    log_writer_put(LOG_WRITER_OWN, line, (size_t)bytes);
    log_writer_flush();
    _exit(EXIT_MACHINE);
}

/* malloc may return NULL for no bytes at all; that is not a failure. */
static void *
check(void *memory, size_t bytes)
{
    char what[48];

    if (memory == NULL && bytes != 0) {
        snprintf(what, sizeof what, " (%zu bytes)", bytes);
        end(what);
    }
    return memory;
}

void
tnd_must_have(bool memory)
{
    if (!memory)
        end("");
}

tundish_status
tnd_memory_for_threads(uint32_t count)
{
    const size_t bytes = (size_t)count * THREAD_BYTES;
    /* Reserves addresses without memory, then gives them back. */
    void *probe = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (probe == MAP_FAILED)
        return tnd_fail(
            TUNDISH_E_MEMORY,
            "%u threads need %zu MiB of address space, more than this process may use (ulimit -v)",
            count, bytes >> 20);
    munmap(probe, bytes);
    return TUNDISH_OK;
}

void *
tnd_alloc(size_t bytes)
{
    return check(malloc(bytes), bytes);
}

void *
tnd_alloc_aligned(size_t alignment, size_t bytes)
{
    return check(aligned_alloc(alignment, bytes), bytes);
}

void *
tnd_alloc_scattered(size_t bytes)
{
    void *memory;

    if (bytes < HUGE_PAGE_BYTES || posix_memalign(&memory, HUGE_PAGE_BYTES, bytes) != 0)
        return tnd_alloc(bytes); /* reports the lack of memory */
    madvise(memory, bytes, MADV_HUGEPAGE);
    return memory;
}

void *
tnd_zalloc(size_t count, size_t bytes)
{
    return check(calloc(count, bytes), count * bytes);
}

void *
tnd_realloc(void *old, size_t count, size_t bytes)
{
    return check(reallocarray(old, count, bytes), count * bytes);
}

char *
tnd_strdup(const char *text)
{
    return tnd_strndup(text, strlen(text));
}

char *
tnd_strndup(const char *text, size_t bytes)
{
    char *copy = tnd_alloc(bytes + 1);

    memcpy(copy, text, bytes);
    copy[bytes] = '\0';
    return copy;
}

char *
tnd_memory_joined(const char *begin, const char *between, const char *end)
{
    size_t begin_bytes = strlen(begin), between_bytes = strlen(between), end_bytes = strlen(end);
    char *text = tnd_alloc(begin_bytes + between_bytes + end_bytes + 1);

    memcpy(text, begin, begin_bytes);
    memcpy(text + begin_bytes, between, between_bytes);
    memcpy(text + begin_bytes + between_bytes, end, end_bytes + 1);
    return text;
}

char *
tnd_sprintf(const char *format, ...)
{
    char *text = NULL;
    va_list arguments;

    va_start(arguments, format);
    if (vasprintf(&text, format, arguments) < 0)
        text = NULL;
    va_end(arguments);
    return check(text, 1);
}
