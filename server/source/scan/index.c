/* index.c - index files: one layout, written once, checked before use. */
#include "source/scan/index.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/cache_folder.h"
#include "core/clock.h"
#include "core/crc32c.h"
#include "core/hash_farm.h"
#include "core/log.h"
#include "core/magic.h"
#include "core/mapped.h"
#include "core/memory.h"
#include "core/own_file.h"
#include "core/status.h"

enum {
    INDEX_VERSION = 1,
    WORTH_BYTES = 1 << 20, /* below this a scan takes no longer than reading the index */
    PATH_BYTES_MAX = 1 << 16,
    PARTS_MAX = 4
};
#define YOUNG_NS INT64_C(2000000000)

struct index_header {
    uint64_t magic;
    uint32_t version;
    uint32_t header_crc; /* of the header with 0 here, and the path */
    uint64_t total_bytes;
    struct file_identity identity;
    char scanner[24];
    int64_t numbers[3];
    uint64_t record_count, usual_gap, hash, byte_count;
    uint32_t path_bytes; /* with zeros up to a multiple of 8 */
    uint32_t body_crc;   /* of groups and bytes */
};

_Static_assert(sizeof(struct index_header) == 152, "the layout of an index has changed");
_Static_assert(sizeof(struct file_identity) == 40, "the layout of an index has changed");
_Static_assert(sizeof(struct record_group) == 16, "the layout of an index has changed");

/* The groups after the path must be aligned for direct access in the mapping. */
static uint32_t
padded(size_t path_bytes)
{
    return (uint32_t)((path_bytes + 7) & ~(size_t)7);
}

static uint32_t
header_crc(const struct index_header *header, const void *path)
{
    struct index_header copy = *header;

    copy.header_crc = 0;
    return tnd_crc32c(tnd_crc32c(0, &copy, sizeof copy), path, header->path_bytes);
}

/* Another scanner, another delimiter or another size: an index is only valid for exactly what it
 * was made from. */
static bool
is_of(const struct index_header *header, const char *path, const struct index_key *key)
{
    return memcmp(&header->identity, &key->identity, sizeof key->identity) == 0 &&
           strncmp(header->scanner, key->format.scanner->name, sizeof header->scanner) == 0 &&
           memcmp(header->numbers, key->format.numbers, sizeof header->numbers) == 0 &&
           header->usual_gap == key->format.scanner->usual_gap &&
           header->path_bytes == padded(strlen(key->path)) &&
           memcmp(path, key->path, strlen(key->path)) == 0;
}

static tundish_status
corrupt(const char *what)
{
    return tnd_fail(TUNDISH_E_CORRUPT, "the index is damaged: %s", what);
}

tundish_status
index_read(const void *data, size_t bytes, const struct index_key *key,
           struct record_list *ret_list)
{
    struct index_header header;
    const uint8_t *path, *body;
    uint64_t body_bytes, group_bytes;

    /* The order of these checks matters: lengths before the checksums that they bound, and the
     * header's checksum before any of its other fields is believed. */
    if (bytes < sizeof header)
        return corrupt("it is too short");
    memcpy(&header, data, sizeof header);
    path = (const uint8_t *)data + sizeof header;
    if (header.magic != TND_INDEX_MAGIC || header.version != INDEX_VERSION)
        return corrupt("it has another version");
    if (header.total_bytes != bytes || header.path_bytes > PATH_BYTES_MAX ||
        header.path_bytes % 8 != 0 || header.path_bytes > bytes - sizeof header)
        return corrupt("it has another length");
    if (header.header_crc != header_crc(&header, path))
        return corrupt("the checksum of its header is wrong");
    if (!is_of(&header, (const char *)path, key))
        return tnd_fail(TUNDISH_E_DATA, "the index is of another file, or of the file before a "
                                        "change");
    body = path + header.path_bytes;
    body_bytes = bytes - sizeof header - header.path_bytes;
    if (__builtin_mul_overflow(record_group_count(header.record_count), sizeof(struct record_group),
                               &group_bytes) ||
        group_bytes > body_bytes || body_bytes - group_bytes != header.byte_count)
        return corrupt("the sizes of its parts are inconsistent");
    if (header.body_crc != tnd_crc32c(0, body, body_bytes))
        return corrupt("the checksum of its body is wrong");
    *ret_list = (struct record_list){
        .count = header.record_count,
        .hash = header.hash,
        .end_limit = header.identity.size,
        .usual_gap = header.usual_gap,
        .byte_count = header.byte_count,
        .bytes = body + group_bytes,
        .groups = (const struct record_group *)(const void *)body,
    };
    return TUNDISH_OK;
}

static struct index_key
key_of(const struct source_file *file)
{
    return (struct index_key){ file->path, file->identity, file->format };
}

/* The name has a hash of the path and of the format. The full path inside is compared, so a
 * collision costs only time. */
static void
index_name(const struct source_file *file, char *ret_name, size_t room)
{
    const struct record_format *format = &file->format;
    uint64_t hash = tnd_hash_farm(file->path, strlen(file->path));

    hash = tnd_hash_farm_cat(hash, tnd_hash_farm(format->numbers, sizeof format->numbers));
    snprintf(ret_name, room, "records-%s-%016llx.index", format->scanner->name,
             (unsigned long long)hash);
}

/* Map the file of that name in the folder, if it is this file's index. A link, a pipe, or a file of
 * another user is not taken. */
static struct record_list *
load_from(int folder, const char *name, const struct source_file *file)
{
    int descriptor = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct record_list found;
    struct record_list *list = NULL;
    struct index_key key = key_of(file);
    struct stat about;
    struct tnd_mapped *map = NULL;

    if (descriptor < 0)
        return NULL;
    if (fstat(descriptor, &about) == 0 && tnd_own_file_is_ours(&about) && about.st_size > 0)
        (void)tnd_mapped_open(descriptor, (uint64_t)about.st_size, TND_MAPPED_READ, &map);
    close(descriptor);
    if (map == NULL)
        return NULL;
    if (index_read(tnd_mapped_bytes(map), (size_t)about.st_size, &key, &found) != TUNDISH_OK) {
        tnd_mapped_close(map);
        return NULL;
    }
    list = tnd_alloc(sizeof *list);
    *list = found;
    list->map = map;
    list->map_bytes = (size_t)about.st_size;
    return list;
}

struct record_list *
index_load(const struct source_file *file)
{
    char name[TND_CACHE_NAME_BYTES];
    int folder = -1;
    struct record_list *list;

    if (file->identity.size < WORTH_BYTES ||
        services_cache_folder(file->services, &folder) != TUNDISH_OK)
        return NULL;
    index_name(file, name, sizeof name);
    list = load_from(folder, name, file);
    if (list != NULL)
        count_up(&file->services->counters.index_hits, 1);
    return list;
}

bool
index_bytes(const struct source_file *file, uint8_t **ret_bytes, size_t *ret_byte_count)
{
    struct record_list *list = index_load(file);

    if (list == NULL)
        return false;
    *ret_bytes = tnd_alloc(list->map_bytes);
    *ret_byte_count = list->map_bytes;
    memcpy(*ret_bytes, tnd_mapped_bytes(list->map), list->map_bytes);
    record_list_close(list);
    return true;
}

/* The path and the times of another machine's file differ from this one's, so its own key is
 * checked against itself. Size and format must be the same; then the list is kept under this
 * machine's key. */
tundish_status
index_read_foreign(const uint8_t *bytes, size_t byte_count, const struct source_file *file,
                   struct record_list *ret_list)
{
    struct index_key key = key_of(file);
    struct index_header header;
    char *path;
    tundish_status status;

    if (byte_count < sizeof header)
        return corrupt("it is too short");
    memcpy(&header, bytes, sizeof header);
    if (header.path_bytes > byte_count - sizeof header)
        return corrupt("it has another length");
    if (header.identity.size != file->identity.size)
        return tnd_fail(TUNDISH_E_DATA, "the index is of a file of another size than %s",
                        file->name);
    path = tnd_strndup((const char *)bytes + sizeof header, header.path_bytes);
    key.path = path;
    key.identity = header.identity;
    status = index_read(bytes, byte_count, &key, ret_list);
    free(path);
    return status;
}

/* Both times, since utimes can set the time of modification back. */
static bool
is_young(const struct source_file *file)
{
    int64_t now = tnd_clock_wall_ns();

    return now - file->identity.modified_ns < YOUNG_NS ||
           now - file->identity.changed_ns < YOUNG_NS;
}

static tundish_status
write_index(struct tnd_cache_build *build, const struct source_file *file,
            const struct record_list *list)
{
    char *path = tnd_zalloc(strlen(file->path) + 8, 1);
    uint64_t group_bytes = record_group_count(list->count) * sizeof *list->groups;
    struct index_header header = {
        .version = INDEX_VERSION,
        .identity = file->identity,
        .record_count = list->count,
        /* The last field written is the first one checked: its sum includes all of the others. */
        .usual_gap = list->usual_gap,
        .hash = list->hash,
        .byte_count = list->byte_count,
        .path_bytes = padded(strlen(file->path)),
    };
    tundish_status status;

    memcpy(path, file->path, strlen(file->path));
    header.magic = TND_INDEX_MAGIC;
    memcpy(header.numbers, file->format.numbers, sizeof header.numbers);
    snprintf(header.scanner, sizeof header.scanner, "%s", file->format.scanner->name);
    header.total_bytes = sizeof header + header.path_bytes + group_bytes + list->byte_count;
    header.body_crc =
        tnd_crc32c(tnd_crc32c(0, list->groups, group_bytes), list->bytes, list->byte_count);
    header.header_crc = header_crc(&header, path);
    status = tnd_cache_build_write(build, &header, sizeof header);
    if (status == TUNDISH_OK)
        status = tnd_cache_build_write(build, path, header.path_bytes);
    if (status == TUNDISH_OK)
        status = tnd_cache_build_write(build, list->groups, group_bytes);
    if (status == TUNDISH_OK)
        status = tnd_cache_build_write(build, list->bytes, list->byte_count);
    free(path);
    return status;
}

bool
index_is_wanted(const struct source_file *file)
{
    struct record_list *list;

    if (file->identity.size < WORTH_BYTES || is_young(file))
        return false;
    list = index_load(file);
    record_list_close(list);
    return list == NULL;
}

/* A missing index costs only time, so this is logged once. */
static void
say_not_kept(const struct source_file *file, struct record_list *list)
{
    static atomic_flag said = ATOMIC_FLAG_INIT;

    list->is_refused = true;
    if (!atomic_flag_test_and_set(&said))
        tnd_log(TND_LOG_WARNING, "cache", "%s: its index is not saved: %s", file->path,
                tnd_error_text());
}

struct record_list *
index_keep(const struct source_file *file, struct record_list *list)
{
    char name[TND_CACHE_NAME_BYTES];
    struct tnd_cache_build build;
    struct record_list *kept;
    int folder = -1;

    if (file->identity.size < WORTH_BYTES || strlen(file->path) > PATH_BYTES_MAX - 8 ||
        is_young(file) || services_cache_folder(file->services, &folder) != TUNDISH_OK)
        return list;
    index_name(file, name, sizeof name);
    if (tnd_cache_build_begin(folder, name, &build) != TUNDISH_OK) {
        say_not_kept(file, list);
        return list;
    }
    /* Another process may have written the index since this scan began. */
    kept = load_from(folder, name, file);
    if (kept != NULL) { /* another process was faster */
        tnd_cache_build_cancel(&build);
    } else if (write_index(&build, file, list) != TUNDISH_OK) {
        tnd_cache_build_cancel(&build);
        say_not_kept(file, list);
    } else if (tnd_cache_build_publish(&build, NULL) != TUNDISH_OK) {
        say_not_kept(file, list);
    } else {
        /* The mapped copy replaces the one in memory: its pages can be dropped under memory
         * pressure. */
        kept = load_from(folder, name, file);
    }
    if (kept == NULL)
        return list;
    record_list_close(list);
    return kept;
}
