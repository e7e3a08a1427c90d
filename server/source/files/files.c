/* files.c - the table of a session's files. */
#include "source/files/files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "column/scratch.h"
#include "content/records/file_kind.h"
#include "core/memory.h"
#include "core/must.h"
#include "core/read_write.h"
#include "source/files/block_cache.h"
#include "source/files/files_private.h"
#include "source/files/numbered.h"
#include "source/parquet/file.h"
#include "source/parquet/row_groups.h"
#include "source/peer/peer_ahead.h"
#include "source/peer/peer_files.h"
#include "source/scan/scan_work.h"
#include "spec/spec.h"

/* A path by its number. */
struct path_entry {
    size_t bytes;
    char text[];
};

/* The paths that a search has found. */
struct listing {
    struct listing *next;
    char *key;
    size_t key_bytes;
    struct path_list list;
};

/* An open-addressing table by name and format. A slot holds the number of a file + 1; 0 is free. */
struct file_lookup {
    uint32_t *slots;
    uint32_t slot_count; /* a power of two, or 0 */
};

struct source_files {
    char *root;
    struct peers *peers;            /* NULL: every file is here */
    bool are_local;                 /* ... else: files that are not at URLs */
    struct other_files other_files; /* where they are local */
    struct peer_ahead *ahead;       /* with `peers`; else NULL */

    pthread_mutex_t entering; /* guards entering files, paths and listings */
    struct numbered table;
    struct numbered paths;
    struct scratch *texts; /* of the paths, or NULL */
    struct file_lookup lookup;
    struct listing *listings;
    struct block_cache *blocks;
    struct row_groups *row_groups;
    _Atomic bool has_urls, has_parquet; /* among the files */
    struct file_set *noted;             /* where entered files are noted, or NULL */
    struct begun *begun;                /* begun.h */

    struct source_services services;
};

tundish_status
source_files_open(const struct source_files_options *options, struct source_files **ret_files)
{
    struct source_files *files = tnd_zalloc(1, sizeof *files);
    const char *root = options->root == NULL ? "." : options->root;
    uint64_t block_bytes = options->block_bytes == 0 ? SOURCE_BLOCK_BYTES : options->block_bytes;
    tundish_status status = TUNDISH_OK;

    pthread_mutex_init(&files->entering, NULL);
    files->peers = options->peers;
    files->are_local = options->are_local && options->peers != NULL;
    if (files->are_local)
        files->other_files = peer_other_files(options->peers);
    files->ahead = options->peers == NULL ? NULL : peer_ahead_open();
    services_open(&files->services, options->cache_folder, options->reader_count);
    files->services.skip_damage = options->skip_damage;
    files->services.remote = options->remote;
    files->services.seen = options->seen;
    files->services.listed = options->listed;
    files->blocks = block_cache_open(block_bytes);
    files->row_groups = row_groups_open(options->row_group_bytes);
    if (status == TUNDISH_OK && files->blocks == NULL)
        status = tnd_fail(TUNDISH_E_MEMORY,
                          "the block cache needs %llu MiB of address space, more than this process "
                          "may use (ulimit -v)",
                          (unsigned long long)block_bytes >> 20);
    files->root = realpath(root, NULL);
    if (status == TUNDISH_OK && files->root == NULL)
        status = tnd_fail_errno(errno, "cannot find the folder %s", root);
    if (status == TUNDISH_OK)
        *ret_files = files;
    else
        source_files_close(files);
    return status;
}

void
source_files_look_again(struct source_files *files)
{
    for (uint32_t i = 0; i < numbered_count(&files->table); i++) {
        struct source_file *file = numbered_get(&files->table, i);

        atomic_store_explicit(&file->looked_at_ns, INT64_MIN / 2, memory_order_relaxed);
    }
}

void
source_files_close(struct source_files *files)
{
    if (files == NULL)
        return;
    source_files_end_begun(files);
    /* The threads that scan ahead use the files, so they stop first. */
    services_stop(&files->services);
    peer_ahead_close(files->ahead);
    row_groups_close(files->row_groups);
    for (uint32_t i = 0; i < numbered_count(&files->table); i++) {
        struct source_file *file = numbered_get(&files->table, i);

        scan_close(file->scan);
        file_close(file);
        parquet_file_close(file->parquet);
        free(file->name);
        free(file->path);
        free(file);
    }
    scratch_close(files->texts);
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
    services_close(&files->services);
    free(files->root);
    pthread_mutex_destroy(&files->entering);
    free(files);
}

uint64_t
source_files_damaged(struct source_files *files, const char **ret_text)
{
    return files == NULL ? 0 : services_damaged(&files->services, ret_text);
}

uint32_t
source_files_entered(const struct source_files *files)
{
    return files == NULL ? 0 : numbered_count(&files->table);
}

void
source_files_stats(const struct source_files *files, struct source_files_stats *ret_stats)
{
    const struct source_counters *counters = &files->services.counters;

    *ret_stats = (struct source_files_stats){
        .bytes_scanned = atomic_load_explicit(&counters->bytes_scanned, memory_order_relaxed),
        .bytes_read = atomic_load_explicit(&counters->bytes_read, memory_order_relaxed),
        .rows_read = atomic_load_explicit(&counters->rows_read, memory_order_relaxed),
        .files_opened = atomic_load_explicit(&counters->files_opened, memory_order_relaxed),
        .index_hits = atomic_load_explicit(&counters->index_hits, memory_order_relaxed),
        .program_wait_ns = atomic_load_explicit(&counters->program_wait_ns, memory_order_relaxed),
    };
}

struct source_services *
files_services(struct source_files *files)
{
    return &files->services;
}

struct begun **
files_begun(struct source_files *files)
{
    return &files->begun;
}

struct block_cache *
files_block_cache(const struct source_files *files)
{
    return files->blocks;
}

struct row_groups *
files_row_groups(const struct source_files *files)
{
    return files->row_groups;
}

/* One file may be read as text and as CSV in one pipeline. The records differ, so these are two
 * entries. */
static bool
is_same_format(const struct record_format *a, const struct record_format *b)
{
    return a->scanner == b->scanner && a->packing == b->packing &&
           memcmp(a->numbers, b->numbers, sizeof a->numbers) == 0;
}

/* FNV-1a, folded so that the low bits that select a slot depend on all of them. */
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

    /* At most half of the slots are taken, so a search ends soon. */
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

/* Find the node that has the file. A file that no node has stays here, and the complaint is about
 * this machine's path. */
static void
look_for_owner(struct source_file *file, struct peers *peers)
{
    const struct catalogue_file *known = catalogue_find(peers_catalogue(peers), file->name);

    if (known == NULL || known->is_here || !peer_reads(&file->format))
        return;
    file->peers = peers;
    file->is_url = false; /* for this node */
    if (file->format.scanner->contents == NULL)
        file->input = &peer_scan_input;
    file->owner = known->owner;
    file->is_known = true;
    file->identity.size = INT64_MAX; /* records end where their owner says */
}

/* Does the file begin as a packed one? One that cannot be read is told of when it is opened. */
static bool
content_is_packed(const char *path)
{
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    uint8_t begin[FILE_KIND_BYTES];
    struct stat about;
    size_t got = 0;
    bool is_packed = false;

    if (descriptor < 0)
        return false;
    if (fstat(descriptor, &about) == 0 && S_ISREG(about.st_mode) &&
        tnd_read_at(descriptor, begin, sizeof begin, 0, &got) == 0)
        is_packed = file_kind_is_packed(begin, got);
    close(descriptor);
    return is_packed;
}

static struct source_file *
file_new(struct source_files *files, const char *name, size_t bytes,
         const struct record_format *format)
{
    struct source_file *file = tnd_zalloc(1, sizeof *file);

    file->services = &files->services;
    file->name = tnd_strndup(name, bytes);
    file->is_url = spec_is_url(file->name);
    file->path = file->name[0] == '/' || file->is_url
                     ? tnd_strdup(file->name)
                     : tnd_memory_joined(files->root, "/", file->name);
    file->format = *format;
    file->packing = format->packing;
    if (file->packing == PACKING_NONE && !file->is_url && format->scanner != NULL &&
        format->scanner->may_be_packed && content_is_packed(file->path))
        file->packing = PACKING_ANY;
    file->input = file->packing == PACKING_NONE ? &scan_input_plain : &scan_input_packed;
    file->scan = scan_new(file);
    /* The identity of another node's file cannot be looked at. */
    if (files->peers != NULL && file->is_url != files->are_local)
        look_for_owner(file, files->peers);
    if (file->is_url)
        atomic_store_explicit(&files->has_urls, true, memory_order_relaxed);
    if (format->parquet != NULL)
        atomic_store_explicit(&files->has_parquet, true, memory_order_relaxed);
    return file;
}

struct file_set *
files_note_files(struct source_files *files, struct file_set *set)
{
    struct file_set *before = files->noted;

    files->noted = set;
    return before;
}

static void
note_file(struct file_set *set, uint32_t number)
{
    /* Many elements in a row come from one file. */
    if (set == NULL || (set->count > 0 && set->numbers[set->count - 1] == number))
        return;
    set->numbers = tnd_grow(set->numbers, set->count, sizeof *set->numbers);
    set->numbers[set->count++] = number;
}

struct source_file *
files_enter(struct source_files *files, const char *name, size_t name_bytes,
            const struct record_format *format)
{
    struct source_file *file;
    uint32_t *slot;

    pthread_mutex_lock(&files->entering);
    grow_lookup(files);
    name_bytes = strnlen(
        name, name_bytes); /* as the kernel would read it: a name from a record may contain NUL */
    slot = find_slot(files, name, name_bytes, format);
    if (*slot == 0) {
        file = file_new(files, name, name_bytes, format);
        file->number = numbered_count(&files->table);
        *slot = numbered_add(&files->table, file) + 1;
    } else {
        file = numbered_get(&files->table, *slot - 1);
    }
    note_file(files->noted, file->number);
    pthread_mutex_unlock(&files->entering);
    return file;
}

struct source_file *
files_enter_open(struct source_files *files, const char *name, int descriptor)
{
    /* A spool has no records of its own and is never found by name. */
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
files_file(const struct source_files *files, uint32_t number)
{
    return numbered_get(&files->table, number);
}

const char *
files_path(const struct source_files *files, uint32_t number, size_t *ret_bytes)
{
    const struct path_entry *entry = numbered_get(&files->paths, number);

    must(entry != NULL);
    *ret_bytes = entry->bytes;
    return entry->text;
}

static size_t
entry_bytes(const char *path)
{
    const size_t mask = _Alignof(struct path_entry) - 1;

    return (sizeof(struct path_entry) + strlen(path) + 1 + mask) & ~mask;
}

/* A search finds each path once, and the copies live as long as the session: references hold only
 * numbers. One lies after the other, so that bytes follow each, as bytes.h asks for. */
static void
add_paths(struct source_files *files, const char *const *paths, size_t count, uint32_t *ret_numbers)
{
    size_t bytes = 0;
    char *at;

    for (size_t i = 0; i < count; i++)
        bytes += entry_bytes(paths[i]);
    if (files->texts == NULL)
        files->texts = scratch_open();
    at = scratch_alloc(files->texts, bytes);
    for (size_t i = 0; i < count; i++) {
        struct path_entry *entry = (struct path_entry *)(void *)at;

        entry->bytes = strlen(paths[i]);
        memcpy(entry->text, paths[i], entry->bytes + 1);
        at += entry_bytes(paths[i]);
        ret_numbers[i] = numbered_add(&files->paths, entry);
    }
}

uint32_t
files_enter_path(struct source_files *files, const char *path)
{
    uint32_t number;

    pthread_mutex_lock(&files->entering);
    add_paths(files, &path, 1, &number);
    pthread_mutex_unlock(&files->entering);
    return number;
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
listing_new(struct source_files *files, const struct path_search *search,
            struct matching_files *found)
{
    struct listing *listing = tnd_zalloc(1, sizeof *listing);

    listing->key = tnd_alloc(search->key_bytes + 1);
    memcpy(listing->key, search->key, search->key_bytes);
    listing->key_bytes = search->key_bytes;
    listing->list.count = (uint32_t)found->count;
    listing->list.labels = found->labels;
    found->labels = NULL;
    listing->list.numbers = tnd_zalloc(found->count, sizeof *listing->list.numbers);
    add_paths(files, (const char *const *)found->paths, found->count, listing->list.numbers);
    listing->next = files->listings;
    files->listings = listing;
    return listing;
}

tundish_status
files_list_paths(struct source_files *files, const struct path_search *search,
                 const struct path_list **ret_list)
{
    struct matching_files found = { 0 };
    struct listing *listing;
    const struct path_base base = {
        .root = files->root,
        .remote = files->services.remote,
        .seen = files->services.seen,
        .listed = files->services.listed,
        .catalogue = files->are_local ? peers_catalogue(files->peers) : NULL,
    };
    tundish_status status = TUNDISH_OK;

    /* The lock is held during the search: two threads that list one folder must get the same
     * list. */
    pthread_mutex_lock(&files->entering);
    listing = find_listing(files, search->key, search->key_bytes);
    if (listing == NULL)
        status = search->find(search->context, &base, &found);
    if (listing == NULL && status == TUNDISH_OK && found.count > UINT32_MAX / 2)
        status = tnd_fail(TUNDISH_E_DATA, "more than 2 billion files");
    if (listing == NULL && status == TUNDISH_OK)
        listing = listing_new(files, search, &found);
    pthread_mutex_unlock(&files->entering);
    matching_files_close(&found);
    if (status == TUNDISH_OK)
        *ret_list = &listing->list;
    return status;
}

struct peers *
files_peers(const struct source_files *files)
{
    return files->peers;
}

const struct other_files *
source_other_files(const struct source_files *files)
{
    return files->are_local ? &files->other_files : NULL;
}

struct peer_ahead *
files_peer_ahead(const struct source_files *files)
{
    return files->ahead;
}

bool
files_has_parquet(const struct source_files *files)
{
    return atomic_load_explicit(&files->has_parquet, memory_order_relaxed);
}

bool
files_has_urls(const struct source_files *files)
{
    return atomic_load_explicit(&files->has_urls, memory_order_relaxed);
}

const char *
files_root(const struct source_files *files)
{
    return files->root;
}
