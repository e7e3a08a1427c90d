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
#include "core/must.h"
#include "core/parallel_for.h"
#include "core/read_write.h"
#include "remote/ranges.h"
#include "session/checkpoint/place_hashes.h"

/* An object costs requests, a file the reading of all its bytes, while a trainer waits that brings
 * its place: some seconds at most. Objects are read whole only where all else has failed. */
enum { OBJECTS_MAX = 512, LOOKERS = 16, READ_BYTES = 1 << 20 };
static const uint64_t FILES_BYTES_MAX = UINT64_C(4) << 30;

/* How clients send large files: in parts, whose number stands in the ETag. */
static const struct sent {
    uint64_t part_bytes, from_bytes;
} sents[] = {
    { 8 << 20, 8 << 20 },   /* aws, boto3 */
    { 16 << 20, 16 << 20 }, /* mc */
    { 15 << 20, 15 << 20 }, /* s3cmd */
    { 5 << 20, 200 << 20 }, /* rclone */
};
enum { SENTS = sizeof sents / sizeof *sents };

/* The last comparison: all replicas of a job bring a place of the same files. */
static struct {
    pthread_mutex_t lock;
    struct place_groups now, then;
    bool is_known, is_same;
} last = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* By what a file may be known there: samples, or the ETag of one that was sent in one of the ways.
 */
enum known_by { BY_SAMPLES, BY_TAGS, KNOWN_BYS = BY_TAGS + SENTS };

struct looking {
    const struct place_files *files;
    bool is_whole;  /* objects, too, are read whole */
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

/* The MD5s of the whole, and of its parts. */
struct sums {
    struct md5_ctx whole;
    struct sum_of_parts {
        struct md5_ctx part, parts;
        uint64_t count;
    } sent[SENTS];
    uint64_t bytes;
};

static void
end_part(struct sum_of_parts *sum)
{
    uint8_t digest[MD5_DIGEST_SIZE];

    md5_digest(&sum->part, sizeof digest, digest);
    md5_update(&sum->parts, sizeof digest, digest);
    sum->count++;
}

/* All parts end with a piece that is read. */
static void
add_bytes(struct sums *sums, const uint8_t *bytes, size_t count, uint64_t size)
{
    md5_update(&sums->whole, count, bytes);
    sums->bytes += count;
    for (int i = 0; i < SENTS; i++)
        if (size >= sents[i].from_bytes) {
            md5_update(&sums->sent[i].part, count, bytes);
            if (sums->bytes % sents[i].part_bytes == 0)
                end_part(&sums->sent[i]);
        }
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
make_tags(struct sums *sums, uint64_t *hashes)
{
    uint64_t of_whole = hash_of_tag(&sums->whole, "", sums->bytes);

    for (int i = 0; i < SENTS; i++) {
        struct sum_of_parts *sum = &sums->sent[i];
        char end[24];

        if (sums->bytes % sents[i].part_bytes != 0)
            end_part(sum);
        snprintf(end, sizeof end, "-%" PRIu64, sum->count);
        hashes[i] = sums->bytes < sents[i].from_bytes ? of_whole
                                                      : hash_of_tag(&sum->parts, end, sums->bytes);
    }
}

/* One of them. */
struct readable {
    int descriptor;
    struct remote_ranges *ranges;
};

static tundish_status
read_piece(const struct readable *from, uint8_t *to, size_t bytes, uint64_t offset, uint64_t size)
{
    uint64_t next = offset + bytes, left = size - next;
    size_t got = 0;
    int error;

    must_in_debug(bytes > 0 && next <= size);
    if (from->ranges != NULL) {
        if (left > 0)
            remote_ranges_expect(from->ranges, left < READ_BYTES ? left : READ_BYTES, next);
        return remote_ranges_read(from->ranges, to, bytes, offset);
    }
    error = tnd_read_at(from->descriptor, to, bytes, offset, &got);
    if (error == 0 && got < bytes)
        return TUNDISH_E_DATA;
    return error == 0 ? TUNDISH_OK : tnd_fail_errno(error, "a file of the place");
}

static tundish_status
sum_up(const struct readable *from, uint64_t size, uint64_t *hashes)
{
    struct sums *sums = tnd_zalloc(1, sizeof *sums);
    uint8_t *bytes = tnd_alloc(READ_BYTES);
    tundish_status status = TUNDISH_OK;

    md5_init(&sums->whole);
    for (int i = 0; i < SENTS; i++) {
        md5_init(&sums->sent[i].part);
        md5_init(&sums->sent[i].parts);
    }
    while (status == TUNDISH_OK && sums->bytes < size) {
        uint64_t left = size - sums->bytes;
        size_t count = left < READ_BYTES ? left : READ_BYTES;

        status = read_piece(from, bytes, count, sums->bytes, size);
        if (status == TUNDISH_OK)
            add_bytes(sums, bytes, count, size);
    }
    if (status == TUNDISH_OK)
        make_tags(sums, hashes);
    free(bytes);
    free(sums);
    return status;
}

static tundish_status
look_at_object(const struct looking *looking, const struct place_file *file, uint64_t *hashes)
{
    struct remote *remote = NULL;
    struct readable from = { -1, NULL };
    struct object_identity identity;
    tundish_status status = remote_get(looking->files->remote, &remote);

    if (status == TUNDISH_OK)
        status = remote_ranges_open(remote, file->url, &from.ranges);
    if (status == TUNDISH_OK)
        status = remote_ranges_identify(from.ranges, &identity);
    if (status == TUNDISH_OK && looking->is_whole)
        status = sum_up(&from, identity.bytes, &hashes[BY_TAGS]);
    else if (status == TUNDISH_OK)
        status = read_samples(from.ranges, identity.bytes, &hashes[BY_SAMPLES]);
    remote_ranges_close(from.ranges);
    return status;
}

static tundish_status
look_at_file(const struct place_file *file, uint64_t *hashes)
{
    struct readable from = { .descriptor =
                                 open(file->path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK) };
    struct stat about;
    tundish_status status = TUNDISH_E_DATA;

    if (from.descriptor < 0)
        return status;
    if (fstat(from.descriptor, &about) == 0 && S_ISREG(about.st_mode))
        status = sum_up(&from, (uint64_t)about.st_size, &hashes[BY_TAGS]);
    close(from.descriptor);
    return status;
}

/* The hash that the file has now, where there is no other. */
static tundish_status
look_at(void *context, uint32_t number)
{
    const struct looking *looking = context;
    const struct place_file *file = &looking->files->list[looking->first + number];
    uint64_t hashes[KNOWN_BYS];
    tundish_status status = TUNDISH_OK;

    for (int by = 0; by < KNOWN_BYS; by++)
        hashes[by] = file->raw_hash;
    if (file->url != NULL)
        status = look_at_object(looking, file, hashes);
    else if (file->path != NULL)
        status = look_at_file(file, hashes);
    for (int by = 0; by < KNOWN_BYS; by++)
        looking->hashes[by][number] = place_file_hash(file, hashes[by]);
    return status;
}

/* By which all files of the group are those of the place: bits. */
static uint32_t
look_at_group(const struct place_files *files, const struct place_groups *groups, uint32_t group,
              bool is_whole)
{
    struct looking looking = { .files = files, .is_whole = is_whole };
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

struct amount {
    uint64_t objects, object_bytes, file_bytes;
};

static struct amount
amount_of(const struct place_files *files)
{
    struct amount amount = { 0 };

    for (uint32_t i = 0; i < files->count; i++) {
        const struct place_file *file = &files->list[i];
        struct stat about;

        amount.objects += file->url != NULL;
        amount.object_bytes += file->bytes;
        if (file->path != NULL && stat(file->path, &about) == 0)
            amount.file_bytes += (uint64_t)about.st_size;
    }
    return amount;
}

static bool
look_at_all(const struct place_files *files, const struct place_groups *groups, bool is_whole)
{
    uint32_t same = UINT32_MAX;

    for (uint32_t group = 0; group < PLACE_FILE_GROUPS && same != 0; group++)
        if (groups->hashes[group] != files->groups.hashes[group])
            same &= look_at_group(files, groups, group, is_whole);
    return same != 0 && same != UINT32_MAX;
}

static bool
look(const struct place_files *files, const struct place_groups *groups)
{
    struct amount amount = amount_of(files);

    if (amount.objects > OBJECTS_MAX || amount.file_bytes > FILES_BYTES_MAX)
        return false;
    if (look_at_all(files, groups, false))
        return true;
    if (amount.objects == 0 || amount.object_bytes + amount.file_bytes > FILES_BYTES_MAX)
        return false;
    tnd_log(TND_LOG_NOTICE, "place",
            "reading %" PRIu64 " objects, %" PRIu64 " MiB, to compare them with those of the place",
            amount.objects, amount.object_bytes >> 20);
    return look_at_all(files, groups, true);
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
