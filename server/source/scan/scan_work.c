/* scan_work.c - reading a file for its scanner, in pieces that stay in a core's cache. */
#include "source/scan/scan_work.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "content/records/unpack.h"
#include "core/crc32c.h"
#include "core/hash_farm.h"
#include "core/memory.h"
#include "source/files/files_private.h"
#include "source/peer/far.h"
#include "source/scan/index.h"

enum {
    READ_BYTES = SCAN_BUFFER_BYTES, /* the largest read */
    FIRST_READ = 64 << 10,          /* for formats that may jump ahead */
    JUMP_BYTES = 8 << 10,           /* a gap that is worth a jump */
    STEP_READS = 256,
    STEP_BYTES = 1 << 20,
    PIECE_BYTES = 1 << 20, /* hashed as one; places and indexes know files by it */
    SAMPLES = 16,          /* of a file that takes no scan, for its identity */
    SAMPLE_BYTES = 4096
};

_Static_assert(PIECE_BYTES % READ_BYTES == 0, "a read never straddles two pieces");

/* Identity of a file of which nothing is read: its size, and a few places in it. */
static tundish_status
hash_samples(const struct source_file *file, int descriptor, uint64_t *ret_hash)
{
    uint8_t sample[SAMPLE_BYTES];
    uint64_t size = file->identity.size;
    uint64_t hash = tnd_hash_farm_cat(TND_HASH_CROSS_KEY, size);

    for (uint64_t i = 0; i < SAMPLES; i++) {
        uint64_t offset =
            size <= SAMPLE_BYTES
                ? 0
                : (uint64_t)((double)(size - SAMPLE_BYTES) / (SAMPLES - 1) * (double)i);
        size_t bytes = 0;
        tundish_status status = file_read_some(descriptor, sample, SAMPLE_BYTES, offset, &bytes);

        if (status != TUNDISH_OK)
            return status;
        hash = tnd_hash_farm_cat(hash, tnd_hash_farm(sample, bytes));
    }
    *ret_hash = hash;
    return TUNDISH_OK;
}

static tundish_status
measure(const struct source_file *file, int descriptor, struct record_list **ret_list)
{
    struct record_list *list = tnd_zalloc(1, sizeof *list);
    const struct record_format *format = &file->format;
    tundish_status status = format->scanner->measure(format, file->identity.size, list);

    list->end_limit = file->identity.size;
    if (status == TUNDISH_OK)
        status = hash_samples(file, descriptor, &list->hash);
    if (status == TUNDISH_OK)
        *ret_list = list;
    else
        record_list_close(list);
    return status;
}

/* A file without a name, for what a packed one holds. */
static tundish_status
open_unpacked(struct source_file *file)
{
    int folder = -1;
    int descriptor;
    tundish_status status = table_cache_folder(file->files, &folder);

    if (status != TUNDISH_OK)
        return status;
    descriptor = openat(folder, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (descriptor < 0)
        return tnd_fail_errno(errno, "cannot make a file in the cache folder to unpack it into");
    /* Pairs with the load in file_read. */
    atomic_store_explicit(&file->unpacked, descriptor + 1, memory_order_release);
    return TUNDISH_OK;
}

tundish_status
scan_work_open(struct source_file *file, struct scan_work **ret_work, struct record_list **ret_list)
{
    const struct scanner_ops *scanner = file->format.scanner;
    struct scan_work *work = *ret_work = tnd_zalloc(1, sizeof *work);
    tundish_status status;

    work->descriptor = -1;
    work->hash = TND_HASH_CROSS_KEY;
    if (file->is_far)
        return TUNDISH_OK;
    status = file_open(file, &work->descriptor);
    if (status != TUNDISH_OK)
        return status;
    count_up(&table_counters(file->files)->files_opened, 1);
    if (file->format.packing != PACKING_NONE) {
        work->unpacker = unpacker_open(work->descriptor, file->format.packing);
        status = open_unpacked(file);
    } else if (scanner->measure != NULL) {
        status = measure(file, work->descriptor, ret_list);
    } else {
        *ret_list = index_load(file);
    }
    if (status != TUNDISH_OK)
        return tnd_fail_while(status, "%s", file->name);
    scanner->begin(work->state, &file->format);
    work->read_bytes = scanner->hash_bytes || work->unpacker != NULL ? READ_BYTES : FIRST_READ;
    posix_fadvise(work->descriptor, 0, 0,
                  scanner->hash_bytes ? POSIX_FADV_SEQUENTIAL : POSIX_FADV_NORMAL);
    return TUNDISH_OK;
}

uint64_t
scan_work_bytes(const struct source_file *file, const struct scan_work *work)
{
    return work->unpacker != NULL ? work->position : file->identity.size;
}

/* Where the next read begins, and how long it is: ever longer while what is wanted lies side by
 * side, short where it lies far apart. */
static void
aim(const struct source_file *file, struct scan_work *work)
{
    uint64_t wanted = file->format.scanner->wanted(work->state);

    if (work->unpacker != NULL || file->format.scanner->hash_bytes || wanted < work->position)
        return;
    if (wanted - work->position > JUMP_BYTES)
        work->read_bytes = file->format.scanner->jump_bytes;
    else if (work->read_bytes < READ_BYTES)
        work->read_bytes *= 4;
    work->position = wanted;
}

static tundish_status
read_plain(const struct source_file *file, struct scan_work *work, size_t *ret_bytes)
{
    uint64_t size = file->identity.size;
    size_t bytes = work->read_bytes;
    size_t got = 0;
    tundish_status status;

    if (work->position >= size) {
        work->is_over = true;
        *ret_bytes = 0;
        return TUNDISH_OK;
    }
    if (bytes > size - work->position)
        bytes = (size_t)(size - work->position);
    status = file_read_some(work->descriptor, work->buffer, bytes, work->position, &got);
    if (status == TUNDISH_OK && got < bytes)
        status = tnd_fail(TUNDISH_E_DATA, "it became shorter while it was read: it ends at %llu",
                          (unsigned long long)(work->position + got));
    *ret_bytes = got;
    return status;
}

static tundish_status
write_unpacked(const struct source_file *file, const struct scan_work *work, size_t bytes)
{
    int descriptor = atomic_load_explicit(&file->unpacked, memory_order_relaxed) - 1;
    size_t done = 0;

    while (done < bytes) {
        ssize_t put =
            pwrite(descriptor, work->buffer + done, bytes - done, (off_t)(work->position + done));

        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return tnd_fail_errno(errno, "no room in the cache folder to unpack it (TUNDISH_CACHE "
                                         "names another)");
        done += (size_t)put;
    }
    return TUNDISH_OK;
}

/* The bytes before the damage are good: what is wrong is kept until they have been fed. */
static tundish_status
read_packed(const struct source_file *file, struct scan_work *work, size_t *ret_bytes)
{
    tundish_status status = unpacker_next(work->unpacker, work->buffer, READ_BYTES, ret_bytes);

    if (status != TUNDISH_OK) {
        work->damage = status;
        snprintf(work->damage_text, sizeof work->damage_text, "%s", tnd_error_text());
    } else if (*ret_bytes < READ_BYTES) {
        work->is_over = true;
    }
    return write_unpacked(file, work, *ret_bytes);
}

/* Identity hangs on the bytes and on the size of pieces, not on how they were read. */
static void
hash_bytes(struct scan_work *work, size_t bytes, struct record_writer *writer)
{
    work->piece_crc = tnd_crc32c(work->piece_crc, work->buffer, bytes);
    work->piece_bytes += bytes;
    if (work->piece_bytes == PIECE_BYTES || (work->is_over && work->piece_bytes > 0)) {
        writer->hash = tnd_hash_farm_cat(writer->hash, work->piece_crc);
        work->piece_crc = 0;
        work->piece_bytes = 0;
    }
}

static tundish_status
read_and_feed(const struct source_file *file, struct scan_work *work, struct record_writer *writer)
{
    const struct scanner_ops *scanner = file->format.scanner;
    size_t bytes = 0;
    tundish_status status;

    aim(file, work);
    status =
        work->unpacker != NULL ? read_packed(file, work, &bytes) : read_plain(file, work, &bytes);
    if (status != TUNDISH_OK)
        return status;
    if (scanner->hash_bytes)
        hash_bytes(work, bytes, writer);
    if (bytes > 0)
        status = scanner->feed(work->state, work->buffer, bytes, work->position, writer);
    work->position += bytes;
    count_up(&table_counters(file->files)->bytes_scanned, bytes);
    if (status == TUNDISH_OK && work->damage != TUNDISH_OK)
        return tnd_fail(work->damage, "%s", work->damage_text);
    if (status == TUNDISH_OK && work->is_over)
        status = scanner->finish(work->state, scan_work_bytes(file, work), writer);
    return status;
}

tundish_status
scan_work_step(const struct source_file *file, struct scan_work *work, uint8_t *buffer,
               struct record_writer *writer)
{
    tundish_status status = TUNDISH_OK;
    uint64_t begin = work->position;

    if (file->is_far) { /* its sentences name the file already */
        status = far_scan(table_far(file->files), file, work->far_records, writer, &work->is_over);
        work->far_records += writer->count;
        return status;
    }

    work->buffer = buffer;
    for (int reads = 0; reads < STEP_READS && !work->is_over && status == TUNDISH_OK; reads++) {
        status = read_and_feed(file, work, writer);
        if (work->position - begin >= STEP_BYTES && writer->count > 0 &&
            work->read_bytes > file->format.scanner->jump_bytes)
            break;
    }
    work->buffer = NULL;
    if (status != TUNDISH_OK)
        return tnd_fail_while(status, "%s", file->name);
    return work->is_over ? file_compare(file, work->descriptor) : TUNDISH_OK;
}

void
scan_work_close(struct scan_work *work)
{
    if (work == NULL)
        return;
    unpacker_close(work->unpacker);
    if (work->descriptor >= 0)
        close(work->descriptor);
    free(work);
}
