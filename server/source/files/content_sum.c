/* content_sum.c - see content_sum.h. */
#include "source/files/content_sum.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/cache_folder.h"
#include "core/clock.h"
#include "core/crc32c.h"
#include "core/hash_farm.h"
#include "core/magic.h"
#include "core/memory.h"
#include "core/read_write.h"

/* A smaller file is read again in no time. */
enum { SUM_VERSION = 1, WORTH_BYTES = 1 << 20, PIECE_BYTES = 1 << 20 };
static const int64_t YOUNG_NS = 2000000000;

/* The path is in it by its hash, and in the name; a collision would need the same device, inode and
 * times. */
struct sum_file {
    uint64_t magic;
    uint32_t version;
    uint32_t crc; /* with 0 here */
    struct file_identity identity;
    uint64_t path_hash, sum;
};

_Static_assert(sizeof(struct sum_file) == 72, "the layout of a sum has changed");

static uint32_t
crc_of(const struct sum_file *kept)
{
    struct sum_file copy = *kept;

    copy.crc = 0;
    return tnd_crc32c(0, &copy, sizeof copy);
}

static struct file_identity
identity_of(struct source_file *file)
{
    struct file_identity identity = { 0 };

    pthread_mutex_lock(&file->services->lock);
    if (file->is_known)
        identity = file->identity;
    pthread_mutex_unlock(&file->services->lock);
    return identity;
}

/* As file_remote.c notes it: without times, if there is an ETag or a date. */
static bool
is_version(const struct file_identity *identity)
{
    return identity->device == UINT64_MAX && identity->modified_ns == 0;
}

bool
content_sum_applies(struct source_file *file)
{
    struct file_identity identity = identity_of(file);

    return file->format.packing == PACKING_NONE && file->peers == NULL &&
           (file->is_url ? is_version(&identity) : identity.inode != 0);
}

/* 0 stands for none. */
static uint64_t
note(struct source_file *file, uint64_t sum)
{
    sum += sum == 0;
    atomic_store_explicit(&file->content_sum, sum, memory_order_relaxed);
    return sum;
}

static struct sum_file
key_of(struct source_file *file)
{
    return (struct sum_file){
        .magic = TND_SUM_MAGIC,
        .version = SUM_VERSION,
        .identity = identity_of(file),
        .path_hash = tnd_hash_farm(file->path, strlen(file->path)),
    };
}

static bool
find_place(struct source_file *file, const struct sum_file *key, char name[TND_CACHE_NAME_BYTES],
           int *ret_folder)
{
    snprintf(name, TND_CACHE_NAME_BYTES, "bytes-%016llx.sum", (unsigned long long)key->path_hash);
    return key->identity.size >= WORTH_BYTES &&
           services_cache_folder(file->services, ret_folder) == TUNDISH_OK;
}

/* The folder may be shared: a link, a pipe, or a file of another user is not read. */
static bool
read_kept(int folder, const char *name, struct sum_file *ret_kept)
{
    int descriptor = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct stat about;
    size_t got = 0;
    bool is_whole;

    if (descriptor < 0)
        return false;
    is_whole = fstat(descriptor, &about) == 0 && S_ISREG(about.st_mode) &&
               about.st_uid == geteuid() &&
               tnd_read_at(descriptor, ret_kept, sizeof *ret_kept, 0, &got) == 0 &&
               got == sizeof *ret_kept && ret_kept->crc == crc_of(ret_kept);
    close(descriptor);
    return is_whole;
}

uint64_t
content_sum_recall(struct source_file *file)
{
    uint64_t sum = atomic_load_explicit(&file->content_sum, memory_order_relaxed);
    struct sum_file key = key_of(file), kept;
    char name[TND_CACHE_NAME_BYTES];
    int folder;

    if (sum != 0)
        return sum;
    if (file->is_url) {
        uint64_t words[2] = { key.identity.inode, key.identity.size };

        return is_version(&key.identity) ? note(file, tnd_hash_farm(words, sizeof words)) : 0;
    }
    if (!find_place(file, &key, name, &folder) || !read_kept(folder, name, &kept))
        return 0;
    key.sum = kept.sum;
    key.crc = kept.crc;
    return memcmp(&key, &kept, sizeof key) == 0 ? note(file, kept.sum) : 0;
}

/* Without it the file is read again by the next process, which costs only time. */
static void
keep(struct source_file *file, struct sum_file *key, uint64_t sum)
{
    int64_t now_ns = tnd_clock_wall_ns();
    struct tnd_cache_build build;
    char name[TND_CACHE_NAME_BYTES];
    int folder;

    if (now_ns - key->identity.modified_ns < YOUNG_NS ||
        now_ns - key->identity.changed_ns < YOUNG_NS || !find_place(file, key, name, &folder) ||
        tnd_cache_build_begin(folder, name, &build) != TUNDISH_OK)
        return;
    key->sum = sum;
    key->crc = crc_of(key);
    if (tnd_cache_build_write(&build, key, sizeof *key) == TUNDISH_OK)
        (void)tnd_cache_build_publish(&build, NULL);
    else
        tnd_cache_build_cancel(&build);
}

static tundish_status
sum_up(int descriptor, const _Atomic int *stop, uint64_t *ret_sum)
{
    uint8_t *piece = tnd_alloc(PIECE_BYTES);
    uint64_t sum = 0, offset = 0;
    size_t got = PIECE_BYTES;
    tundish_status status = TUNDISH_OK;

    while (status == TUNDISH_OK && got == PIECE_BYTES) {
        if (atomic_load_explicit(stop, memory_order_relaxed) != 0) {
            status = tnd_fail(TUNDISH_E_TIMEOUT, "it was stopped");
            break;
        }
        status = file_read_some(descriptor, piece, PIECE_BYTES, offset, &got);
        if (status == TUNDISH_OK)
            sum = tnd_hash_farm_chain(sum, piece, got);
        offset += got;
    }
    free(piece);
    *ret_sum = sum;
    return status;
}

tundish_status
content_sum_make(struct source_file *file, const _Atomic int *stop)
{
    int descriptor;
    uint64_t sum;
    struct sum_file key;
    tundish_status status = file_open(file, &descriptor);

    if (status != TUNDISH_OK || descriptor < 0)
        return status != TUNDISH_OK ? status
                                    : tnd_fail(TUNDISH_E_DATA, "%s is not here", file->name);
    key = key_of(file);
    status = sum_up(descriptor, stop, &sum);
    if (status == TUNDISH_OK)
        status = file_compare(file, descriptor);
    close(descriptor);
    if (status != TUNDISH_OK)
        return status;
    (void)note(file, sum);
    keep(file, &key, sum);
    return TUNDISH_OK;
}
