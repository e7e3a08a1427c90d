/* limit.c - threads, passes, reading, and a ring to write to. */
#include "limit.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/memory.h"

enum { PASSES = 5, THREADS_MAX = 64 };

struct worker {
    pthread_t thread;
    struct share share;
    const struct limit *limit;
    const char *const *paths;
    size_t path_count;
};

static double
now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static _Noreturn void
fail(const char *path)
{
    fprintf(stderr, "limit: %s: %s\n", path, strerror(errno));
    exit(1);
}

bool
input_fill(struct input *input)
{
    size_t kept = input->used - input->begin, wanted = input->capacity - kept;
    ssize_t got;

    memmove(input->buffer, input->buffer + input->begin, kept);
    input->begin = 0;
    input->used = kept;
    if (wanted > input->end - input->at)
        wanted = input->end - input->at;
    got = pread(input->file, input->buffer + kept, wanted, (off_t)input->at);
    if (got <= 0)
        return false;
    input->at += (uint64_t)got;
    input->used += (size_t)got;
    return true;
}

uint8_t *
share_slot(struct share *share)
{
    return share->slots + share->batches % LIMIT_SLOTS * share->slot_bytes;
}

/* The first line start at or after `offset`. */
static uint64_t
line_start(int file, uint64_t offset)
{
    char byte = 0;

    if (offset == 0)
        return 0;
    for (offset--; pread(file, &byte, 1, (off_t)offset) == 1; offset++) {
        if (byte == '\n')
            return offset + 1;
    }
    return offset;
}

static void
read_share(struct worker *worker, const char *path)
{
    struct input *input = &worker->share.input;
    struct share *share = &worker->share;
    struct stat info;

    input->file = open(path, O_RDONLY | O_CLOEXEC);
    if (input->file < 0 || fstat(input->file, &info) != 0)
        fail(path);
    input->at = 0;
    input->end = (uint64_t)info.st_size;
    if (worker->limit->cuts_lines) {
        uint64_t part = input->end / share->thread_count;

        input->at = line_start(input->file, part * share->thread);
        if (share->thread + 1 < share->thread_count)
            input->end = line_start(input->file, part * (share->thread + 1));
    }
    input->begin = input->used = 0;
    worker->limit->pass(share);
    close(input->file);
}

static void *
run_share(void *argument)
{
    struct worker *worker = argument;
    struct share *share = &worker->share;

    share->rows = share->bytes = share->batches = 0;
    if (worker->path_count == 0)
        worker->limit->pass(share);
    for (size_t i = 0; i < worker->path_count; i++) {
        if (worker->limit->cuts_lines || i % share->thread_count == share->thread)
            read_share(worker, worker->paths[i]);
    }
    return NULL;
}

static void
prepare(struct worker *worker, const struct limit *limit, uint32_t thread, uint32_t thread_count)
{
    struct share *share = &worker->share;

    worker->limit = limit;
    share->thread = thread;
    share->thread_count = thread_count;
    share->slot_bytes = limit->slot_bytes;
    share->slots = tnd_zalloc(LIMIT_SLOTS, limit->slot_bytes);
    memset(share->slots, 1, LIMIT_SLOTS * limit->slot_bytes);
    share->input.capacity = limit->buffer_bytes;
    share->input.buffer = tnd_zalloc(1, limit->buffer_bytes + LIMIT_SLACK);
}

static double
cpu_s(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

struct cost {
    double seconds;
    double cpu_seconds;
};

static struct cost
take_pass(struct worker *workers, uint32_t thread_count)
{
    struct cost start = { now_s(), cpu_s() };

    for (uint32_t i = 0; i < thread_count; i++) {
        if (pthread_create(&workers[i].thread, NULL, run_share, &workers[i]) != 0)
            fail("a thread");
    }
    for (uint32_t i = 0; i < thread_count; i++)
        pthread_join(workers[i].thread, NULL);
    return (struct cost){ now_s() - start.seconds, cpu_s() - start.cpu_seconds };
}

int
limit_measure(const struct limit *limit, const char *const *paths, size_t path_count,
              uint32_t thread_count)
{
    static struct worker workers[THREADS_MAX];
    uint64_t rows = 0, bytes = 0;
    struct cost costs[PASSES];

    for (uint32_t i = 0; i < thread_count; i++) {
        prepare(&workers[i], limit, i, thread_count);
        workers[i].paths = paths;
        workers[i].path_count = path_count;
    }
    take_pass(workers, thread_count); /* fills the page cache */
    for (int pass = 0; pass < PASSES; pass++)
        costs[pass] = take_pass(workers, thread_count);
    for (uint32_t i = 0; i < thread_count; i++) {
        rows += workers[i].share.rows;
        bytes += workers[i].share.bytes;
    }
    printf("{\"threads\": %" PRIu32 ", \"rows\": %" PRIu64 ", \"bytes\": %" PRIu64 ", \"costs\": [",
           thread_count, rows, bytes);
    for (int pass = 0; pass < PASSES; pass++) {
        printf("%s{\"seconds\": %.6f, \"cpu_seconds\": %.6f}", pass > 0 ? ", " : "",
               costs[pass].seconds, costs[pass].cpu_seconds);
    }
    printf("]}\n");
    return 0;
}

const char *
limit_folder(int argc, char **argv)
{
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("sse4.2")) {
        fprintf(stderr, "%s: needs AVX2 and SSE4.2\n", argv[0]);
        exit(77);
    }
    if (argc < 2 || argc > 3) {
        fprintf(stderr, "usage: %s DIR [THREADS]\n", argv[0]);
        exit(2);
    }
    return argv[1];
}

uint32_t
limit_threads(int argc, char **argv)
{
    long count = argc == 3 ? strtol(argv[2], NULL, 10) : sysconf(_SC_NPROCESSORS_ONLN);

    return count < 1 ? 1 : count > THREADS_MAX ? THREADS_MAX : (uint32_t)count;
}

const char *
limit_path(const char *format, ...)
{
    va_list arguments;
    char *path;

    va_start(arguments, format);
    if (vasprintf(&path, format, arguments) < 0)
        fail("a path");
    va_end(arguments);
    return path;
}
