/* helper_sums.c - see helper_sums.h. */
#include "helpers/helper_sums.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "content/records/file_notes.h"
#include "core/hash_farm.h"
#include "core/log.h"
#include "core/memory.h"
#include "core/read_write.h"

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
    struct named *named; /* by the hashes of their names */
    uint32_t named_room, named_count;
};

/* A file that a row names, as it was when it was read. */
struct named {
    uint64_t name, version; /* version 0: there is none here */
    uint64_t device, inode, size;
    struct timespec modified, changed;
};

/* So many are kept at most; others are read again. */
enum { NAMED_MAX = 1 << 19, NAMED_TRIES = 8 };

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
    free(sums->named);
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
    sums->files = tnd_grow(sums->files, sums->file_count, sizeof *sums->files);
    sums->made = tnd_grow(sums->made, sums->file_count, sizeof *sums->made);
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
    uint8_t *bytes = tnd_alloc(FILE_SUM_PIECE_BYTES);
    uint64_t sum = file_sum_begin(size);

    for (uint64_t at = 0; at < size && sum != 0; at += FILE_SUM_PIECE_BYTES) {
        size_t count =
                   size - at < FILE_SUM_PIECE_BYTES ? (size_t)(size - at) : FILE_SUM_PIECE_BYTES,
               got = 0;
        bool is_read = tnd_read_at(descriptor, bytes, count, at, &got) == 0 && got == count;

        sum = is_read ? file_sum_add(sum, bytes, count) : 0;
    }
    free(bytes);
    return sum;
}

static uint64_t
hash_of(const char *name)
{
    return tnd_hash_farm(name, strlen(name));
}

/* Where a name's version is, or is to be. The lock is held. */
static struct named *
find_named(struct helper_sums *sums, uint64_t name)
{
    struct named *found;

    for (uint32_t i = 0; i < NAMED_TRIES; i++) {
        found = &sums->named[(name + i) & (sums->named_room - 1)];
        if (found->name == name || found->version == 0)
            return found;
    }
    return &sums->named[name & (sums->named_room - 1)];
}

/* The lock is held. */
static void
make_room_for_named(struct helper_sums *sums)
{
    struct named *before = sums->named;
    uint32_t room = sums->named_room;

    if (room == NAMED_MAX || 2 * sums->named_count < room)
        return;
    sums->named_room = room == 0 ? 1024 : 2 * room;
    sums->named = tnd_zalloc(sums->named_room, sizeof *sums->named);
    for (uint32_t i = 0; i < room; i++)
        if (before[i].version != 0)
            *find_named(sums, before[i].name) = before[i];
    free(before);
}

static void
note_named(struct helper_sums *sums, const struct named *named)
{
    struct named *place;

    pthread_mutex_lock(&sums->lock);
    make_room_for_named(sums);
    place = find_named(sums, named->name);
    sums->named_count += place->version == 0;
    *place = *named;
    pthread_mutex_unlock(&sums->lock);
}

static struct named
recall_named(struct helper_sums *sums, uint64_t name)
{
    struct named found = { 0 };

    pthread_mutex_lock(&sums->lock);
    if (sums->named_room > 0)
        found = *find_named(sums, name);
    pthread_mutex_unlock(&sums->lock);
    return found.name == name ? found : (struct named){ 0 };
}

static struct named
named_of(uint64_t name, const struct stat *about)
{
    return (struct named){
        .name = name,
        .device = about->st_dev,
        .inode = about->st_ino,
        .size = (uint64_t)about->st_size,
        .modified = about->st_mtim,
        .changed = about->st_ctim,
    };
}

static bool
is_unchanged(const struct named *named, const struct stat *about)
{
    struct named now = named_of(named->name, about);

    return named->version != 0 && named->device == now.device && named->inode == now.inode &&
           named->size == now.size && named->modified.tv_sec == now.modified.tv_sec &&
           named->modified.tv_nsec == now.modified.tv_nsec &&
           named->changed.tv_sec == now.changed.tv_sec &&
           named->changed.tv_nsec == now.changed.tv_nsec;
}

static uint64_t
sum_of_open(struct helper_sums *sums, uint64_t name, int descriptor)
{
    struct stat about;
    struct named named;

    if (fstat(descriptor, &about) != 0 || !S_ISREG(about.st_mode))
        return 0;
    named = recall_named(sums, name);
    if (is_unchanged(&named, &about))
        return named.version;
    named = named_of(name, &about);
    named.version = sum_of_bytes(descriptor, named.size);
    if (named.version != 0)
        note_named(sums, &named);
    return named.version;
}

uint64_t
helper_sums_of_path(struct helper_sums *sums, const char *path)
{
    /* O_NONBLOCK: a pipe of that name must not hang the connection. */
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    uint64_t sum;

    if (descriptor < 0)
        return 0;
    sum = sum_of_open(sums, hash_of(path), descriptor);
    close(descriptor);
    return sum;
}

uint64_t
helper_sums_known(struct helper_sums *sums, const char *url)
{
    return recall_named(sums, hash_of(url)).version;
}

void
helper_sums_note(struct helper_sums *sums, const char *url, uint64_t version)
{
    const struct named named = { .name = hash_of(url), .version = version };

    note_named(sums, &named);
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
