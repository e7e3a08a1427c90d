/* release.c - back to the server, in any order, from any thread. */
#include <unistd.h>

#include "client/delivery.h"

void
tnd_release_wake(struct attachment *attachment)
{
    const uint64_t one = 1;

    /* A failure needs no action: the wakeup is set already, or the server has gone. */
    if (attachment->wakeup >= 0 && write(attachment->wakeup, &one, sizeof one) < 0)
        return;
}

/* No two entries that are not given back have the same place: each has a slot of its own. */
static bool *
done_of(const struct attachment *attachment, uint64_t entry)
{
    uint64_t gaps = attachment->gap_before;

    if (entry >= attachment->gap_until)
        gaps += attachment->gap_until - attachment->gap_from;
    return &attachment->done[(entry - gaps) % attachment->view.slot_count];
}

void
tnd_release_advance(struct attachment *attachment)
{
    uint64_t before = attachment->released;

    while (attachment->released < attachment->taken) {
        if (attachment->released == attachment->gap_from &&
            attachment->gap_from < attachment->gap_until) {
            attachment->released = attachment->gap_until;
            continue;
        }
        if (!*done_of(attachment, attachment->released))
            break;
        *done_of(attachment, attachment->released) = false;
        attachment->released++;
    }
    /* After a gap the count does not change and a lane's server has nothing to do. A queue's server
     * goes by the slots. */
    if (attachment->released == before && attachment->delivery->is_in_order)
        return;
    if (tnd_ring_release(attachment->returns, attachment->view.batches, attachment->released))
        tnd_release_wake(attachment);
}

void
tnd_release_entry(struct attachment *attachment, uint64_t entry, uint32_t index)
{
    /* Release pairs with the server's acquire load before it fills the slot: our last read of the
     * slot comes before its first write. */
    atomic_store_explicit(&tnd_returns_slots(attachment->returns)[index],
                          attachment->slots[index]->slot.slot.position + 1, memory_order_release);
    /* Batches come back in any order, but `released` counts a prefix: it stops at the first gap. */
    *done_of(attachment, entry) = true;
    tnd_release_advance(attachment);
}

void
tnd_release_end(struct attachment *attachment)
{
    if (attachment->has_end)
        tnd_release_entry(attachment, attachment->end_entry, attachment->end_index);
    attachment->has_end = false;
}

uint32_t
tnd_reader_ahead_count(tundish_reader *reader)
{
    struct attachment *attachment = reader->attachments;
    uint64_t used;
    bool starves;

    pthread_mutex_lock(&reader->lock);
    /* A lane's slots are filled in turn, and a line has as many entries as the lane has slots. So
     * the oldest that is not back stops it. Readers of a queue share its slots. */
    used = attachment->taken - attachment->released;
    if (attachment->released < attachment->gap_until)
        used -= attachment->gap_until - attachment->gap_from;
    starves = attachment->delivery->starves != NULL && attachment->delivery->starves(attachment);
    pthread_mutex_unlock(&reader->lock);
    return starves ? 0 : attachment->view.slot_count - (uint32_t)used;
}

/* The pages that lie in the batch as a whole are the batch's alone. */
static void
release_kept(tundish_reader *reader, struct held *held)
{
    bool is_last;

    pthread_mutex_lock(&reader->lock);
    if (held->mapping->users > 1)
        tnd_keep_free_pages(held);
    tnd_mapping_drop(held->mapping);
    is_last = --reader->kept_count == 0 && reader->is_closed;
    pthread_mutex_unlock(&reader->lock);
    held->mapping = NULL;
    tnd_reader_close_held(held);
    if (is_last)
        tnd_reader_free(reader);
}

static void
release_held(tundish_reader *reader, struct held *held)
{
    struct attachment *attachment = held->attachment;

    held->is_held = false;
    attachment->held_count--;
    tnd_mapping_drop(held->mapping);
    held->mapping = NULL;
    if (attachment->has_end && attachment->end_entry < held->entry)
        tnd_release_end(attachment);
    tnd_release_entry(attachment, held->entry, held->index);
    /* The last batch of an earlier server: its mapping can go. */
    if (attachment != reader->attachments)
        tnd_reader_tidy(reader);
}

void
tundish_release(tundish_reader *reader, const tundish_batch *batch)
{
    struct held *held = (struct held *)(uintptr_t)batch;

    if (reader == NULL || batch == NULL || !tnd_reader_is_ours(reader))
        return;
    if (held->is_kept) {
        release_kept(reader, held);
        return;
    }
    pthread_mutex_lock(&reader->lock);
    /* Releasing twice is harmless, and so is naming another reader's batch. */
    if (held->is_held && held->reader == reader)
        release_held(reader, held);
    pthread_mutex_unlock(&reader->lock);
}
