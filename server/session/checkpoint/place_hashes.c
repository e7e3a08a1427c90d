/* place_hashes.c - see place_hashes.h. */
#include "session/checkpoint/place_hashes.h"

#include <errno.h>
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
#include "core/must.h"
#include "core/own_file.h"
#include "core/read_write.h"
#include "source/files/file.h"

/* A data set that was written again differs nearly everywhere, so a few pages are enough. Fewer
 * reads than are worth a file take no longer than it does. */
enum { WHOLE_BYTES = 256 << 10, SAMPLES = 16, SAMPLE_BYTES = 4096, WORTH_READS = 128 };
enum { HASHES_VERSION = 1 };
static const int64_t YOUNG_NS = 2000000000;

/* A file of them: this, and what is kept of each file, by device and inode. */
struct header {
    uint64_t magic;
    uint32_t version, crc; /* of what follows */
    uint64_t count;
};

struct kept {
    struct file_identity identity;
    uint64_t hash;
};

_Static_assert(sizeof(struct kept) == 48, "the layout of what is kept has changed");

struct place_hashes {
    int folder; /* -1: there is none */
    char name[TND_CACHE_NAME_BYTES];
    struct kept *known;
    size_t known_count;
    struct made {
        struct kept kept; /* its inode is 0: none */
        uint32_t reads;   /* 0: it was known */
    } * made;             /* by number */
    uint32_t count;
};

static uint64_t
mix_piece(uint64_t hash, int descriptor, int64_t offset, size_t byte_count)
{
    uint8_t few[SAMPLE_BYTES];
    uint8_t *bytes = byte_count <= sizeof few ? few : tnd_alloc(byte_count);
    size_t got = 0;

    (void)tnd_read_at(descriptor, bytes, byte_count, (uint64_t)offset, &got);
    hash = tnd_hash_farm_chain(hash, bytes, got);
    if (bytes != few)
        free(bytes);
    return hash;
}

struct place_samples
place_samples_of(int64_t size)
{
    if (size <= WHOLE_BYTES)
        return (struct place_samples){ 1, (size_t)size, 0 };
    return (struct place_samples){ SAMPLES, SAMPLE_BYTES,
                                   (uint64_t)((size - SAMPLE_BYTES) / (SAMPLES - 1)) };
}

uint64_t
place_samples_begin(int64_t size)
{
    return tnd_hash_farm_chain(1, &size, sizeof size);
}

/* Read the file of that name, if it is one of these. The folder may be shared: a link, a pipe, or a
 * file of another user is not taken. */
static void
read_known(struct place_hashes *hashes)
{
    int descriptor =
        openat(hashes->folder, hashes->name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct header header = { 0 };
    struct stat about;
    size_t got = 0, bytes = 0;

    if (descriptor < 0)
        return;
    if (fstat(descriptor, &about) == 0 && tnd_own_file_is_ours(&about) &&
        tnd_read_at(descriptor, &header, sizeof header, 0, &got) == 0 && got == sizeof header &&
        header.magic == TND_HASHES_MAGIC && header.version == HASHES_VERSION &&
        header.count == ((uint64_t)about.st_size - sizeof header) / sizeof *hashes->known)
        bytes = header.count * sizeof *hashes->known;
    hashes->known = tnd_alloc(bytes + 1);
    if (tnd_read_at(descriptor, hashes->known, bytes, sizeof header, &got) == 0 && got == bytes &&
        header.crc == tnd_crc32c(0, hashes->known, bytes))
        hashes->known_count = bytes / sizeof *hashes->known;
    close(descriptor);
}

struct place_hashes *
place_hashes_open(const char *cache_folder, uint64_t key, uint32_t count)
{
    struct place_hashes *hashes = tnd_zalloc(1, sizeof *hashes);

    hashes->made = tnd_zalloc((size_t)count + 1, sizeof *hashes->made);
    hashes->count = count;
    snprintf(hashes->name, sizeof hashes->name, "files-%016llx.hashes", (unsigned long long)key);
    if (tnd_cache_folder_open(cache_folder, &hashes->folder) == TUNDISH_OK)
        read_known(hashes);
    else
        hashes->folder = -1;
    return hashes;
}

static int
compare_files(const void *a, const void *b)
{
    const struct file_identity *one = &((const struct kept *)a)->identity;
    const struct file_identity *other = &((const struct kept *)b)->identity;

    if (one->device != other->device)
        return one->device < other->device ? -1 : 1;
    return one->inode < other->inode ? -1 : one->inode > other->inode;
}

static bool
find_known(const struct place_hashes *hashes, int folder, const char *path, struct kept *ret_kept)
{
    struct stat about;
    struct kept here;
    const struct kept *known;

    if (hashes->known_count == 0 || fstatat(folder, path, &about, 0) != 0)
        return false;
    here.identity = file_identity_of(&about);
    known = bsearch(&here, hashes->known, hashes->known_count, sizeof here, compare_files);
    if (known == NULL || memcmp(&known->identity, &here.identity, sizeof here.identity) != 0)
        return false;
    *ret_kept = *known;
    return true;
}

static bool
is_young(const struct file_identity *identity)
{
    int64_t now_ns = tnd_clock_wall_ns();

    return now_ns - identity->modified_ns < YOUNG_NS || now_ns - identity->changed_ns < YOUNG_NS;
}

uint64_t
place_hashes_of(struct place_hashes *hashes, uint32_t number, int folder, const char *path,
                bool *ret_is_here)
{
    struct made *made = &hashes->made[number];
    struct place_samples samples;
    struct stat about;
    uint64_t hash = 1;
    int descriptor;

    must_in_debug(number < hashes->count && made->reads == 0);
    *ret_is_here = true;
    if (find_known(hashes, folder, path, &made->kept))
        return made->kept.hash;
    /* O_NONBLOCK: a FIFO of that name must not block the start. */
    descriptor = openat(folder, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (descriptor < 0) {
        hash = tnd_hash_farm_chain(0, &errno, sizeof errno);
        *ret_is_here = faccessat(folder, path, F_OK, 0) == 0;
        return hash;
    }
    if (fstat(descriptor, &about) == 0 && S_ISREG(about.st_mode)) {
        samples = place_samples_of(about.st_size);
        hash = place_samples_begin(about.st_size);
        for (uint32_t i = 0; i < samples.count; i++)
            hash = mix_piece(hash, descriptor, (int64_t)(samples.stride * i), samples.bytes);
        /* As it was before it was read: if it changes meanwhile, that is young. */
        made->kept = (struct kept){ file_identity_of(&about), hash };
        made->reads = samples.count;
        if (is_young(&made->kept.identity))
            *made = (struct made){ 0 };
    }
    close(descriptor);
    return hash;
}

static tundish_status
write_all(struct tnd_cache_build *build, struct kept *all, size_t count)
{
    struct header header = { .magic = TND_HASHES_MAGIC,
                             .version = HASHES_VERSION,
                             .count = count,
                             .crc = tnd_crc32c(0, all, count * sizeof *all) };
    tundish_status status = tnd_cache_build_write(build, &header, sizeof header);

    return status == TUNDISH_OK ? tnd_cache_build_write(build, all, count * sizeof *all) : status;
}

/* Files that were made in the order of their names lie in that of their inodes. */
static bool
are_sorted(const struct kept *all, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (compare_files(&all[i - 1], &all[i]) > 0)
            return false;
    return true;
}

/* Without them the files are read again in the next start, which costs only time. */
static void
keep(const struct place_hashes *hashes)
{
    struct kept *all = tnd_alloc(((size_t)hashes->count + 1) * sizeof *all);
    struct tnd_cache_build build;
    size_t count = 0;

    for (uint32_t i = 0; i < hashes->count; i++)
        if (hashes->made[i].kept.identity.inode != 0)
            all[count++] = hashes->made[i].kept;
    if (!are_sorted(all, count))
        qsort(all, count, sizeof *all, compare_files);
    if (tnd_cache_build_begin(hashes->folder, hashes->name, &build) == TUNDISH_OK) {
        if (write_all(&build, all, count) == TUNDISH_OK)
            (void)tnd_cache_build_publish(&build, NULL);
        else
            tnd_cache_build_cancel(&build);
    }
    free(all);
}

void
place_hashes_close(struct place_hashes *hashes)
{
    uint64_t reads = 0;

    if (hashes == NULL)
        return;
    for (uint32_t i = 0; i < hashes->count; i++)
        reads += hashes->made[i].reads;
    if (hashes->folder >= 0 && reads >= WORTH_READS)
        keep(hashes);
    if (hashes->folder >= 0)
        close(hashes->folder);
    free(hashes->known);
    free(hashes->made);
    free(hashes);
}
