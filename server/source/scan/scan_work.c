/* scan_work.c - reads the input of a file and feeds its scanner, in pieces that stay in a core's
 * cache. */
#include "source/scan/scan_work.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "content/records/file_kind.h"
#include "content/records/unpacker.h"
#include "core/crc32c.h"
#include "core/hash_farm.h"
#include "core/memory.h"
#include "source/files/file_remote.h"

enum {
    FIRST_READ = 64 << 10, /* for formats that may jump ahead */
    JUMP_BYTES = 8 << 10,  /* a gap that is worth a jump */
    STEP_READS = 256,
    STEP_BYTES = 1 << 20,
    PIECE_BYTES = 1 << 20, /* hashed as one; checkpoints and indexes identify files by the result */
};

_Static_assert(PIECE_BYTES % SCAN_READ_BYTES == 0, "a read never straddles two pieces");

/* Is the object at a URL packed, though its name does not say so? Its beginning is read next
 * in any case. */
static tundish_status
look_at_object(struct source_file *file, bool *ret_packed)
{
    uint8_t begin[FILE_KIND_BYTES];
    tundish_status status = TUNDISH_OK;
    size_t got = 0;

    if (file_is_remote(file) && file->format.scanner->may_be_packed)
        status = file_remote_read(file, (struct iovec[2]){ { begin, sizeof begin } }, 0, &got);
    *ret_packed = status == TUNDISH_OK && file_kind_is_packed(begin, got);
    return status;
}

/* Open the file's input, as the content shows what it is. */
static tundish_status
open_input(struct source_file *file, struct scan_work *work, struct record_list **ret_list)
{
    tundish_status status = file->input->open(file, work, ret_list);
    bool is_packed = false;

    /* Only what is not packed has an index. */
    if (status == TUNDISH_OK && *ret_list == NULL)
        status = look_at_object(file, &is_packed);
    if (!is_packed)
        return status;
    file->packing = PACKING_ANY;
    file->input = &scan_input_packed;
    status = file_open(file, &work->descriptor);
    return status == TUNDISH_OK ? file->input->open(file, work, ret_list) : status;
}

/* Open a file whose bytes are scanned here. */
static tundish_status
open_bytes(struct source_file *file, struct scan_work *work, struct record_list **ret_list)
{
    const struct scanner_ops *scanner = file->format.scanner;
    tundish_status status = file_open(file, &work->descriptor);

    if (status != TUNDISH_OK)
        return status;
    count_up(&file->services->counters.files_opened, 1);
    status = open_input(file, work, ret_list);
    if (status != TUNDISH_OK)
        return tnd_fail_while(status, "%s", file->name);
    if (*ret_list != NULL)
        return TUNDISH_OK; /* there is nothing to scan */
    scanner->begin(work->state, &file->format);
    work->read_bytes = scanner->hash_bytes || !file->input->is_plain ? SCAN_READ_BYTES : FIRST_READ;
    /* The kernel should not read ahead of a scan that jumps from header to header. */
    if (work->descriptor >= 0)
        posix_fadvise(work->descriptor, 0, 0,
                      scanner->hash_bytes ? POSIX_FADV_SEQUENTIAL : POSIX_FADV_NORMAL);
    return TUNDISH_OK;
}

tundish_status
scan_work_open(struct source_file *file, struct scan_work **ret_work, struct record_list **ret_list)
{
    struct scan_work *work = *ret_work = tnd_zalloc(1, sizeof *work);

    work->descriptor = -1;
    work->hash = TND_HASH_CROSS_KEY;
    return file->input->find == NULL ? open_bytes(file, work, ret_list) : TUNDISH_OK;
}

uint64_t
scan_work_bytes(struct source_file *file, const struct scan_work *work)
{
    return file->input->is_plain || file->input->find != NULL ? file->identity.size
                                                              : work->position;
}

/* Choose where the next read begins and how long it is: longer and longer while the wanted bytes
 * are close together, short where they are far apart. */
static void
aim_read(struct source_file *file, struct scan_work *work)
{
    uint64_t wanted = file->format.scanner->wanted(work->state);

    if (!file->input->is_plain || file->format.scanner->hash_bytes || wanted < work->position)
        return;
    if (wanted - work->position > JUMP_BYTES)
        work->read_bytes = file->format.scanner->jump_bytes;
    else if (work->read_bytes < SCAN_READ_BYTES)
        work->read_bytes *= 4;
    work->position = wanted;
}

/* The hash depends on the bytes and on the size of pieces, not on how they were read. */
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

/* Text that is packed would be read as lines of noise. */
static tundish_status
look_at_kind(const struct source_file *file, struct scan_work *work, size_t bytes)
{
    const char *kind = file_kind(work->buffer, bytes);

    if (!file->format.scanner->is_text || !file_kind_is_packed(work->buffer, bytes)) {
        work->kind = kind;
        return TUNDISH_OK;
    }
    return tnd_fail(TUNDISH_E_DATA,
                    "it is %s, and not text: set compression_type (GZIP or ZLIB), or unpack it",
                    kind);
}

/* The file cannot be read from its first record on: say what it is, if its first bytes tell. */
static tundish_status
add_kind(const struct scan_work *work, const struct record_writer *writer, tundish_status status)
{
    char reason[512];

    if (work->kind == NULL || work->record_end > 0 || writer->count > 0)
        return status;
    snprintf(reason, sizeof reason, "%s", tnd_error_text());
    return tnd_fail(status, "%s; the file is %s", reason, work->kind);
}

static tundish_status
read_and_feed(struct source_file *file, struct scan_work *work, struct record_writer *writer)
{
    const struct scanner_ops *scanner = file->format.scanner;
    size_t bytes = 0;
    tundish_status status;

    aim_read(file, work);
    status = file->input->read(file, work, &bytes);
    if (status != TUNDISH_OK)
        return status;
    if (scanner->hash_bytes)
        hash_bytes(work, bytes, writer);
    if (bytes > 0 && work->position == 0)
        status = look_at_kind(file, work, bytes);
    if (bytes > 0 && status == TUNDISH_OK)
        status = scanner->feed(work->state, work->buffer, bytes, work->position, writer);
    work->position += bytes;
    count_up(&file->services->counters.bytes_scanned, bytes);
    /* The records before the damage have been written, so it is reported only now. */
    if (status == TUNDISH_OK && work->damage != TUNDISH_OK)
        status = tnd_fail(work->damage, "%s", work->damage_text);
    if (status == TUNDISH_OK && work->is_over)
        status = scanner->finish(work->state, scan_work_bytes(file, work), writer);
    if (status == TUNDISH_E_DATA && work->kind != NULL)
        status = add_kind(work, writer, status);
    work->is_damaged = status == TUNDISH_E_DATA || status == TUNDISH_E_CORRUPT;
    return status;
}

/* A step ends after about STEP_BYTES if it has found records, so that the first batch does not wait
 * for the whole file. While it jumps, reads are short and the step goes on; of a URL the bytes in
 * between come all the same. */
static tundish_status
scan_bytes(struct source_file *file, struct scan_work *work, uint8_t *buffer,
           struct record_writer *writer)
{
    tundish_status status = TUNDISH_OK;
    uint64_t begin = work->position;

    work->buffer = buffer;
    for (int reads = 0; reads < STEP_READS && !work->is_over && status == TUNDISH_OK; reads++) {
        status = read_and_feed(file, work, writer);
        if (work->position - begin >= STEP_BYTES && writer->count > 0 &&
            (file->is_url || work->read_bytes > file->format.scanner->jump_bytes))
            break;
    }
    work->buffer = NULL;
    if (status != TUNDISH_OK)
        return tnd_fail_while(status, "%s", file->name);
    /* A file that was changed during the scan gives a list of records that never existed. */
    return work->is_over ? file_compare(file, work->descriptor) : TUNDISH_OK;
}

static tundish_status
take_records(struct source_file *file, struct scan_work *work, struct record_writer *writer)
{
    tundish_status status = file->input->find(file, work, writer);

    work->record_count += writer->count;
    return status;
}

bool
scan_work_is_here(struct source_file *file, const struct scan_work *work)
{
    uint64_t position = work != NULL ? work->position : 0;

    return !file_is_remote(file) || file_has_ranges(file) ||
           file_remote_is_here(file, STEP_BYTES + SCAN_READ_BYTES, position);
}

tundish_status
scan_work_step(struct source_file *file, struct scan_work *work, uint8_t *buffer,
               struct record_writer *writer)
{
    return file->input->find == NULL ? scan_bytes(file, work, buffer, writer)
                                     : take_records(file, work, writer);
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
