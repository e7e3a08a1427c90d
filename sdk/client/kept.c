/* kept.c - the steps that a dead server leaves in the memory that it shared with its trainers.
 *
 * The server refills a slot only when every trainer of every group has given it back. So no trainer
 * lacks a step before the oldest entry whose slot still holds it, and the lane has all steps from
 * there on. Where every trainer belongs to this process the limit is known more exactly
 * (siblings.c). The next server learns it from HELLO and keeps its lanes that much longer.
 */
#include "client/delivery.h"

/* Does `next` come right after `slot`? */
static bool
is_followed_by(const struct tnd_slot *slot, const struct kept *next)
{
    if (slot->kind == TND_SLOT_END)
        return next->epoch == slot->epoch + 1 && next->step == 0;
    return slot->kind == TND_SLOT_BATCH && next->epoch == slot->epoch &&
           next->step == slot->step + 1;
}

/* A new server can begin there if this reader has the header of the epoch. An end begins the next
 * epoch. */
static bool
may_begin_there(const tundish_reader *reader, const struct tnd_slot *slot)
{
    bool is_end = slot->kind == TND_SLOT_END;

    return (slot->kind == TND_SLOT_BATCH || is_end) &&
           tnd_reader_find_header(reader, slot->epoch + is_end) != NULL;
}

/* Go back to this entry of the lane, if its slot still holds it. The server may have died while it
 * wrote a slot: an entry that does not precede the next one exactly counts as overwritten. */
static bool
step_back(const tundish_reader *reader, uint64_t entry, struct tnd_view_slot *view,
          struct kept *kept)
{
    const struct tnd_view *lane = &reader->attachments->view;
    const struct tnd_slot *slot = &view->slot;
    uint32_t index;

    if (tnd_view_entry(lane, 0, entry, &index) != TUNDISH_OK ||
        tnd_view_slot_read(lane, index, view) != TUNDISH_OK || slot->position != entry ||
        !may_begin_there(reader, slot) || (kept->is_known && !is_followed_by(slot, kept)))
        return false;
    *kept = (struct kept){ .is_known = true,
                           .is_end = slot->kind == TND_SLOT_END,
                           .epoch = slot->epoch,
                           .step = slot->step };
    return true;
}

/* Leave out the last entry if it only says that the stream is over. */
static uint64_t
count_entries(const tundish_reader *reader, uint64_t published, struct tnd_view_slot *view)
{
    const struct tnd_view *lane = &reader->attachments->view;
    uint32_t index;

    if (published > 0 && tnd_view_entry(lane, 0, published - 1, &index) == TUNDISH_OK &&
        tnd_view_slot_read(lane, index, view) == TUNDISH_OK &&
        view->slot.position == published - 1 && view->slot.kind != TND_SLOT_BATCH &&
        view->slot.kind != TND_SLOT_END)
        return published - 1;
    return published;
}

static bool
is_after(const struct kept *kept, const tundish_reader *reader)
{
    return kept->epoch > reader->epoch ||
           (kept->epoch == reader->epoch && kept->step > reader->step);
}

/* Where every trainer of the session is in this process, the lowest of them is exact. */
static void
raise_to_siblings(const tundish_reader *reader, struct kept *kept)
{
    struct kept lowest;

    if (!tnd_siblings_lowest(reader, kept, &lowest) || !tnd_reader_kept_before(kept, &lowest) ||
        tnd_reader_find_header(reader, lowest.epoch + lowest.is_end) == NULL)
        return;
    kept->is_end = lowest.is_end;
    kept->epoch = lowest.epoch;
    kept->step = lowest.step;
}

/* Nothing came through this lane. Nobody lacks a step before the first that the server was to
 * publish. If it had not begun at all, what is noted of the server before is true of it too. */
static bool
note_begin(tundish_reader *reader, struct kept *kept)
{
    const struct attachment *attachment = reader->attachments;

    if (!attachment->has_begin)
        reader->kept.generation = attachment->view.server_generation;
    if (!attachment->has_begin || tnd_reader_find_header(reader, attachment->begin_epoch) == NULL)
        return false;
    *kept = (struct kept){ .is_known = true,
                           .epoch = attachment->begin_epoch,
                           .step = attachment->begin_step };
    return true;
}

void
tnd_reader_note_kept(tundish_reader *reader)
{
    const struct attachment *attachment = reader->attachments;
    const struct tnd_batches *batches = attachment->view.batches;
    uint64_t published = atomic_load(&batches->published), first, entry;
    struct tnd_view_slot view = { 0 };
    struct kept kept = { 0 };

    if (!attachment->delivery->is_in_order || (published == 0 && !note_begin(reader, &kept)) ||
        tnd_view_slot_open(&attachment->view, &view) != TUNDISH_OK)
        return;
    first = published > attachment->view.slot_count ? published - attachment->view.slot_count : 0;
    for (entry = count_entries(reader, published, &view);
         entry > first && step_back(reader, entry - 1, &view, &kept); entry--)
        ;
    tnd_view_slot_close(&view);
    /* This reader itself lacks the step at which it stands. */
    if (!kept.is_known || is_after(&kept, reader))
        kept = (struct kept){ .is_known = true, .epoch = reader->epoch, .step = reader->step };
    kept.groups_present = atomic_load(&batches->groups_present);
    kept.groups_gone = atomic_load(&batches->groups_gone);
    kept.generation = attachment->view.server_generation;
    raise_to_siblings(reader, &kept);
    reader->kept = kept;
}
