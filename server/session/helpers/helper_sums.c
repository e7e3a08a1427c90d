/* helper_sums.c - see helper_sums.h. */
#include "session/helpers/helper_sums.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "core/log.h"
#include "core/memory.h"

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
