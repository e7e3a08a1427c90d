/* cache_store.c - see cache_store.h. */
#include "source/rows/cache_store.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/crc32c.h"
#include "core/memory.h"
#include "core/own_file.h"

static const char HEAD_WORD[16] = "TUNDISH CACHE 1";
static const char TAIL_WORD[16] = "TUNDISH CACHEEND";

/* Both structures are written as they lie in memory. They have no padding, and the project runs on
 * little-endian machines alone. */
struct head {
    char word[16];
    uint64_t fingerprint;
};

/* Followed by the files, each a struct made_of and its name, then by struct cache_stretch. */
struct tail {
    char word[16];
    uint64_t row_count, pass, listing, file_count, stretch_count;
};

struct made_of {
    uint64_t size;
    int64_t modified_ns;
    uint64_t name_bytes;
};

/* As TensorFlow frames a TFRecord: eight bytes of length and four of its CRC before the data, and
 * four of the data's CRC after it. About FLUSH_BYTES are written at a time. */
enum { RECORD_HEAD = 12, RECORD_TAIL = 4, FLUSH_BYTES = 1 << 20 };

static const struct record_format cache_format = { .scanner = &scanner_tfrecord };

static char *
path_of(const struct source_files *files, const char *name)
{
    return name[0] == '/' ? tnd_strdup(name) : tnd_sprintf("%s/%s", files_root(files), name);
}

static tundish_status
refuse_store(const struct cache_key *key, const char *reason)
{
    return tnd_fail(TUNDISH_E_DATA,
                    "%s: %s; remove the file, and it is created again, or name another", key->name,
                    reason);
}

/* A whole record in memory that the caller frees. */
static tundish_status
read_record(const struct cache_key *key, const struct cache_rows *rows, uint64_t index,
            uint8_t **ret_data, size_t *ret_bytes)
{
    uint64_t words[2];
    size_t bytes;
    uint8_t *data;
    tundish_status status;

    if (!record_list_at(rows->list, index, 0, words))
        return refuse_store(key, "its index in the cache folder is damaged");
    bytes = (size_t)words[1];
    data = tnd_alloc(bytes + RECORD_TAIL);
    status = file_read(rows->file, data, bytes + RECORD_TAIL, words[0]);
    /* The scan that found the records checked only the lengths. The checksum of the data is checked
     * here because head and tail decide whether the other records are believed. */
    if (status == TUNDISH_OK &&
        tnd_crc32c_mask(tnd_crc32c(0, data, bytes)) != load_u32(data + bytes))
        status = refuse_store(key, "this cache is damaged: a checksum is wrong");
    if (status != TUNDISH_OK) {
        free(data);
        return status;
    }
    *ret_data = data;
    *ret_bytes = bytes;
    return TUNDISH_OK;
}

static tundish_status
check_head(const struct cache_key *key, const struct cache_rows *rows)
{
    uint8_t *data = NULL;
    size_t bytes = 0;
    struct head head;
    tundish_status status;

    /* Even a cache without elements has a head and a tail. */
    if (rows->list->count < 2)
        return refuse_store(key, "this is not a cache file of Tundish");
    status = read_record(key, rows, 0, &data, &bytes);
    if (status != TUNDISH_OK)
        return status;
    if (bytes == sizeof head)
        memcpy(&head, data, sizeof head);
    free(data);
    if (bytes != sizeof head || memcmp(head.word, HEAD_WORD, sizeof head.word) != 0)
        return refuse_store(key, "this is not a cache file of Tundish");
    if (head.fingerprint != key->fingerprint)
        return refuse_store(key, "this cache file belongs to another pipeline: the stages before "
                                 "it, their parameters, code, statistics, vocabularies or columns "
                                 "differ");
    return TUNDISH_OK;
}

/* A file that was removed cannot be compared. It is not needed either: the cache holds its rows. */
static tundish_status
check_file(const struct source_files *files, const struct cache_key *key,
           const struct made_of *then, const uint8_t *name)
{
    char *text = tnd_strndup((const char *)name, then->name_bytes);
    char *path = path_of(files, text);
    struct stat now;
    tundish_status status = TUNDISH_OK;

    if (stat(path, &now) == 0 &&
        ((uint64_t)now.st_size != then->size ||
         now.st_mtim.tv_sec * INT64_C(1000000000) + now.st_mtim.tv_nsec != then->modified_ns)) {
        char *reason = tnd_sprintf("%s has changed since this cache file was made from it", text);

        status = refuse_store(key, reason);
        free(reason);
    }
    free(path);
    free(text);
    return status;
}

static tundish_status
check_files(const struct source_files *files, const struct cache_key *key, uint64_t count,
            const uint8_t *at, size_t left, const uint8_t **ret_end)
{
    for (uint64_t i = 0; i < count; i++) {
        struct made_of then;
        tundish_status status;

        /* The bytes come from a file: each length is compared with the bytes left before it is
         * used. */
        if (left < sizeof then)
            return refuse_store(key, "this cache is damaged");
        memcpy(&then, at, sizeof then);
        at += sizeof then;
        left -= sizeof then;
        if (left < then.name_bytes)
            return refuse_store(key, "this cache is damaged");
        status = check_file(files, key, &then, at);
        if (status != TUNDISH_OK)
            return status;
        at += then.name_bytes;
        left -= (size_t)then.name_bytes;
    }
    *ret_end = at;
    return TUNDISH_OK;
}

/* The file has the number of batches of each stretch; in memory they become running sums, which
 * must end at the count of elements. */
static tundish_status
read_stretches(const struct cache_key *key, const struct tail *tail, const uint8_t *at, size_t left,
               struct cache_rows *rows)
{
    struct cache_stretch *stretches = NULL;
    uint64_t batches = 0;

    if (tail->stretch_count != left / sizeof *stretches || left % sizeof *stretches != 0)
        return refuse_store(key, "this cache is damaged");
    if (left == 0)
        return TUNDISH_OK;
    rows->stretches = stretches = tnd_alloc(left);
    rows->stretch_count = tail->stretch_count;
    memcpy(stretches, at, left);
    for (size_t i = 0; i < rows->stretch_count; i++) {
        if (__builtin_add_overflow(batches, stretches[i].batches, &batches))
            return refuse_store(key, "this cache is damaged");
        stretches[i].batches = batches;
    }
    return batches == tail->row_count ? TUNDISH_OK : refuse_store(key, "this cache is damaged");
}

static tundish_status
check_what_follows(const struct source_files *files, const struct cache_key *key,
                   const struct tail *tail, const uint8_t *at, const uint8_t *end,
                   struct cache_rows *rows)
{
    tundish_status status = check_files(files, key, tail->file_count, at, (size_t)(end - at), &at);

    return status == TUNDISH_OK ? read_stretches(key, tail, at, (size_t)(end - at), rows) : status;
}

static tundish_status
check_tail(const struct source_files *files, const struct cache_key *key, struct cache_rows *rows)
{
    uint8_t *data = NULL;
    size_t bytes = 0;
    struct tail tail;
    tundish_status status = read_record(key, rows, rows->list->count - 1, &data, &bytes);

    if (status != TUNDISH_OK)
        return status;
    if (bytes >= sizeof tail)
        memcpy(&tail, data, sizeof tail);
    /* A tail that is missing means that the file was cut: the writer names it only after the tail
     * is on the disk. */
    if (bytes < sizeof tail || memcmp(tail.word, TAIL_WORD, sizeof tail.word) != 0 ||
        tail.row_count != rows->list->count - 2)
        status = refuse_store(key, "this cache is damaged: its end is missing");
    /* A pattern may match a new file, and a file that the cache never read has no entry to
     * compare. */
    else if (key->listing != 0 && tail.listing != key->listing)
        status = refuse_store(
            key, "this cache file was made when the patterns before it matched other files");
    else
        status = check_what_follows(files, key, &tail, data + sizeof tail, data + bytes, rows);
    if (status == TUNDISH_OK) {
        rows->row_count = tail.row_count;
        rows->pass = tail.pass;
    }
    free(data);
    return status;
}

tundish_status
cache_rows_open(struct source_files *files, const struct cache_key *key, const _Atomic int *stop,
                struct cache_rows *ret_rows, bool *ret_found)
{
    char *path = path_of(files, key->name);
    struct cache_rows rows = { 0 };
    struct stat about;
    bool is_there = stat(path, &about) == 0;
    int error = errno;
    bool is_planted = is_there && tnd_own_file_is_planted(path, &about);
    tundish_status status = TUNDISH_OK;

    free(path);
    *ret_found = false;
    if (!is_there && (error == ENOENT || error == ENOTDIR))
        return TUNDISH_OK;
    if (is_planted)
        return refuse_store(
            key, "this cache belongs to another user, in a folder that every user may write to");
    rows.file = files_enter(files, key->name, strlen(key->name), &cache_format);
    status = scan_complete(rows.file, stop, &rows.list);
    /* The scanner speaks of a TFRecord file. The user should hear that it is the cache that is
     * wrong. */
    if (status == TUNDISH_E_DATA) {
        char *reason = tnd_sprintf("this is not a cache file of Tundish, or it is damaged (%s)",
                                   tnd_error_text());

        status = refuse_store(key, reason);
        free(reason);
    }
    if (status == TUNDISH_OK)
        status = check_head(key, &rows);
    if (status == TUNDISH_OK)
        status = check_tail(files, key, &rows);
    if (status != TUNDISH_OK) {
        cache_rows_close(&rows);
        return status;
    }
    *ret_rows = rows;
    *ret_found = true;
    return TUNDISH_OK;
}

void
cache_rows_close(struct cache_rows *rows)
{
    free(rows->stretches);
    *rows = (struct cache_rows){ 0 };
}

/* Record 0 is the head, so element `index` is record `index` + 1. */
tundish_status
cache_rows_seek(const struct cache_rows *rows, uint64_t index, struct record_reader *ret_reader)
{
    if (!record_list_seek(rows->list, index + 1, ret_reader))
        return tnd_fail(TUNDISH_E_CORRUPT,
                        "%s: its index in the cache folder is damaged; remove it",
                        rows->file->name);
    return TUNDISH_OK;
}

/* A file in the folder of `path`. It has no name if the file system supports O_TMPFILE, so nothing
 * is left of it when the process is killed. NFS and some overlays do not: there it has a random
 * name. */
static int
open_nameless(const char *path, char **ret_temporary)
{
    const char *slash = strrchr(path, '/');
    char *folder = tnd_strndup(path, slash == path ? 1 : (size_t)(slash - path));
    int descriptor = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);

    free(folder);
    if (descriptor < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL)) {
        uint64_t number = 0;
        char *temporary;

        if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number)
            return -1;
        temporary = tnd_sprintf("%s.making-%016" PRIx64, path, number);
        descriptor = open(temporary, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0666);
        if (descriptor >= 0)
            *ret_temporary = temporary;
        else
            free(temporary);
    }
    return descriptor;
}

static void
add_record(struct cache_build *build, const void *data, size_t bytes)
{
    uint64_t length = bytes;
    /* TFRecord stores a masked CRC, because a CRC over bytes that contain CRCs is weak. */
    uint32_t length_sum = tnd_crc32c_mask(tnd_crc32c(0, &length, sizeof length));
    uint32_t data_sum = tnd_crc32c_mask(tnd_crc32c(0, data, bytes));

    row_bytes_add(&build->waiting, &length, sizeof length);
    row_bytes_add(&build->waiting, &length_sum, sizeof length_sum);
    row_bytes_add(&build->waiting, data, bytes);
    row_bytes_add(&build->waiting, &data_sum, sizeof data_sum);
}

/* The head is written first: a reader learns from it that the cache belongs to another pipeline
 * before it looks at any row. */
tundish_status
cache_build_begin(struct source_files *files, const struct cache_key *key,
                  struct cache_build *ret_build)
{
    struct head head = { .fingerprint = key->fingerprint };
    int descriptor;
    tundish_status status;

    *ret_build = (struct cache_build){ .files = files, .path = path_of(files, key->name) };
    descriptor = open_nameless(ret_build->path, &ret_build->temporary);
    if (descriptor < 0)
        return tnd_fail_errno(errno, "%s cannot be created (its folder must exist and be writable)",
                              key->name);
    status = spool_open(files, key->name, descriptor, &ret_build->spool);
    memcpy(head.word, HEAD_WORD, sizeof head.word);
    add_record(ret_build, &head, sizeof head);
    return status;
}

/* Add a batch to the stretches. Most batches are as large as the one before and only lengthen the
 * last stretch. */
static void
note_rows(struct row_bytes *stretches, uint64_t rows)
{
    struct cache_stretch stretch = { 1, rows };
    struct cache_stretch last;

    if (stretches->used > 0) {
        memcpy(&last, stretches->data + stretches->used - sizeof last, sizeof last);
        if (last.rows == rows) {
            stretch.batches += last.batches;
            stretches->used -= sizeof last;
        }
    }
    row_bytes_add(stretches, &stretch, sizeof stretch);
}

tundish_status
cache_build_add(struct cache_build *build, const void *data, size_t bytes, uint64_t rows,
                uint64_t *ret_words)
{
    if (bytes > RECORD_BYTES_MAX)
        return tnd_fail(TUNDISH_E_DATA,
                        "row %" PRIu64 " has %zu bytes: more than 2 GiB are not kept",
                        build->row_count, bytes);
    /* The reference points to the data, after the record's header. */
    ret_words[0] = build->spool.bytes + build->waiting.used + RECORD_HEAD;
    ret_words[1] = reference_high(build->spool.file) | bytes;
    add_record(build, data, bytes);
    build->row_count++;
    if (rows > 0)
        note_rows(&build->stretches, rows);
    return build->waiting.used >= FLUSH_BYTES ? cache_build_flush(build) : TUNDISH_OK;
}

tundish_status
cache_build_flush(struct cache_build *build)
{
    /* The complaint says how far it got, since a full disk is the usual cause and the user has to
     * know how much more is needed. */
    tundish_status status = spool_append(&build->spool, build->waiting.data, build->waiting.used);

    if (status != TUNDISH_OK) {
        char *reason = tnd_strdup(tnd_error_text());

        status = tnd_fail(TUNDISH_E_SYSTEM,
                          "%s: %s, after %" PRIu64 " rows and %" PRIu64
                          " bytes; free space, or name a file elsewhere",
                          build->spool.file->name, reason, build->row_count, build->spool.bytes);
        free(reason);
    }
    build->waiting.used = 0;
    return status;
}

static int
compare_numbers(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a;
    uint32_t y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

static void
add_tail(struct cache_build *build, const struct cache_key *key, const struct file_set *made_of,
         uint64_t pass)
{
    struct tail tail = { .row_count = build->row_count, .pass = pass, .listing = key->listing };
    struct row_bytes bytes = { 0 };

    memcpy(tail.word, TAIL_WORD, sizeof tail.word);
    row_bytes_add(&bytes, &tail, sizeof tail);
    /* The numbers are sorted to find a file that was noted twice. */
    if (made_of->count > 0)
        qsort(made_of->numbers, made_of->count, sizeof *made_of->numbers, compare_numbers);
    for (size_t i = 0; i < made_of->count; i++) {
        const struct source_file *file = files_file(build->files, made_of->numbers[i]);
        struct made_of of = { .size = file->identity.size,
                              .modified_ns = file->identity.modified_ns,
                              .name_bytes = strlen(file->name) };

        /* A file that was only matched, and never opened, has given no rows. */
        if (!file->is_known || (i > 0 && made_of->numbers[i] == made_of->numbers[i - 1]))
            continue;
        row_bytes_add(&bytes, &of, sizeof of);
        row_bytes_add(&bytes, file->name, (size_t)of.name_bytes);
        tail.file_count++;
    }
    tail.stretch_count = build->stretches.used / sizeof(struct cache_stretch);
    row_bytes_add(&bytes, build->stretches.data, build->stretches.used);
    /* The count of files is known only now, so the tail's start is written a second time. */
    memcpy(bytes.data, &tail, sizeof tail);
    add_record(build, bytes.data, bytes.used);
    free(bytes.data);
}

/* Link the file to its name. EEXIST is as good as success: another process was first, and its file
 * is as complete as this one. */
static tundish_status
give_name(const struct cache_build *build, int descriptor)
{
    char here[64];
    int result;

    snprintf(here, sizeof here, "/proc/self/fd/%d", descriptor);
    result = build->temporary != NULL
                 ? link(build->temporary, build->path)
                 : linkat(AT_FDCWD, here, AT_FDCWD, build->path, AT_SYMLINK_FOLLOW);
    if (result != 0 && errno != EEXIST)
        return tnd_fail_errno(errno, "%s cannot be renamed", build->spool.file->name);
    return TUNDISH_OK;
}

tundish_status
cache_build_publish(struct cache_build *build, const struct cache_key *key,
                    const struct file_set *made_of, uint64_t pass)
{
    int descriptor = atomic_load(&build->spool.file->unpacked) - 1;
    tundish_status status;

    add_tail(build, key, made_of, pass);
    status = cache_build_flush(build);
    /* The name must not appear before the bytes are on the disk, or a crash would leave a named
     * cache with holes. */
    if (status == TUNDISH_OK && fsync(descriptor) != 0)
        status = tnd_fail_errno(errno, "%s cannot be flushed to its disk", build->spool.file->name);
    return status == TUNDISH_OK ? give_name(build, descriptor) : status;
}

void
cache_build_close(struct cache_build *build)
{
    if (build->temporary != NULL)
        unlink(build->temporary);
    free(build->temporary);
    free(build->path);
    free(build->waiting.data);
    free(build->stretches.data);
    *build = (struct cache_build){ 0 };
}
