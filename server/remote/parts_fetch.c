/* parts_fetch.c - parts that come over the network, into slots that can be read meanwhile. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/crc32c.h"
#include "core/memory.h"
#include "core/read_write.h"
#include "remote/parts_private.h"
#include "remote/whole.h"

static int
write_bytes(const struct part_slot *slot, uint64_t offset, const void *bytes, size_t count)
{
    return tnd_write_at(part_slot_file(slot), bytes, count, part_slot_position(slot) + offset);
}

/* The part is about to move: nobody reads it from here on. */
static void
wait_for_readers(struct part_slot *slot)
{
    pthread_mutex_lock(&slot->parts->lock);
    slot->come_bytes = 0;
    while (slot->readers > 0)
        pthread_cond_wait(&slot->parts->changed, &slot->parts->lock);
    pthread_mutex_unlock(&slot->parts->lock);
}

/* The disk is full: what has come of the part goes on to the memory, where the rest follows. */
static int
leave_disk(struct part_slot *slot, uint64_t come_bytes, int error)
{
    enum { PIECE_BYTES = 256 << 10 };
    struct disk_claim claim = slot->claim;
    uint8_t *piece = tnd_alloc(PIECE_BYTES);

    disk_turn_off(slot->parts->disk, error);
    disk_leave(slot->parts->disk, &claim);
    wait_for_readers(slot);
    slot->claim.descriptor = -1;
    error = 0;
    for (uint64_t at = 0; at < come_bytes && error == 0; at += PIECE_BYTES) {
        uint64_t left = come_bytes - at;
        size_t count = left < PIECE_BYTES ? (size_t)left : PIECE_BYTES, got = 0;

        error = tnd_read_at(claim.descriptor, piece, count, at, &got);
        if (error == 0)
            error = got < count ? EIO : write_bytes(slot, at, piece, count);
    }
    close(claim.descriptor);
    free(piece);
    return error;
}

static void
add_to_checksum(struct part_slot *slot, uint64_t offset, const void *bytes, size_t count)
{
    if (slot->crc_bytes != offset) {
        slot->crc_bytes = UINT64_MAX;
        return;
    }
    slot->crc = tnd_crc32c(slot->crc, bytes, count);
    slot->crc_bytes += count;
}

static void
note_come(struct part_slot *slot, uint64_t come_bytes)
{
    pthread_mutex_lock(&slot->parts->lock);
    slot->come_bytes = come_bytes;
    if (slot->awaited != 0 && slot->awaited <= come_bytes) {
        slot->awaited = 0;
        pthread_cond_broadcast(&slot->parts->changed);
    }
    pthread_mutex_unlock(&slot->parts->lock);
}

/* The thread of the transfers alone writes into a slot whose part comes. */
static bool
put_bytes(void *context, uint64_t offset, const void *bytes, size_t count)
{
    struct part_slot *slot = context;
    int error = write_bytes(slot, offset, bytes, count);

    if (error != 0 && slot->claim.descriptor >= 0) {
        error = leave_disk(slot, offset, error);
        if (error == 0)
            error = write_bytes(slot, offset, bytes, count);
    }
    if (error != 0) {
        (void)tnd_fail_errno(error, "no room in the cache folder for what is fetched "
                                    "(TUNDISH_CACHE names another; remote.cache_bytes bounds it)");
        return false;
    }
    if (slot->claim.descriptor >= 0)
        add_to_checksum(slot, offset, bytes, count);
    if (offset + count > slot->come_bytes)
        note_come(slot, offset + count);
    return true;
}

static void
begin_to_come(void *context, const struct answer *answer)
{
    struct part_slot *slot = context;
    struct object_identity identity = request_identity(answer);

    pthread_mutex_lock(&slot->parts->lock);
    if (slot->list != NULL)
        parts_learn(slot->parts, slot->list, &identity);
    pthread_cond_broadcast(&slot->parts->changed);
    pthread_mutex_unlock(&slot->parts->lock);
}

/* A part that has come into a file of the disk is whole: keep it there. Without a name it is still
 * there to be read. */
static void
keep_part(struct part_slot *slot, tundish_status status, const struct answer *answer)
{
    struct disk_kept kept = { .identity = request_identity(answer),
                              .part = slot->part,
                              .crc = slot->crc,
                              .bytes = slot->crc_bytes };

    if (status != TUNDISH_OK || slot->list == NULL || slot->crc_bytes == UINT64_MAX) {
        disk_leave(slot->parts->disk, &slot->claim);
        return;
    }
    kept.address = slot->list->address;
    (void)disk_keep(slot->parts->disk, &slot->claim, &kept);
}

/* Credentials that the store calls expired may have been renewed by now. Ask again with others,
 * once for each part that was asked for with the same. */
static bool
is_asked_anew(struct part_list *list, const struct answer *answer)
{
    if (!answer->calls_expired ||
        !remote_credentials_forget(list->remote, list->url->scheme, answer->look))
        return false;
    if (list->expired_look == 0)
        list->expired_look = answer->look;
    return answer->look == list->expired_look;
}

static void
end_part(void *context, tundish_status status, const struct answer *answer)
{
    struct part_slot *slot = context;
    struct parts *parts = slot->parts;

    pthread_mutex_lock(&parts->lock);
    slot->used_at = ++parts->clock;
    if (slot->claim.descriptor >= 0)
        keep_part(slot, status, answer);
    if (slot->list != NULL && status != TUNDISH_OK && whole_is_wanted(slot->list->remote, answer))
        slot->list->comes_whole = true;
    if (slot->list == NULL ||
        (status != TUNDISH_OK && (slot->list->comes_whole || is_asked_anew(slot->list, answer)))) {
        part_slot_empty(slot);
    } else if (status == TUNDISH_OK && answer->total / parts->part_bytes < PARTS_MAX) {
        struct object_identity identity = request_identity(answer);

        parts_learn(parts, slot->list, &identity);
        slot->list->come_count++;
        slot->list->expired_look = 0;
        slot->state = SLOT_READY;
    } else {
        slot->state = SLOT_FAILED;
        slot->failed_at_ns = tnd_clock_ns();
        slot->status = status != TUNDISH_OK ? status : TUNDISH_E_DATA;
        slot->text = tnd_strdup(status != TUNDISH_OK ? tnd_error_text()
                                                     : "the object has too many parts; raise "
                                                       "remote.part");
    }
    pthread_cond_broadcast(&parts->changed);
    pthread_mutex_unlock(&parts->lock);
}

tundish_status
parts_fetch(struct parts *parts, const struct task *task)
{
    struct transfer_want want = {
        .is_ranged = true,
        .first = (uint64_t)task->part * parts->part_bytes,
        .bytes = parts->part_bytes,
        .is_urgent = task->is_urgent,
        .put = put_bytes,
        .begun = begin_to_come,
        .done = end_part,
        .context = task->slot,
        .store = task->list->store,
    };
    tundish_status status;

    if (task->identity.is_known && task->identity.bytes - want.first < want.bytes)
        want.bytes = task->identity.bytes - want.first;
    status = request_object(task->list->remote, task->list->url, &task->identity, &want);
    if (status != TUNDISH_OK && task->slot->claim.descriptor >= 0)
        disk_leave(parts->disk, &task->slot->claim);
    return status;
}
