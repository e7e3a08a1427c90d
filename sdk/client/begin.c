/* begin.c - where a reader begins that was opened without a place. The server decides it, for all
 * replicas of a group alike. */
#include "client/reader.h"
#include "core/clock.h"
#include "core/status.h"

static void
begin_with(tundish_reader *reader, uint64_t epoch)
{
    reader->attachments->welcome.begin_epoch = epoch;
    if (epoch > 0)
        tnd_reader_stand(reader, epoch, 0);
}

void
tnd_reader_begin(tundish_reader *reader)
{
    struct attachment *attachment = reader->attachments;
    const struct tnd_welcome *welcome = &attachment->welcome;

    reader->passes_end = (welcome->flags & TND_WELCOME_AFTER_END) != 0;
    attachment->awaits_from = (welcome->flags & TND_WELCOME_FROM) != 0;
    if (welcome->begin_epoch != UINT64_MAX)
        begin_with(reader, welcome->begin_epoch);
}

/* The server has given back what is before that, as nothing here was taken yet. */
static void
go_to(tundish_reader *reader, uint64_t position)
{
    struct attachment *attachment = reader->attachments;

    pthread_mutex_lock(&reader->lock);
    attachment->taken = attachment->released = position;
    atomic_store(&attachment->returns->taken, position);
    atomic_store(&attachment->returns->released, position);
    pthread_mutex_unlock(&reader->lock);
}

tundish_status
tnd_reader_take_from(tundish_reader *reader, uint64_t epoch, uint64_t position)
{
    struct attachment *attachment = reader->attachments;

    if (!attachment->awaits_from || position < attachment->taken)
        return tnd_fail(TUNDISH_E_CORRUPT, "the server told twice where to begin");
    attachment->awaits_from = false;
    go_to(reader, position);
    /* By then tundish_restart may have been called. */
    if (!reader->has_started && epoch != UINT64_MAX)
        begin_with(reader, epoch);
    return TUNDISH_OK;
}

tundish_status
tnd_reader_await_from(tundish_reader *reader, int64_t deadline_ns)
{
    tundish_status status = TUNDISH_OK;

    while (status == TUNDISH_OK && reader->final == TUNDISH_OK &&
           reader->attachments->awaits_from && !reader->attachments->is_gone)
        status = tnd_reader_listen_for(reader, tnd_clock_left_ns(deadline_ns));
    return status == TUNDISH_E_TIMEOUT ? tnd_fail(TUNDISH_E_TIMEOUT, "no batch in time") : status;
}

void
tnd_reader_first(const tundish_reader *reader, uint64_t *ret_epoch, uint64_t *ret_step)
{
    const struct tnd_welcome *welcome = &reader->attachments->welcome;
    bool is_told = welcome->begin_epoch != UINT64_MAX;

    *ret_epoch = is_told ? welcome->begin_epoch : welcome->first_epoch;
    *ret_step = is_told ? 0 : welcome->first_step;
}
