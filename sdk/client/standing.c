/* standing.c - save the place where the reader stands. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/delivery.h"
#include "core/clock.h"
#include "core/status.h"
#include "shm/place.h"

/* Under the lock, since a sibling in another thread may read where this one stands. */
void
tnd_reader_stand(tundish_reader *reader, uint64_t epoch, uint64_t step)
{
    pthread_mutex_lock(&reader->lock);
    reader->has_started = true;
    reader->epoch = epoch;
    reader->step = step;
    pthread_mutex_unlock(&reader->lock);
}

void
tnd_reader_stand_at_begin(tundish_reader *reader)
{
    const struct attachment *attachment = reader->attachments;

    if (!reader->has_started && attachment->has_begin && attachment->taken == 0 &&
        tnd_reader_find_header(reader, attachment->begin_epoch) != NULL)
        tnd_reader_stand(reader, attachment->begin_epoch, attachment->begin_step);
}

/* The epoch of the header that the place carries. A place for a new server must let it begin as
 * early as some trainer may need (kept.c). */
static uint64_t
header_epoch(const tundish_reader *reader, const struct tnd_place *place, bool may_ask)
{
    uint64_t kept = reader->kept.epoch + reader->kept.is_end;

    return !may_ask && reader->kept.is_known && kept < place->epoch ? kept : place->epoch;
}

tundish_status
tnd_reader_place(tundish_reader *reader, bool may_ask, uint8_t **ret_bytes, uint64_t *ret_count)
{
    struct tnd_place place = { .epoch = reader->epoch, .step = reader->step };
    const struct epoch_header *header;
    uint8_t *bytes;
    tundish_status status = TUNDISH_OK;

    if (may_ask && reader->place_bytes > 0)
        status = tnd_reader_await_epoch(reader, reader->place_epoch);
    if (status == TUNDISH_OK && may_ask && reader->attachments->delivery->ask_place != NULL)
        status = reader->attachments->delivery->ask_place(reader);
    if (status != TUNDISH_OK)
        return status;
    if (reader->has_queue) {
        place.epoch = reader->queue.epoch;
        place.step = reader->queue.step;
        place.bit_count = reader->queue.bit_count;
        place.bits = reader->queue.bits;
    }
    header = tnd_reader_find_header(reader, header_epoch(reader, &place, may_ask));
    place.header_epoch = header == NULL ? place.epoch : header->epoch;
    if (header != NULL) {
        place.header = header->bytes;
        place.header_bytes = header->total;
    }
    bytes = malloc(tnd_place_bytes(&place));
    if (bytes == NULL)
        return tnd_fail(TUNDISH_E_MEMORY, "no memory for a place");
    tnd_place_write(&place, bytes);
    *ret_bytes = bytes;
    *ret_count = tnd_place_bytes(&place);
    return TUNDISH_OK;
}

/* Before the first batch a reader that was not opened at a place stands where the first batch in
 * its lane is. */
tundish_status
tnd_reader_find_start(tundish_reader *reader)
{
    struct attachment *attachment = reader->attachments;
    struct tnd_ring_wait wait = {
        .batches = attachment->view.batches,
        .returns = attachment->returns,
        .counter = &attachment->view.batches->published,
        .position = attachment->taken,
        .notice = atomic_load(&attachment->view.batches->notice),
    };
    uint32_t index;
    struct tnd_view_slot slot;
    tundish_status status;

    if (reader->has_started || !attachment->delivery->is_in_order)
        return TUNDISH_OK;
    if (attachment->awaits_from || !tnd_ring_ready(&wait))
        return tnd_fail(
            TUNDISH_E_TIMEOUT,
            "there is no place to save before the first batch: call tundish_next first");
    status = tnd_view_entry(&attachment->view, 0, attachment->taken, &index);
    if (status == TUNDISH_OK)
        status = tnd_view_slot_open(&attachment->view, &slot);
    if (status != TUNDISH_OK)
        return status;
    status = tnd_view_slot_read(&attachment->view, index, &slot);
    if (status == TUNDISH_OK && (reader->restart_is_due || reader->passes_end))
        status = tnd_reader_restart_at(reader, &slot.slot);
    if (status == TUNDISH_OK && !reader->has_started) {
        reader->epoch = reader->place_epoch = slot.slot.epoch;
        reader->step = slot.slot.step;
        reader->place_bytes = slot.slot.place_bytes;
    }
    tnd_view_slot_close(&slot);
    return status;
}

static tundish_status
make_place(tundish_reader *reader, uint8_t **ret_bytes, uint64_t *ret_count)
{
    tundish_status status = tnd_reader_check(reader);

    if (status == TUNDISH_OK)
        status = tnd_reader_find_start(reader);
    if (status == TUNDISH_OK)
        status = tnd_reader_place(reader, true, ret_bytes, ret_count);
    return status;
}

static tundish_status
too_small(uint64_t needed, size_t capacity)
{
    return tnd_fail(TUNDISH_E_ARGUMENT, "the place needs %llu bytes, but capacity is %zu",
                    (unsigned long long)needed, capacity);
}

tundish_status
tundish_place_save(tundish_reader *reader, void *bytes, size_t capacity, size_t *ret_bytes)
{
    uint8_t *place = NULL;
    uint64_t count = 0;
    tundish_status status = make_place(reader, &place, &count);

    if (status != TUNDISH_OK)
        return status;
    *ret_bytes = count;
    if (count > capacity)
        status = too_small(count, capacity);
    else
        memcpy(bytes, place, count);
    free(place);
    return status;
}

tundish_status
tundish_place_token(tundish_reader *reader, char *token, size_t capacity, size_t *ret_bytes)
{
    uint8_t *place = NULL;
    uint64_t count = 0, needed;
    tundish_status status = make_place(reader, &place, &count);

    if (status != TUNDISH_OK)
        return status;
    needed = tnd_place_token_bytes(count);
    *ret_bytes = needed;
    if (needed > capacity)
        status = too_small(needed, capacity);
    else
        tnd_place_token_write(place, count, token);
    free(place);
    return status;
}
