/* files.c - the table of a session's files, and the threads that scan them. */
#include "source/files/files.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "core/cache_folder.h"
#include "core/memory.h"
#include "core/must.h"
#include "source/files/block_cache.h"
#include "source/files/files_private.h"
#include "source/files/numbered.h"
#include "source/peer/far.h"
#include "source/scan/scan.h"

/* Text by number, and whether it is there already. */
struct path_entry {
    size_t bytes;
    char text[];
};

/* Paths found by a search. */
struct listing {
    struct listing *next;
    char *key;
    size_t key_bytes;
    struct path_list list;
};

/* Open addressing by name and format: numbers of files + 1, 0 is free. */
struct file_lookup {
    uint32_t *slots;
    uint32_t slot_count; /* a power of two, or 0 */
};

struct source_files {
    char *root;
    char *cache_path; /* NULL: the default */
    struct far *far;

    pthread_mutex_t entering; /* of files, paths, listings */
    struct numbered table;
    struct numbered paths;
    struct file_lookup lookup;
    struct listing *listings;
    struct block_cache *blocks;
    struct file_set *noted; /* where files entered are noted, or NULL */

    pthread_mutex_t opening; /* of files, and of the cache folder */
    uint32_t open_count, open_limit;
    uint32_t clock_hand; /* the next file to be closed, if nobody reads it */
    int cache_folder;    /* -1: not yet, or not to be had */
    tundish_status cache_status;
    char *cache_text;

    pthread_mutex_t queue_lock;
    pthread_cond_t queue_filled;
    struct source_file *queue_first, *queue_last;
    bool is_closing;
    uint32_t reader_count;
    pthread_t *readers;

    struct source_counters counters;
};

/* With the queue's lock held. */
static void
enqueue(struct source_files *files, struct source_file *file)
{
    file->next_in_queue = NULL;
    if (files->queue_first == NULL)
        files->queue_first = file;
    else
        files->queue_last->next_in_queue = file;
    files->queue_last = file;
    pthread_cond_signal(&files->queue_filled);
}

void
table_schedule(struct source_files *files, struct source_file *file)
{
    pthread_mutex_lock(&files->queue_lock);
    enqueue(files, file);
    pthread_mutex_unlock(&files->queue_lock);
}

static void *
read_ahead(void *argument)
{
    struct source_files *files = argument;
    uint8_t *buffer = tnd_alloc(SCAN_BUFFER_BYTES);

    pthread_mutex_lock(&files->queue_lock);
    while (!files->is_closing) {
        struct source_file *file = files->queue_first;

        if (file == NULL) {
            pthread_cond_wait(&files->queue_filled, &files->queue_lock);
            continue;
        }
        files->queue_first = file->next_in_queue;
        pthread_mutex_unlock(&files->queue_lock);
        bool more = scan_step(file->scan, buffer);

        pthread_mutex_lock(&files->queue_lock);
        if (more) /* behind the others, so that all of them come along */
            enqueue(files, file);
    }
    pthread_mutex_unlock(&files->queue_lock);
    free(buffer);
    return NULL;
}

/* Signals are for other threads. */
static tundish_status
start_readers(struct source_files *files, uint32_t count)
{
    tundish_status status = tnd_memory_for_threads(count);
    sigset_t all, before;
    int error = 0;

    if (status != TUNDISH_OK)
        return status;
    files->readers = tnd_zalloc(count, sizeof *files->readers);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (; files->reader_count < count && error == 0; files->reader_count += error == 0)
        error = pthread_create(&files->readers[files->reader_count], NULL, read_ahead, files);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error == 0 ? TUNDISH_OK : tnd_fail_errno(error, "cannot start a thread to read files");
}

static void
stop_readers(struct source_files *files)
{
    pthread_mutex_lock(&files->queue_lock);
    files->is_closing = true;
    pthread_cond_broadcast(&files->queue_filled);
    pthread_mutex_unlock(&files->queue_lock);
    for (uint32_t i = 0; i < files->reader_count; i++)
        pthread_join(files->readers[i], NULL);
    free(files->readers);
}

/* Half of what the process may have, once it has asked for all it can get. */
static uint32_t
descriptor_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return 256;
    if (limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
            getrlimit(RLIMIT_NOFILE, &limit);
    }
    return limit.rlim_cur / 2 > 1 << 20 ? 1 << 20 : (uint32_t)(limit.rlim_cur / 2);
}

tundish_status
source_files_open(const struct source_files_options *options, struct source_files **ret_files)
{
    struct source_files *files = tnd_zalloc(1, sizeof *files);
    const char *root = options->root == NULL ? "." : options->root;
    uint64_t block_bytes = options->block_bytes == 0 ? SOURCE_BLOCK_BYTES : options->block_bytes;
    tundish_status status = TUNDISH_OK;

    pthread_mutex_init(&files->entering, NULL);
    pthread_mutex_init(&files->opening, NULL);
    pthread_mutex_init(&files->queue_lock, NULL);
    pthread_cond_init(&files->queue_filled, NULL);
    files->cache_folder = -1;
    files->far = options->far;
    files->open_limit = descriptor_limit();
    files->blocks = block_cache_open(block_bytes);
    if (files->blocks == NULL)
        status = tnd_fail(TUNDISH_E_MEMORY,
                          "the cache of blocks needs %llu MiB of addresses, which this process may "
                          "not have (ulimit -v)",
                          (unsigned long long)block_bytes >> 20);
    files->cache_path = options->cache_folder == NULL ? NULL : tnd_strdup(options->cache_folder);
    files->root = realpath(root, NULL);
    if (status == TUNDISH_OK && files->root == NULL)
        status = tnd_fail_errno(errno, "cannot find the folder %s", root);
    if (status == TUNDISH_OK && options->reader_count > 0)
        status = start_readers(files, options->reader_count);
    if (status == TUNDISH_OK)
        *ret_files = files;
    else
        source_files_close(files);
    return status;
}

void
source_files_close(struct source_files *files)
{
    if (files == NULL)
        return;
    stop_readers(files);
    for (uint32_t i = 0; i < numbered_count(&files->table); i++) {
        struct source_file *file = numbered_get(&files->table, i);

        scan_close(file->scan);
        file_close(file);
        free(file->name);
        free(file->path);
        free(file);
    }
    for (uint32_t i = 0; i < numbered_count(&files->paths); i++)
        free(numbered_get(&files->paths, i));
    for (struct listing *listing = files->listings, *next; listing != NULL; listing = next) {
        next = listing->next;
        free(listing->key);
        free(listing->list.numbers);
        free(listing->list.labels);
        free(listing);
    }
    block_cache_close(files->blocks);
    numbered_close(&files->table);
    numbered_close(&files->paths);
    free(files->lookup.slots);
    if (files->cache_folder >= 0)
        close(files->cache_folder);
    free(files->cache_text);
    free(files->cache_path);
    free(files->root);
    pthread_cond_destroy(&files->queue_filled);
    pthread_mutex_destroy(&files->queue_lock);
    pthread_mutex_destroy(&files->opening);
    pthread_mutex_destroy(&files->entering);
    free(files);
}

void
source_files_stats(const struct source_files *files, struct source_files_stats *ret_stats)
{
    const struct source_counters *counters = &files->counters;

    *ret_stats = (struct source_files_stats){
        .bytes_scanned = atomic_load_explicit(&counters->bytes_scanned, memory_order_relaxed),
        .bytes_read = atomic_load_explicit(&counters->bytes_read, memory_order_relaxed),
        .rows_read = atomic_load_explicit(&counters->rows_read, memory_order_relaxed),
        .files_opened = atomic_load_explicit(&counters->files_opened, memory_order_relaxed),
        .index_hits = atomic_load_explicit(&counters->index_hits, memory_order_relaxed),
        .program_wait_ns = atomic_load_explicit(&counters->program_wait_ns, memory_order_relaxed),
    };
}

struct source_counters *
table_counters(struct source_files *files)
{
    return &files->counters;
}

struct block_cache *
table_block_cache(const struct source_files *files)
{
    return files->blocks;
}

uint32_t
table_reader_count(const struct source_files *files)
{
    return files->reader_count;
}

static bool
is_same_format(const struct record_format *a, const struct record_format *b)
{
    return a->scanner == b->scanner && a->packing == b->packing &&
           memcmp(a->numbers, b->numbers, sizeof a->numbers) == 0;
}

static uint64_t
hash_name(const char *name, size_t bytes)
{
    uint64_t hash = UINT64_C(0xCBF29CE484222325);

    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ (uint8_t)name[i]) * UINT64_C(0x100000001B3);
    return hash ^ hash >> 32;
}

/* The slot where the file is, or where it belongs. */
static uint32_t *
find_slot(const struct source_files *files, const char *name, size_t bytes,
          const struct record_format *format)
{
    const struct file_lookup *lookup = &files->lookup;
    uint64_t at = hash_name(name, bytes);

    for (;; at++) {
        uint32_t *slot = &lookup->slots[at & (lookup->slot_count - 1)];
        const struct source_file *file;

        if (*slot == 0)
            return slot;
        file = numbered_get(&files->table, *slot - 1);
        if (strlen(file->name) == bytes && memcmp(file->name, name, bytes) == 0 &&
            is_same_format(&file->format, format))
            return slot;
    }
}

static void
grow_lookup(struct source_files *files)
{
    struct file_lookup *lookup = &files->lookup;
    uint32_t count = numbered_count(&files->table);

    if (lookup->slot_count > 2 * count)
        return;
    free(lookup->slots);
    lookup->slot_count = lookup->slot_count == 0 ? 64 : 2 * lookup->slot_count;
    lookup->slots = tnd_zalloc(lookup->slot_count, sizeof *lookup->slots);
    for (uint32_t i = 0; i < count; i++) {
        const struct source_file *file = numbered_get(&files->table, i);

        *find_slot(files, file->name, strlen(file->name), &file->format) = i + 1;
    }
}

/* What is nowhere is looked for here, and complained about. */
static void
look_for_owner(struct source_file *file, const struct catalogue *catalogue)
{
    const struct catalogue_file *known = catalogue_find(catalogue, file->name);

    if (known == NULL || known->is_here)
        return;
    file->is_far = true;
    file->owner = known->owner;
    file->is_known = true;
    file->identity.size = INT64_MAX; /* records end where their owner says */
}

static struct source_file *
file_new(struct source_files *files, const char *name, size_t bytes,
         const struct record_format *format)
{
    struct source_file *file = tnd_zalloc(1, sizeof *file);

    file->files = files;
    file->name = tnd_strndup(name, bytes);
    file->path = file->name[0] == '/' ? tnd_strdup(file->name)
                                      : tnd_sprintf("%s/%s", files->root, file->name);
    file->format = *format;
    file->scan = scan_new(file);
    if (files->far != NULL)
        look_for_owner(file, far_catalogue(files->far));
    return file;
}

struct file_set *
table_note_files(struct source_files *files, struct file_set *set)
{
    struct file_set *before = files->noted;

    files->noted = set;
    return before;
}

static void
note(struct file_set *set, uint32_t number)
{
    if (set == NULL || (set->count > 0 && set->numbers[set->count - 1] == number))
        return;
    if ((set->count & (set->count - 1)) == 0)
        set->numbers =
            tnd_realloc(set->numbers, set->count == 0 ? 1 : 2 * set->count, sizeof *set->numbers);
    set->numbers[set->count++] = number;
}

struct source_file *
table_enter(struct source_files *files, const char *name, size_t name_bytes,
            const struct record_format *format)
{
    struct source_file *file;
    uint32_t *slot;

    pthread_mutex_lock(&files->entering);
    grow_lookup(files);
    name_bytes = strnlen(name, name_bytes); /* as the kernel would read it */
    slot = find_slot(files, name, name_bytes, format);
    if (*slot == 0) {
        file = file_new(files, name, name_bytes, format);
        file->number = numbered_count(&files->table);
        *slot = numbered_add(&files->table, file) + 1;
    } else {
        file = numbered_get(&files->table, *slot - 1);
    }
    note(files->noted, file->number);
    pthread_mutex_unlock(&files->entering);
    return file;
}

struct source_file *
table_enter_open(struct source_files *files, const char *name, int descriptor)
{
    static const struct record_format no_records = { 0 };
    struct source_file *file;

    pthread_mutex_lock(&files->entering);
    file = file_new(files, name, strlen(name), &no_records);
    atomic_store_explicit(&file->unpacked, descriptor + 1, memory_order_release);
    file->number = numbered_add(&files->table, file);
    pthread_mutex_unlock(&files->entering);
    return file;
}

struct source_file *
table_file(const struct source_files *files, uint32_t number)
{
    return numbered_get(&files->table, number);
}

const char *
table_path(const struct source_files *files, uint32_t number, size_t *ret_bytes)
{
    const struct path_entry *entry = numbered_get(&files->paths, number);

    must(entry != NULL);
    *ret_bytes = entry->bytes;
    return entry->text;
}

static uint32_t
add_path(struct source_files *files, const char *path)
{
    size_t bytes = strlen(path);
    struct path_entry *entry = tnd_zalloc(1, sizeof *entry + bytes + 64); /* as bytes.h asks for */

    entry->bytes = bytes;
    memcpy(entry->text, path, bytes);
    return numbered_add(&files->paths, entry);
}

static struct listing *
find_listing(struct source_files *files, const char *key, size_t key_bytes)
{
    for (struct listing *listing = files->listings; listing != NULL; listing = listing->next)
        if (listing->key_bytes == key_bytes && memcmp(listing->key, key, key_bytes) == 0)
            return listing;
    return NULL;
}

static struct listing *
listing_new(struct source_files *files, const struct path_search *search, struct glob_list *found)
{
    struct listing *listing = tnd_zalloc(1, sizeof *listing);

    listing->key = tnd_alloc(search->key_bytes + 1);
    memcpy(listing->key, search->key, search->key_bytes);
    listing->key_bytes = search->key_bytes;
    listing->list.count = (uint32_t)found->count;
    listing->list.labels = found->labels;
    found->labels = NULL;
    listing->list.numbers = tnd_zalloc(found->count, sizeof *listing->list.numbers);
    for (size_t i = 0; i < found->count; i++)
        listing->list.numbers[i] = add_path(files, found->paths[i]);
    listing->next = files->listings;
    files->listings = listing;
    return listing;
}

tundish_status
table_list_paths(struct source_files *files, const struct path_search *search,
                 const struct path_list **ret_list)
{
    struct glob_list found = { 0 };
    struct listing *listing;
    tundish_status status = TUNDISH_OK;

    pthread_mutex_lock(&files->entering);
    listing = find_listing(files, search->key, search->key_bytes);
    if (listing == NULL)
        status = search->find(search->context, files->root, &found);
    if (listing == NULL && status == TUNDISH_OK && found.count > UINT32_MAX / 2)
        status = tnd_fail(TUNDISH_E_DATA, "more than 2 billion files");
    if (listing == NULL && status == TUNDISH_OK)
        listing = listing_new(files, search, &found);
    pthread_mutex_unlock(&files->entering);
    glob_list_close(&found);
    if (status == TUNDISH_OK)
        *ret_list = &listing->list;
    return status;
}

struct far *
table_far(const struct source_files *files)
{
    return files->far;
}

const char *
table_root(const struct source_files *files)
{
    return files->root;
}

void
table_lock_opening(struct source_files *files)
{
    pthread_mutex_lock(&files->opening);
}

void
table_unlock_opening(struct source_files *files)
{
    pthread_mutex_unlock(&files->opening);
}

void
table_count_open(struct source_files *files, uint32_t count)
{
    files->open_count += count;
}

void
table_make_room(struct source_files *files)
{
    uint32_t count = numbered_count(&files->table);

    for (uint32_t i = 0; i < count && files->open_count >= files->open_limit; i++) {
        struct source_file *file = numbered_get(&files->table, files->clock_hand++ % count);

        if (file_try_close(file))
            files->open_count--;
    }
}

tundish_status
table_cache_folder(struct source_files *files, int *ret_folder)
{
    tundish_status status;

    pthread_mutex_lock(&files->opening);
    if (files->cache_folder < 0 && files->cache_status == TUNDISH_OK) {
        files->cache_status = tnd_cache_folder_open(files->cache_path, &files->cache_folder);
        if (files->cache_status != TUNDISH_OK)
            files->cache_text = tnd_strdup(tnd_error_text());
    }
    status = files->cache_status;
    if (status == TUNDISH_OK)
        *ret_folder = files->cache_folder;
    else
        (void)tnd_fail(status, "%s", files->cache_text);
    pthread_mutex_unlock(&files->opening);
    return status;
}
