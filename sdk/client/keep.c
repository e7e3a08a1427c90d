/* keep.c - make a lent batch the caller's own, where it lies.
 *
 * The pages of the batch are replaced, at the same addresses, by private copies. Pointers into it
 * stay valid, also for threads that read meanwhile, and the server gets the slot back. The mapping
 * with the copies in it is of no use for batches to come, which may lie at the same offsets, so
 * they are read through a new one. A page at either end may be shared with another batch of the
 * lane: one that was lent is complete, so its bytes in the copy are right; one that was not will be
 * read through the new mapping.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "client/reader.h"
#include "core/status.h"

/* Whole pages of a mapping. */
struct pages {
    uint8_t *bytes;
    size_t byte_count;
};

/* The bytes of a batch in its mapping; both 0: it has none. */
static void
find_extent(const struct held *held, uint64_t *ret_begin, uint64_t *ret_end)
{
    uint64_t begin = UINT64_MAX, end = 0;

    for (uint32_t i = 0; i < held->slot.slot.buffer_count; i++) {
        const struct tnd_buffer *buffer = &held->slot.buffers[i];

        if (buffer->stored_bytes == 0)
            continue;
        if (buffer->offset < begin)
            begin = buffer->offset;
        if (buffer->offset + buffer->stored_bytes > end)
            end = buffer->offset + buffer->stored_bytes;
    }
    *ret_begin = begin < end ? begin : 0;
    *ret_end = end;
}

static void
find_pages(const struct held *held, struct pages *ret_pages)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), begin, end;

    find_extent(held, &begin, &end);
    begin = begin / page * page;
    end = (end + page - 1) / page * page;
    *ret_pages = (struct pages){ (uint8_t *)held->mapping->bytes + begin, end - begin };
}

/* The counters of the lane must not be among the pages: a copy would stand still. */
static tundish_status
check_pages(const struct held *held, const struct pages *pages)
{
    const struct tnd_view *view = &held->attachment->view;
    uint64_t records_end = view->slots_offset + view->slot_count * view->slot_stride;

    if (held->mapping == held->attachment->view_mapping && pages->byte_count > 0 &&
        (uint64_t)(pages->bytes - (uint8_t *)held->mapping->bytes) < records_end)
        return tnd_fail(TUNDISH_E_SYSTEM,
                        "the batch cannot be kept: it shares a page with its lane's records");
    return TUNDISH_OK;
}

static tundish_status
copy_pages(const struct pages *pages, struct pages *ret_copy)
{
    struct pages copy = { NULL, pages->byte_count };

    if (copy.byte_count > 0) {
        copy.bytes =
            mmap(NULL, copy.byte_count, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (copy.bytes == MAP_FAILED)
            return tnd_fail(TUNDISH_E_MEMORY, "no memory to keep %zu bytes of a batch",
                            copy.byte_count);
        memcpy(copy.bytes, pages->bytes, copy.byte_count);
        mprotect(copy.bytes, copy.byte_count, PROT_READ);
    }
    *ret_copy = copy;
    return TUNDISH_OK;
}

/* Put the copy where the pages are. The kernel holds the map of the process meanwhile, so a thread
 * that reads finds the one or the other. The reader's lock is held. */
static tundish_status
replace_pages(struct held *held, const struct pages *pages, const struct pages *copy)
{
    tundish_status status = TUNDISH_OK;

    if (copy->byte_count == 0)
        return TUNDISH_OK;
    if (tnd_mapping_find(held->attachment, held->mapping->id) == held->mapping)
        status = tnd_mapping_renew(held->attachment, held->mapping);
    if (status == TUNDISH_OK && mremap(copy->bytes, copy->byte_count, copy->byte_count,
                                       MREMAP_MAYMOVE | MREMAP_FIXED, pages->bytes) == MAP_FAILED)
        status =
            tnd_fail(TUNDISH_E_SYSTEM,
                     "the batch's pages cannot be replaced (errno %d: huge pages?): release the "
                     "batch instead of keeping it",
                     errno);
    return status;
}

/* Give the slot back and put `fresh` there for its next batches. The reader's lock is held. */
static void
leave_slot(struct held *held, struct held *fresh)
{
    struct attachment *attachment = held->attachment;

    attachment->held_count--;
    if (attachment->has_end && attachment->end_entry < held->entry)
        tnd_release_end(attachment);
    tnd_release_entry(attachment, held->entry, held->index);
    attachment->slots[held->index] = fresh;
    held->attachment = NULL;
    held->is_held = false;
    held->is_kept = true;
    held->reader->kept_count++;
    if (attachment != held->reader->attachments)
        tnd_reader_tidy(held->reader);
}

tundish_status
tundish_keep(tundish_reader *reader, const tundish_batch *batch)
{
    struct held *held = (struct held *)(uintptr_t)batch, *fresh = NULL;
    struct pages pages, copy = { NULL, 0 };
    tundish_status status = tnd_reader_check(reader);

    if (status != TUNDISH_OK)
        return status;
    if (batch == NULL || held->reader != reader || (!held->is_held && !held->is_kept))
        return tnd_fail(TUNDISH_E_ARGUMENT, "this reader does not hold the batch");
    if (held->is_kept)
        return TUNDISH_OK;
    find_pages(held, &pages);
    status = check_pages(held, &pages);
    if (status == TUNDISH_OK)
        status = tnd_reader_open_held(held->attachment, held->index, &fresh);
    if (status == TUNDISH_OK)
        status = copy_pages(&pages, &copy);
    if (status == TUNDISH_OK) {
        pthread_mutex_lock(&reader->lock);
        status = replace_pages(held, &pages, &copy);
        if (status == TUNDISH_OK)
            leave_slot(held, fresh);
        pthread_mutex_unlock(&reader->lock);
        if (status != TUNDISH_OK && copy.byte_count > 0)
            munmap(copy.bytes, copy.byte_count);
    }
    if (status != TUNDISH_OK)
        tnd_reader_close_held(fresh);
    return status;
}

void
tnd_keep_free_pages(const struct held *held)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), begin, end;

    find_extent(held, &begin, &end);
    begin = (begin + page - 1) / page * page;
    end = end / page * page;
    if (begin < end)
        madvise((uint8_t *)held->mapping->bytes + begin, end - begin, MADV_DONTNEED);
}
