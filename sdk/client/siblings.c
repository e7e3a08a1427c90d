/* siblings.c - the readers of this process that read one session, and the steps that all of them
 * have had.
 *
 * If the session has no other readers, no trainer lacks those steps. One thread that reads all of
 * them in turn depends on this: after a restart it may wait in its first reader before it attaches
 * the others. Lanes that began with steps already read would be full by then, and the thread would
 * wait without end.
 *
 * Some siblings may still read what the dead server left, while others are on its successor.
 */
#include <string.h>

#include "client/reader.h"

struct siblings {
    const tundish_reader *reader;
    uint64_t count, back_count; /* those that this reader's server has */
    bool has_twins;
    struct kept lowest;
};

/* An end and a reader that has passed the last step have the same `step`. The end comes first. */
bool
tnd_reader_kept_before(const struct kept *kept, const struct kept *other)
{
    if (kept->epoch != other->epoch)
        return kept->epoch < other->epoch;
    return kept->step < other->step ||
           (kept->step == other->step && kept->is_end && !other->is_end);
}

static void
lower_kept(struct kept *lowest, const struct kept *kept)
{
    if (tnd_reader_kept_before(kept, lowest))
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

static bool
is_of_session(const tundish_reader *reader, const tundish_reader *other)
{
    return strcmp(reader->path, other->path) == 0 && strcmp(reader->stream, other->stream) == 0 &&
           strcmp(reader->session, other->session) == 0;
}

/* Is another reader of the list the same replica? The caller may have opened one again and not
 * closed the first: then the count says nothing. */
static bool
has_twin(const tundish_reader *reader)
{
    const tundish_reader *other = reader->next;

    while (other != NULL && (!is_of_session(reader, other) || other->replica != reader->replica ||
                             strcmp(other->group, reader->group) != 0))
        other = other->next;
    return other != NULL;
}

static void
read_sibling(tundish_reader *reader, void *user)
{
    struct siblings *siblings = user;
    struct kept kept = { 0 };
    bool is_one;

    if (!is_of_session(reader, siblings->reader))
        return;
    siblings->has_twins |= has_twin(reader);
    pthread_mutex_lock(&reader->lock);
    is_one = reader->attachments != NULL && reader->final == TUNDISH_OK;
    if (is_one) {
        kept = first_lacked(reader);
        siblings->back_count += reader->attachments->view.server_generation ==
                                siblings->reader->attachments->view.server_generation;
    }
    pthread_mutex_unlock(&reader->lock);
    if (!is_one)
        return;
    if (siblings->count++ == 0)
        siblings->lowest = kept;
    else
        lower_kept(&siblings->lowest, &kept);
    siblings->lowest.is_known &= kept.is_known;
}

/* Every trainer of the session is in this process if its readers are as many as the groups have
 * replicas. */
static bool
read_all(struct siblings *siblings, const struct kept *groups)
{
    uint64_t group_count = (uint64_t)groups->groups_present + groups->groups_gone;

    tnd_reader_each(read_sibling, siblings);
    return !siblings->has_twins &&
           siblings->count == group_count * siblings->reader->attachments->welcome.replica_count;
}

bool
tnd_siblings_lowest(const tundish_reader *reader, const struct kept *groups,
                    struct kept *ret_lowest)
{
    struct siblings siblings = { .reader = reader };

    if (!read_all(&siblings, groups))
        return false;
    *ret_lowest = siblings.lowest;
    return siblings.lowest.is_known;
}

/* The message may be lost with the server, whose successor learns as much from HELLO. */
static void
tell(tundish_reader *reader, const struct kept *lowest)
{
    struct tnd_message_head head = { .type = TND_KEPT,
                                     .id = lowest->epoch,
                                     .offset = lowest->step };

    if (tnd_channel_send(reader->attachments->socket, head, NULL, NULL, 0) == TUNDISH_OK)
        reader->told = *lowest;
}

void
tnd_siblings_tell(tundish_reader *reader)
{
    struct siblings siblings = { .reader = reader };

    if (!reader->awaits_siblings || !reader->attachments->has_begin || reader->attachments->is_gone)
        return;
    reader->awaits_siblings =
        read_all(&siblings, &reader->kept) && siblings.back_count < siblings.count;
    if (reader->awaits_siblings && siblings.lowest.is_known &&
        (!reader->told.is_known || tnd_reader_kept_before(&reader->told, &siblings.lowest)))
        tell(reader, &siblings.lowest);
}
