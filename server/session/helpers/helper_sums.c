/* helper_sums.c - see helper_sums.h. */
#include "session/helpers/helper_sums.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/hash_farm.h"
#include "core/log.h"
#include "core/memory.h"
#include "core/read_at.h"

/* Tens of milliseconds, also from a disk; the thread of one connection waits for it. */
static const uint64_t AT_ONCE_BYTES = 16 << 20;

enum { LOWEST_PRIORITY = 19 };

struct helper_sums {
    pthread_mutex_t small; /* who needs a file's sum while it is made waits for it */
    pthread_t thread;
    _Atomic int stop;
    _Atomic uint64_t count;

    pthread_mutex_t lock; /* of all below */
    pthread_cond_t wanted;
    bool has_begun;
    struct source_file **files; /* wanted; from `next` on not looked at */
    uint64_t file_count, next;
    struct source_file **made;
    struct path_sum *paths; /* by number */
    uint32_t path_room;
};

/* Of the file as it was when it was read. */
struct path_sum {
    uint64_t size, sum;
    struct timespec modified;
};

struct helper_sums *
helper_sums_open(void)
{
    struct helper_sums *sums = tnd_zalloc(1, sizeof *sums);

    pthread_mutex_init(&sums->small, NULL);
    pthread_mutex_init(&sums->lock, NULL);
    pthread_cond_init(&sums->wanted, NULL);
    return sums;
}

void
helper_sums_close(struct helper_sums *sums)
{
    if (sums == NULL)
        return;
    pthread_mutex_lock(&sums->lock);
    atomic_store(&sums->stop, 1);
    pthread_cond_signal(&sums->wanted);
    pthread_mutex_unlock(&sums->lock);
    if (sums->has_begun)
        pthread_join(sums->thread, NULL);
    pthread_cond_destroy(&sums->wanted);
    pthread_mutex_destroy(&sums->lock);
    pthread_mutex_destroy(&sums->small);
    free(sums->files);
    free(sums->made);
    free(sums->paths);
    free(sums);
}

static bool
is_stopped(const struct helper_sums *sums)
{
    return atomic_load_explicit(&sums->stop, memory_order_relaxed) != 0;
}

/* A file that cannot be read has no sum; those who read its rows say so. */
static bool
make(struct helper_sums *sums, struct source_file *file)
{
    return content_sum_recall(file) != 0 || content_sum_make(file, &sums->stop) == TUNDISH_OK;
}

static void *
make_all(void *argument)
{
    struct helper_sums *sums = argument;

    (void)setpriority(PRIO_PROCESS, (id_t)gettid(), LOWEST_PRIORITY);
    pthread_mutex_lock(&sums->lock);
    while (!is_stopped(sums)) {
        struct source_file *file;
        bool is_made;

        if (sums->next == sums->file_count) {
            pthread_cond_wait(&sums->wanted, &sums->lock);
            continue;
        }
        file = sums->files[sums->next++];
        pthread_mutex_unlock(&sums->lock);
        is_made = make(sums, file);
        pthread_mutex_lock(&sums->lock);
        if (!is_made)
            continue;
        sums->made[atomic_load_explicit(&sums->count, memory_order_relaxed)] = file;
        /* Pairs with helper_sums_count's load: the sum is in the file. */
        atomic_fetch_add_explicit(&sums->count, 1, memory_order_release);
    }
    pthread_mutex_unlock(&sums->lock);
    return NULL;
}

/* The lock is held. */
static void
want_later(struct helper_sums *sums, struct source_file *file)
{
    if ((sums->file_count & (sums->file_count - 1)) == 0) {
        uint64_t room = sums->file_count == 0 ? 1 : 2 * sums->file_count;

        sums->files = tnd_realloc(sums->files, room, sizeof *sums->files);
        sums->made = tnd_realloc(sums->made, room, sizeof *sums->made);
    }
    sums->files[sums->file_count++] = file;
    if (!sums->has_begun)
        sums->has_begun = pthread_create(&sums->thread, NULL, make_all, sums) == 0;
    pthread_cond_signal(&sums->wanted);
}

static uint64_t
size_of(struct source_file *file)
{
    uint64_t size;

    pthread_mutex_lock(&file->services->lock);
    size = file->identity.size;
    pthread_mutex_unlock(&file->services->lock);
    return size;
}

uint64_t
helper_sums_want(struct helper_sums *sums, struct source_file *file)
{
    uint64_t sum = 0;

    if (!content_sum_applies(file))
        return 0;
    if (file->is_url || size_of(file) <= AT_ONCE_BYTES) {
        pthread_mutex_lock(&sums->small);
        (void)make(sums, file);
        pthread_mutex_unlock(&sums->small);
    } else if (content_sum_recall(file) == 0 && !atomic_exchange(&file->sum_is_wanted, true)) {
        pthread_mutex_lock(&sums->lock);
        want_later(sums, file);
        pthread_mutex_unlock(&sums->lock);
    }
    sum = atomic_load_explicit(&file->content_sum, memory_order_relaxed);
    return sum;
}

/* 0: it cannot be read whole. */
static uint64_t
sum_of_bytes(int descriptor, uint64_t size)
{
    enum { CHUNK_BYTES = 256 << 10 };
    uint8_t *bytes = tnd_alloc(CHUNK_BYTES);
    uint64_t sum = tnd_hash_farm_chain(0, &size, sizeof size);

    for (uint64_t at = 0; at < size && sum != 0; at += CHUNK_BYTES) {
        size_t count = size - at < CHUNK_BYTES ? (size_t)(size - at) : CHUNK_BYTES, got = 0;
        bool is_read = tnd_read_at(descriptor, bytes, count, at, &got) == 0 && got == count;

        sum = is_read ? tnd_hash_farm_chain(sum, bytes, count) : 0;
    }
    free(bytes);
    return sum;
}

/* Where the sum of a path is kept. The lock is held. */
static struct path_sum *
kept_sum(struct helper_sums *sums, uint32_t number)
{
    if (number >= sums->path_room) {
        uint32_t room = 2 * number + 64;

        sums->paths = tnd_realloc(sums->paths, room, sizeof *sums->paths);
        memset(sums->paths + sums->path_room, 0, (room - sums->path_room) * sizeof *sums->paths);
        sums->path_room = room;
    }
    return &sums->paths[number];
}

static uint64_t
find_kept(struct helper_sums *sums, uint32_t number, const struct stat *about)
{
    const struct path_sum *kept;
    uint64_t sum = 0;

    pthread_mutex_lock(&sums->lock);
    kept = kept_sum(sums, number);
    if (kept->size == (uint64_t)about->st_size && kept->modified.tv_sec == about->st_mtim.tv_sec &&
        kept->modified.tv_nsec == about->st_mtim.tv_nsec)
        sum = kept->sum;
    pthread_mutex_unlock(&sums->lock);
    return sum;
}

uint64_t
helper_sums_of_path(struct helper_sums *sums, uint32_t number, const char *path)
{
    /* O_NONBLOCK: a pipe of that name must not hang the connection. */
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    struct stat about;
    uint64_t sum = 0;

    if (descriptor < 0)
        return 0;
    if (fstat(descriptor, &about) == 0 && S_ISREG(about.st_mode) &&
        (uint64_t)about.st_size <= AT_ONCE_BYTES) {
        sum = find_kept(sums, number, &about);
        if (sum == 0) {
            sum = sum_of_bytes(descriptor, (uint64_t)about.st_size);
            pthread_mutex_lock(&sums->lock);
            *kept_sum(sums, number) =
                (struct path_sum){ (uint64_t)about.st_size, sum, about.st_mtim };
            pthread_mutex_unlock(&sums->lock);
        }
    }
    close(descriptor);
    return sum;
}

uint64_t
helper_sums_count(const struct helper_sums *sums)
{
    /* Pairs with make_all's. */
    return atomic_load_explicit(&sums->count, memory_order_acquire);
}

struct source_file *
helper_sums_at(struct helper_sums *sums, uint64_t index)
{
    struct source_file *file;

    pthread_mutex_lock(&sums->lock);
    file = sums->made[index];
    pthread_mutex_unlock(&sums->lock);
    return file;
}
