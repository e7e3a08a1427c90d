/* scan_input_plain.c - the bytes of a file as they are. */
#include "core/hash_farm.h"
#include "core/memory.h"
#include "source/scan/index.h"
#include "source/scan/scan_work.h"

/* The parts that identify a file which is not scanned. */
enum { SAMPLES = 16, SAMPLE_BYTES = 4096 };

/* Hash the size of a file and a few places in it. Its records are computed from its size, and
 * reading the whole file for its identity alone would take minutes. */
static tundish_status
hash_samples(struct source_file *file, int descriptor, uint64_t *ret_hash)
{
    uint8_t sample[SAMPLE_BYTES];
    uint64_t size = file->identity.size;
    uint64_t hash = tnd_hash_farm_cat(TND_HASH_CROSS_KEY, size);

    /* Samples of an object would take a part of it each; its ETag says as much. */
    if (file->is_url) {
        *ret_hash = tnd_hash_farm_cat(hash, file->identity.inode);
        return TUNDISH_OK;
    }
    if (file->peers != NULL) { /* its owner compares it */
        *ret_hash = hash;
        return TUNDISH_OK;
    }
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
measure_file(struct source_file *file, struct scan_work *work, struct record_list **ret_list)
{
    struct record_list *list = tnd_zalloc(1, sizeof *list);
    const struct record_format *format = &file->format;
    tundish_status status = format->scanner->contents != NULL
                                ? format->scanner->contents(file, work->descriptor, list)
                                : format->scanner->measure(format, file->identity.size, list);

    work->is_damaged = status == TUNDISH_E_DATA || status == TUNDISH_E_CORRUPT;
    list->end_limit = file->identity.size;
    if (status == TUNDISH_OK)
        status = hash_samples(file, work->descriptor, &list->hash);
    if (status == TUNDISH_OK)
        *ret_list = list;
    else
        record_list_close(list);
    return status;
}

static tundish_status
open_plain(struct source_file *file, struct scan_work *work, struct record_list **ret_list)
{
    if (file->format.scanner->measure != NULL || file->format.scanner->contents != NULL)
        return measure_file(file, work, ret_list);
    *ret_list = index_load(file);
    return TUNDISH_OK;
}

static tundish_status
read_plain(struct source_file *file, struct scan_work *work, size_t *ret_bytes)
{
    uint64_t size = file->identity.size;
    size_t bytes = work->read_bytes;
    size_t got = 0;
    tundish_status status;

    /* Bytes appended since the file was opened are not read: the other nodes may not see it. */
    if (work->position >= size) {
        work->is_over = true;
        *ret_bytes = 0;
        return TUNDISH_OK;
    }
    if (bytes > size - work->position)
        bytes = (size_t)(size - work->position);
    status = file_read_opened(file, work->descriptor, work->buffer, bytes, work->position, &got);
    if (status == TUNDISH_OK && got < bytes)
        status =
            tnd_fail(TUNDISH_E_DATA, "the file became shorter while it was read: it ends at %llu",
                     (unsigned long long)(work->position + got));
    *ret_bytes = got;
    return status;
}

const struct scan_input_ops scan_input_plain = {
    .open = open_plain,
    .read = read_plain,
    .is_plain = true,
};
