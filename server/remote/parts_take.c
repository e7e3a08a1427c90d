/* parts_take.c - a slot for a part: what the disk has is taken, the rest is asked for. */
#include <unistd.h>

#include "remote/parts_private.h"
#include "remote/whole.h"

enum { BUSY_WAIT_NS = 5000000 }; /* another process has the part in hand */

enum step { STEP_FETCH, STEP_READY, STEP_LATER };

/* Another process may have finished the part between our look and our claim. */
static enum step
claim_on_disk(struct disk *disk, const struct disk_wanted *wanted, struct disk_claim *claim)
{
    enum disk_answer answer = disk_claim(disk, wanted->address, wanted->part, claim);
    struct disk_claim claimed = *claim;
    struct object_identity known;
    enum step step = STEP_FETCH;

    if (answer != DISK_YOURS)
        return answer == DISK_BUSY ? STEP_LATER : STEP_FETCH;
    if (wanted->identity->is_known)
        step = disk_take(disk, wanted, &claim->descriptor) ? STEP_READY : STEP_FETCH;
    else if (disk_identity(disk, wanted->address, &known))
        step = STEP_LATER;
    if (step != STEP_FETCH) {
        disk_leave(disk, &claimed);
        close(claimed.descriptor);
    }
    if (step == STEP_LATER)
        claim->descriptor = -1;
    return step;
}

/* Take it from the disk, or claim it there. Without the lock. */
static tundish_status
look_on_disk(struct disk *disk, struct task *task, enum step *ret_step)
{
    const char *address = task->list->address;
    const struct disk_wanted wanted = { address, &task->identity, task->part, task->is_checked };
    struct disk_claim *claim = &task->slot->claim;
    struct object_identity known;
    tundish_status status = TUNDISH_OK;

    *ret_step = STEP_FETCH;
    if (!task->identity.is_known && disk_identity(disk, address, &known)) {
        *ret_step = STEP_LATER; /* one that reads ahead does not wait */
        if (task->is_urgent)
            status = remote_look(task->list->remote, task->list->url, &task->identity);
    }
    if (status != TUNDISH_OK || (*ret_step == STEP_LATER && !task->is_urgent))
        return status;
    *ret_step = STEP_FETCH;
    if (task->identity.is_known && disk_take(disk, &wanted, &claim->descriptor)) {
        *ret_step = STEP_READY;
        return TUNDISH_OK;
    }
    disk_make_room(disk);
    if (!task->is_late)
        *ret_step = claim_on_disk(disk, &wanted, claim);
    return TUNDISH_OK;
}

/* The part of an object that comes whole is on the disk afterwards. Who reads ahead does not wait
 * for that. Without the lock. */
static tundish_status
take_from_whole(struct parts *parts, struct task *task, enum step *ret_step)
{
    struct disk_claim *claim = &task->slot->claim;

    if (claim->descriptor >= 0) {
        disk_leave(parts->disk, claim);
        close(claim->descriptor);
        claim->descriptor = -1;
    }
    *ret_step = STEP_LATER;
    if (!task->is_urgent)
        return TUNDISH_OK;
    *ret_step = STEP_READY;
    return whole_have_part(task->list->remote, task->list->url, task->part, &task->identity,
                           &claim->descriptor);
}

static void
have_from_disk(struct parts *parts, const struct task *task)
{
    uint64_t first = (uint64_t)task->part * parts->part_bytes;
    uint64_t left = task->identity.bytes - first;

    task->slot->state = SLOT_READY;
    task->list->come_count++;
    task->slot->used_at = ++parts->clock;
    store_count(&task->list->store->cached_bytes,
                left < parts->part_bytes ? left : parts->part_bytes);
}

tundish_status
parts_take(struct parts *parts, struct task *task)
{
    struct part_slot *slot = task->slot;
    enum step step = STEP_FETCH;
    bool comes_whole = task->list->comes_whole;
    tundish_status status = TUNDISH_OK;

    task->identity = task->list->identity;
    task->is_checked = task->list->slots[task->part] == CHECKED_ON_DISK;
    slot->list = task->list;
    slot->part = task->part;
    slot->state = SLOT_COMING;
    slot->crc = 0;
    slot->crc_bytes = 0;
    slot->come_bytes = 0;
    slot->awaited = 0;
    task->list->slots[task->part] = (uint32_t)(slot - parts->slots) + 1;
    pthread_mutex_unlock(&parts->lock);
    if (parts->disk != NULL)
        status = look_on_disk(parts->disk, task, &step);
    if (status == TUNDISH_OK && step == STEP_FETCH && comes_whole)
        status = take_from_whole(parts, task, &step);
    /* From here on the slot is the transfers'. */
    if (status == TUNDISH_OK && step == STEP_FETCH)
        status = parts_fetch(parts, task);
    pthread_mutex_lock(&parts->lock);
    if (status == TUNDISH_OK && task->identity.is_known)
        parts_learn(parts, task->list, &task->identity);
    if (status == TUNDISH_OK && step == STEP_READY) {
        have_from_disk(parts, task);
    } else if (status != TUNDISH_OK || step == STEP_LATER) {
        part_slot_empty(slot);
    }
    pthread_cond_broadcast(&parts->changed);
    if (status == TUNDISH_OK && step == STEP_LATER && task->is_urgent)
        status = parts_wait(parts, BUSY_WAIT_NS);
    return status;
}
