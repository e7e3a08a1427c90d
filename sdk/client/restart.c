/* restart.c - begin the next epoch before this one is over. */
#include "client/delivery.h"
#include "core/status.h"

/* Pass over the rest of the epoch from now on (next.c), and tell the server. */
static tundish_status
leave_epoch(tundish_reader *reader, uint64_t epoch)
{
    const struct tnd_message_head restart = { .type = TND_RESTART, .id = epoch };
    struct attachment *attachment = reader->attachments;
    tundish_status status = TUNDISH_OK;

    /* Before any of these batches is given back: it tells the server that they were not returned.
     */
    atomic_store(&attachment->returns->passed_from, attachment->taken + 1);
    tnd_reader_stand(reader, epoch + 1, 0);
    reader->place_bytes = 0;
    reader->in_epoch = reader->is_at_end = false;
    if (!attachment->is_gone)
        status = tnd_channel_send(attachment->socket, restart, NULL, NULL, 0);
    /* If the server is gone, its successor learns of it when we attach again. */
    return status == TUNDISH_E_SERVER_GONE ? TUNDISH_OK : status;
}

tundish_status
tnd_reader_restart_at(tundish_reader *reader, const struct tnd_slot *slot)
{
    bool is_left =
        slot->kind == TND_SLOT_END || (reader->restart_is_due && slot->kind == TND_SLOT_BATCH);

    reader->restart_is_due = reader->passes_end = false;
    return slot->step > 0 && is_left ? leave_epoch(reader, slot->epoch) : TUNDISH_OK;
}

/* A reader that has returned nothing yet may follow another one, in the middle of an epoch. The
 * WELCOME of the server has that position; otherwise the first entry has it. */
tundish_status
tundish_restart(tundish_reader *reader)
{
    tundish_status status = tnd_reader_check(reader);
    const struct tnd_welcome *welcome;

    if (status != TUNDISH_OK)
        return status;
    if (reader->in_epoch || reader->is_at_end)
        return leave_epoch(reader, reader->epoch);
    if (reader->has_started || !reader->attachments->delivery->is_in_order)
        return TUNDISH_OK;
    welcome = &reader->attachments->welcome;
    if (welcome->first_step == UINT64_MAX)
        reader->restart_is_due = true;
    else if (welcome->first_step > 0)
        return leave_epoch(reader, welcome->first_epoch);
    return TUNDISH_OK;
}
