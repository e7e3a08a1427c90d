/* siblings.c - the readers of this process that read one session, and the steps that all of them
 * have had.
 *
 * If the session has no other readers, no trainer lacks those steps. One thread that reads all of
 * them in turn depends on this: after a restart it may wait in its first reader before it attaches
 * the others. Lanes that began with steps already read would be full by then, and the thread would
 * wait without end.
 */
#include "client/reader.h"

struct siblings {
    uint64_t generation; /* of the server; each session of a server has its own */
    uint64_t count;
    struct kept lowest;
};

/* An end and a reader that has passed the last step have the same `step`. The end comes first. */
bool
tnd_kept_is_before(const struct kept *kept, const struct kept *other)
{
    if (kept->epoch != other->epoch)
        return kept->epoch < other->epoch;
    return kept->step < other->step ||
           (kept->step == other->step && kept->is_end && !other->is_end);
}

static void
lower_kept(struct kept *lowest, const struct kept *kept)
{
    if (tnd_kept_is_before(kept, lowest))
        *lowest = *kept;
}

static struct kept
entry_of(const struct tnd_slot *slot)
{
    return (struct kept){ .is_known = true,
                          .is_end = slot->kind == TND_SLOT_END,
                          .epoch = slot->epoch,
                          .step = slot->step };
}

/* The first step that the reader has not taken, or has not given back. The reader's lock is held.
 */
static struct kept
first_lacked(const tundish_reader *reader)
{
    const struct attachment *at = reader->attachments;
    struct kept lowest = { 0 }, kept;

    if (!reader->has_started)
        return lowest;
    lowest = (struct kept){ .is_known = true, .epoch = reader->epoch, .step = reader->step };
    for (uint32_t i = 0; i < at->view.slot_count; i++)
        if (at->slots[i]->is_held || (at->has_end && at->end_index == i)) {
            kept = entry_of(&at->slots[i]->slot.slot);
            lower_kept(&lowest, &kept);
        }
    return lowest;
}

static void
read_sibling(tundish_reader *reader, void *user)
{
    struct siblings *siblings = user;
    struct kept kept = { 0 };
    bool is_one;

    pthread_mutex_lock(&reader->lock);
    is_one = reader->attachments != NULL && reader->final == TUNDISH_OK &&
             reader->attachments->view.server_generation == siblings->generation;
    if (is_one)
        kept = first_lacked(reader);
    pthread_mutex_unlock(&reader->lock);
    if (!is_one)
        return;
    if (siblings->count++ == 0)
        siblings->lowest = kept;
    else
        lower_kept(&siblings->lowest, &kept);
    siblings->lowest.is_known &= kept.is_known;
}

bool
tnd_siblings_lowest(const tundish_reader *reader, uint64_t count, struct kept *ret_lowest)
{
    struct siblings siblings = { .generation = reader->attachments->view.server_generation };

    tnd_reader_each(read_sibling, &siblings);
    *ret_lowest = siblings.lowest;
    return siblings.count == count && siblings.lowest.is_known;
}
