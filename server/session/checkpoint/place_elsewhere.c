/* place_elsewhere.c - see place_elsewhere.h. */
#include "session/checkpoint/place_elsewhere.h"

#include <fcntl.h>
#include <inttypes.h>
#include <nettle/md5.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/hash_farm.h"
#include "core/log.h"
#include "core/memory.h"
#include "core/parallel_for.h"
#include "core/read_at.h"
#include "remote/ranges.h"

/* An object costs requests, a file the reading of all its bytes, while a trainer waits that brings
 * its place: some seconds at most. */
enum { OBJECTS_MAX = 512, LOOKERS = 16, READ_BYTES = 1 << 20 };
static const uint64_t FILES_BYTES_MAX = UINT64_C(4) << 30, SENT_PART_BYTES = 8 << 20;

/* What was looked at last: all replicas of a job bring a place of the same files. */
static struct {
    pthread_mutex_t lock;
    struct place_groups now, then;
    bool is_known, is_same;
} last = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* By what a file may be known there. */
enum known_by { BY_SAMPLES, BY_MD5, BY_MD5_OF_PARTS, KNOWN_BYS };

struct looking {
    const struct place_files *files;
    uint32_t first; /* of a group */
    uint64_t *hashes[KNOWN_BYS];
};

static tundish_status
read_samples(struct remote_ranges *ranges, uint64_t size, uint64_t *ret_hash)
{
    struct place_samples samples = place_samples_of((int64_t)size);
    uint8_t *bytes = tnd_alloc(samples.bytes + 1);
    uint64_t hash = place_samples_begin((int64_t)size);
    tundish_status status = TUNDISH_OK;

    for (uint32_t i = 0; i < samples.count; i++)
        remote_ranges_expect(ranges, samples.bytes, samples.stride * i);
    for (uint32_t i = 0; i < samples.count && status == TUNDISH_OK; i++) {
        status = remote_ranges_read(ranges, bytes, samples.bytes, samples.stride * i);
        hash = tnd_hash_farm_chain(hash, bytes, samples.bytes);
    }
    free(bytes);
    *ret_hash = hash;
    return status;
}

static tundish_status
look_at_object(const struct looking *looking, const struct place_file *file, uint64_t *ret_hash)
{
    struct remote *remote = NULL;
    struct remote_ranges *ranges = NULL;
    struct object_identity identity;
    tundish_status status = remote_get(looking->files->remote, &remote);

    if (status == TUNDISH_OK)
        status = remote_ranges_open(remote, file->url, &ranges);
    if (status == TUNDISH_OK)
        status = remote_ranges_identify(ranges, &identity);
    if (status == TUNDISH_OK)
        status = read_samples(ranges, identity.bytes, ret_hash);
    remote_ranges_close(ranges);
    return status;
}

/* Those of the whole, and of its parts. */
struct sums {
    struct md5_ctx whole, part, parts;
    uint64_t bytes, part_count;
};

static void
end_part(struct sums *sums)
{
    uint8_t digest[MD5_DIGEST_SIZE];

    md5_digest(&sums->part, sizeof digest, digest);
    md5_update(&sums->parts, sizeof digest, digest);
    sums->part_count++;
}

static void
add_bytes(struct sums *sums, const uint8_t *bytes, size_t count)
{
    md5_update(&sums->whole, count, bytes);
    md5_update(&sums->part, count, bytes);
    sums->bytes += count;
    if (sums->bytes % SENT_PART_BYTES == 0)
        end_part(sums);
}

static uint64_t
hash_of_tag(struct md5_ctx *md5, const char *end, uint64_t bytes)
{
    uint8_t digest[MD5_DIGEST_SIZE];
    char tag[2 * MD5_DIGEST_SIZE + 32] = "\"";

    md5_digest(md5, sizeof digest, digest);
    for (size_t i = 0; i < sizeof digest; i++)
        snprintf(tag + 1 + 2 * i, 3, "%02x", digest[i]);
    snprintf(tag + 1 + 2 * sizeof digest, sizeof tag - 1 - 2 * sizeof digest, "%s\"", end);
    return place_object_hash(bytes, tnd_hash_farm(tag, strlen(tag)));
}

static void
make_tags(struct sums *sums, uint64_t hashes[KNOWN_BYS])
{
    bool has_parts = sums->bytes >= SENT_PART_BYTES;
    char end[24];

    if (sums->bytes % SENT_PART_BYTES != 0)
        end_part(sums);
    snprintf(end, sizeof end, "-%" PRIu64, sums->part_count);
    hashes[BY_MD5] = hash_of_tag(&sums->whole, "", sums->bytes);
    hashes[BY_MD5_OF_PARTS] =
        has_parts ? hash_of_tag(&sums->parts, end, sums->bytes) : hashes[BY_MD5];
}

static tundish_status
sum_up(int descriptor, uint64_t hashes[KNOWN_BYS])
{
    struct sums sums = { 0 };
    uint8_t *bytes = tnd_alloc(READ_BYTES);
    size_t got = READ_BYTES;
    int error = 0;

    md5_init(&sums.whole);
    md5_init(&sums.part);
    md5_init(&sums.parts);
    while (got == READ_BYTES && error == 0) {
        error = tnd_read_at(descriptor, bytes, READ_BYTES, sums.bytes, &got);
        if (error == 0)
            add_bytes(&sums, bytes, got);
    }
    free(bytes);
    make_tags(&sums, hashes);
    return error == 0 ? TUNDISH_OK : tnd_fail_errno(error, "a file of the place");
}

static tundish_status
look_at_file(const struct place_file *file, uint64_t hashes[KNOWN_BYS])
{
    int descriptor = open(file->path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    struct stat about;
    tundish_status status = TUNDISH_E_DATA;

    if (descriptor < 0)
        return status;
    if (fstat(descriptor, &about) == 0 && S_ISREG(about.st_mode))
        status = sum_up(descriptor, hashes);
    close(descriptor);
    return status;
}

/* The hash that the file has now, where there is no other. */
static tundish_status
look_at(void *context, uint32_t number)
{
    const struct looking *looking = context;
    const struct place_file *file = &looking->files->list[looking->first + number];
    uint64_t hashes[KNOWN_BYS] = { file->raw_hash, file->raw_hash, file->raw_hash };
    tundish_status status = TUNDISH_OK;

    if (file->url != NULL)
        status = look_at_object(looking, file, &hashes[BY_SAMPLES]);
    else if (file->path != NULL)
        status = look_at_file(file, hashes);
    for (int by = 0; by < KNOWN_BYS; by++)
        looking->hashes[by][number] = place_file_hash(file, hashes[by]);
    return status;
}

/* By which all files of the group are those of the place: bits. */
static uint32_t
look_at_group(const struct place_files *files, const struct place_groups *groups, uint32_t group)
{
    struct looking looking = { .files = files };
    uint32_t count = 0, same = 0;

    while (looking.first < files->count && place_group_of(looking.first, files->count) < group)
        looking.first++;
    while (looking.first + count < files->count &&
           place_group_of(looking.first + count, files->count) == group)
        count++;
    if (count == 0)
        return UINT32_MAX;
    for (int by = 0; by < KNOWN_BYS; by++)
        looking.hashes[by] = tnd_zalloc(count, sizeof *looking.hashes[by]);
    if (tnd_parallel_for(count, count < LOOKERS ? count : LOOKERS, look_at, &looking) == TUNDISH_OK)
        for (int by = 0; by < KNOWN_BYS; by++)
            if ((uint32_t)place_group_hash(looking.hashes[by], count) == groups->hashes[group])
                same |= 1U << by;
    for (int by = 0; by < KNOWN_BYS; by++)
        free(looking.hashes[by]);
    return same;
}

static bool
are_too_many(const struct place_files *files)
{
    uint64_t bytes = 0, objects = 0;

    for (uint32_t i = 0; i < files->count; i++) {
        struct stat about;

        objects += files->list[i].url != NULL;
        if (files->list[i].path != NULL && stat(files->list[i].path, &about) == 0)
            bytes += (uint64_t)about.st_size;
        if (objects > OBJECTS_MAX || bytes > FILES_BYTES_MAX)
            return true;
    }
    return false;
}

static bool
look(const struct place_files *files, const struct place_groups *groups)
{
    uint32_t same = UINT32_MAX;

    if (are_too_many(files))
        return false;
    for (uint32_t group = 0; group < PLACE_FILE_GROUPS && same != 0; group++)
        if (groups->hashes[group] != files->groups.hashes[group])
            same = look_at_group(files, groups, group);
    return same != 0 && same != UINT32_MAX;
}

bool
place_elsewhere_is_same(const struct place_files *files, const struct place_groups *groups)
{
    bool is_same;

    pthread_mutex_lock(&last.lock);
    if (!last.is_known || memcmp(&last.now, &files->groups, sizeof last.now) != 0 ||
        memcmp(&last.then, groups, sizeof last.then) != 0) {
        last.is_same = look(files, groups);
        last.now = files->groups;
        last.then = *groups;
        last.is_known = true;
        if (last.is_same)
            tnd_log(TND_LOG_NOTICE, "place",
                    "the files are those of the place, which was saved where they lay elsewhere");
    }
    is_same = last.is_same;
    pthread_mutex_unlock(&last.lock);
    return is_same;
}
