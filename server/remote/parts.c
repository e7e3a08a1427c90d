/* parts.c - slots of one size: in one file, or each in a file of the cache on disk (disk.h). */
#include "remote/parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/memory.h"
#include "core/must.h"
#include "core/read_write.h"
#include "remote/parts_private.h"

enum { WAIT_NS = 100000000, SLOTS_MAX = 1 << 16 };

/* With a disk each slot is an open file. */
enum { DISK_SLOTS = 512 };

/* A failure is told so long to those that ask again. */
#define TELL_NS INT64_C(2000000000)

/* A process that fetches a part for so long may be stopped. */
#define LATE_NS INT64_C(30000000000)

/* Parts that find no room on the disk are kept in memory. */
static tundish_status
open_file(const struct parts_options *options, int *ret_file)
{
    int file = options->disk != NULL
                   ? memfd_create("tundish parts", MFD_CLOEXEC)
                   : openat(options->folder, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

    if (file < 0)
        return tnd_fail_errno(errno, "cannot make a file in the cache folder for what is fetched "
                                     "(TUNDISH_CACHE names another)");
    *ret_file = file;
    return TUNDISH_OK;
}

tundish_status
parts_open(const struct parts_options *options, struct parts **ret_parts)
{
    uint64_t count = options->bytes / options->part_bytes;
    uint64_t most = options->disk != NULL ? DISK_SLOTS : SLOTS_MAX;
    struct parts *parts;
    int file = -1;
    tundish_status status = open_file(options, &file);

    if (status != TUNDISH_OK)
        return status;
    count = count < most ? count : most;
    parts = tnd_zalloc(1, sizeof *parts);
    parts->disk = options->disk;
    parts->file = file;
    parts->part_bytes = options->part_bytes;
    parts->least_count = options->least_count;
    parts->slot_count = count > options->least_count ? (uint32_t)count : options->least_count;
    parts->slots = tnd_zalloc(parts->slot_count, sizeof *parts->slots);
    for (uint32_t i = 0; i < parts->slot_count; i++) {
        parts->slots[i].parts = parts;
        parts->slots[i].claim.descriptor = -1;
    }
    pthread_mutex_init(&parts->lock, NULL);
    tnd_condition_open(&parts->changed);
    *ret_parts = parts;
    return TUNDISH_OK;
}

void
parts_begin(struct parts *parts, struct part_list *list)
{
    struct remote_site site = remote_site_of(list->remote);

    (void)parts;
    list->address = remote_url_address(list->url, &site);
    list->part_count = 1;
    list->slots = tnd_zalloc(1, sizeof *list->slots);
}

void
part_slot_empty(struct part_slot *slot)
{
    bool is_on_disk = slot->state == SLOT_READY && slot->claim.descriptor >= 0;

    if (slot->list != NULL)
        slot->list->slots[slot->part] = is_on_disk ? CHECKED_ON_DISK : 0;
    slot->list = NULL;
    slot->state = SLOT_EMPTY;
    if (slot->claim.descriptor >= 0)
        close(slot->claim.descriptor);
    slot->claim.descriptor = -1;
    free(slot->text);
    slot->text = NULL;
}

static struct part_slot *
slot_of(struct parts *parts, const struct part_list *list, uint32_t part)
{
    uint32_t number = list->slots[part];

    return number > 0 && number <= parts->slot_count ? &parts->slots[number - 1] : NULL;
}

void
parts_end(struct parts *parts, struct part_list *list)
{
    pthread_mutex_lock(&parts->lock);
    for (uint32_t i = 0; i < list->part_count; i++) {
        struct part_slot *slot = slot_of(parts, list, i);

        if (slot != NULL && slot->state == SLOT_COMING)
            slot->list = NULL;
        else if (slot != NULL)
            part_slot_empty(slot);
    }
    pthread_mutex_unlock(&parts->lock);
    free(list->slots);
    free(list->address);
    list->slots = NULL;
    list->address = NULL;
}

/* An empty slot, else the one that was used longest ago. NULL: all are coming or being read. */
static struct part_slot *
take_slot(struct parts *parts)
{
    struct part_slot *oldest = NULL;
    bool is_in_memory = parts->disk != NULL && disk_is_off(parts->disk);
    uint32_t count = is_in_memory ? parts->least_count : parts->slot_count;

    for (uint32_t i = 0; i < count; i++) {
        struct part_slot *slot = &parts->slots[i];

        if (slot->state == SLOT_EMPTY)
            return slot;
        if (slot->state != SLOT_COMING && slot->readers == 0 &&
            (oldest == NULL || slot->used_at < oldest->used_at))
            oldest = slot;
    }
    if (oldest != NULL)
        part_slot_empty(oldest);
    return oldest;
}

int
part_slot_file(const struct part_slot *slot)
{
    return slot->claim.descriptor >= 0 ? slot->claim.descriptor : slot->parts->file;
}

uint64_t
part_slot_position(const struct part_slot *slot)
{
    return slot->claim.descriptor >= 0
               ? 0
               : (uint64_t)(slot - slot->parts->slots) * slot->parts->part_bytes;
}

void
parts_learn(const struct parts *parts, struct part_list *list,
            const struct object_identity *identity)
{
    uint64_t count;

    if (list->identity.is_known || identity->bytes / parts->part_bytes >= PARTS_MAX)
        return;
    list->identity = *identity;
    count = (identity->bytes + parts->part_bytes - 1) / parts->part_bytes;
    list->part_count = count < 1 ? 1 : (uint32_t)count;
    list->slots = tnd_realloc(list->slots, list->part_count, sizeof *list->slots);
    memset(list->slots + 1, 0, (list->part_count - 1) * sizeof *list->slots);
}

tundish_status
parts_wait(struct parts *parts, long ns)
{
    struct timespec until;

    if (remote_has_given_up())
        return tnd_fail(TUNDISH_STOPPED, "stopped while a server was waited for");
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += ns;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&parts->changed, &parts->lock, &until);
    return TUNDISH_OK;
}

/* A part, as far as it is wanted: its first bytes can be read while the others come. */
struct wanted_part {
    struct part_list *list;
    uint32_t part;
    uint64_t bytes; /* 0: none, but the object's identity */
};

static bool
has_come(struct part_slot *slot, const struct wanted_part *wanted)
{
    if (slot->state != SLOT_COMING || !wanted->list->identity.is_known)
        return slot->state == SLOT_READY;
    if (slot->come_bytes >= wanted->bytes)
        return true;
    if (slot->awaited == 0 || slot->awaited > wanted->bytes)
        slot->awaited = wanted->bytes;
    return false;
}

/* The slot of a part that is there, NULL if it is not; a failure is told to all that waited for it.
 */
static tundish_status
look_for_part(struct parts *parts, const struct wanted_part *wanted, struct part_slot **ret_slot)
{
    struct part_slot *slot = slot_of(parts, wanted->list, wanted->part);

    *ret_slot = NULL;
    if (slot != NULL && slot->state == SLOT_FAILED) {
        if (tnd_clock_ns() - slot->failed_at_ns < TELL_NS)
            return tnd_fail(slot->status, "%s", slot->text);
        /* A reader that comes later tries again. */
        if (slot->readers == 0)
            part_slot_empty(slot);
    } else if (slot != NULL && has_come(slot, wanted)) {
        slot->used_at = ++parts->clock;
        *ret_slot = slot;
    }
    return TUNDISH_OK;
}

/* With the lock held: wait until the part is there. */
static tundish_status
wait_for_part(struct parts *parts, const struct wanted_part *wanted, struct part_slot **ret_slot)
{
    struct part_list *list = wanted->list;
    struct store_wait wait;
    tundish_status status = TUNDISH_OK;

    store_wait_begin(list->store, &wait, list->url->name);
    while (status == TUNDISH_OK && *ret_slot == NULL) {
        struct task task = { .list = list, .part = wanted->part, .is_urgent = true };

        task.slot = slot_of(parts, list, wanted->part) == NULL ? take_slot(parts) : NULL;
        task.is_late = tnd_clock_ns() - wait.since_ns > LATE_NS;
        status = task.slot != NULL ? parts_take(parts, &task) : parts_wait(parts, WAIT_NS);
        if (status == TUNDISH_OK)
            status = look_for_part(parts, wanted, ret_slot);
    }
    store_wait_end(list->store, &wait);
    return status;
}

static tundish_status
have_part(struct parts *parts, const struct wanted_part *wanted, struct part_slot **ret_slot)
{
    tundish_status status = look_for_part(parts, wanted, ret_slot);

    store_count(&wanted->list->store->reads, 1);
    if (status == TUNDISH_OK && *ret_slot != NULL)
        store_count(&wanted->list->store->hits, 1);
    else if (status == TUNDISH_OK)
        status = wait_for_part(parts, wanted, ret_slot);
    return status;
}

tundish_status
parts_identify(struct parts *parts, struct part_list *list)
{
    struct part_slot *slot;
    tundish_status status = TUNDISH_OK;

    pthread_mutex_lock(&parts->lock);
    if (!list->identity.is_known)
        status = have_part(parts, &(struct wanted_part){ .list = list }, &slot);
    pthread_mutex_unlock(&parts->lock);
    return status;
}

tundish_status
parts_read(struct parts *parts, struct part_list *list, const struct iovec to[2], uint64_t offset)
{
    size_t bytes = to[0].iov_len + to[1].iov_len;
    uint64_t from = offset % parts->part_bytes;
    const struct wanted_part wanted = { list, (uint32_t)(offset / parts->part_bytes),
                                        from + bytes };
    uint64_t position = 0;
    size_t got = 0;
    struct part_slot *slot = NULL;
    tundish_status status;
    int error, file = -1;

    must(from + bytes <= parts->part_bytes);
    pthread_mutex_lock(&parts->lock);
    must(wanted.part < list->part_count);
    status = have_part(parts, &wanted, &slot);
    if (status == TUNDISH_OK) {
        slot->readers++;
        file = part_slot_file(slot);
        position = part_slot_position(slot);
    }
    pthread_mutex_unlock(&parts->lock);
    if (status != TUNDISH_OK)
        return status;
    error = tnd_read_both_at(file, to, position + from, &got);
    pthread_mutex_lock(&parts->lock);
    if (--slot->readers == 0)
        pthread_cond_broadcast(&parts->changed);
    pthread_mutex_unlock(&parts->lock);
    if (error != 0 || got < bytes)
        return tnd_fail_errno(error != 0 ? error : EIO, "the file of what was fetched");
    return TUNDISH_OK;
}

static bool
is_here(struct parts *parts, const struct part_list *list, uint32_t part, uint64_t bytes)
{
    const struct part_slot *slot = slot_of(parts, list, part);

    if (slot == NULL)
        return list->slots[part] != 0; /* on the disk */
    return slot->state != SLOT_COMING || (list->identity.is_known && slot->come_bytes >= bytes);
}

bool
parts_are_here(struct parts *parts, const struct part_list *list, size_t bytes, uint64_t offset)
{
    uint64_t end;
    bool are_here = true;

    pthread_mutex_lock(&parts->lock);
    /* The first part tells the size of an object that nobody has looked at. */
    if (!list->identity.is_known)
        offset = 0;
    end = list->identity.is_known ? list->identity.bytes : 1;
    if (offset < end && bytes < end - offset)
        end = offset + bytes;
    for (uint64_t at = offset; at < end && are_here;) {
        uint64_t part = at / parts->part_bytes, first = part * parts->part_bytes;
        uint64_t left = end - first;

        are_here = is_here(parts, list, (uint32_t)part,
                           left < parts->part_bytes ? left : parts->part_bytes);
        at = first + parts->part_bytes;
    }
    pthread_mutex_unlock(&parts->lock);
    return are_here;
}

void
parts_expect(struct parts *parts, struct part_list *list, uint64_t offset, uint32_t count)
{
    uint64_t part = offset / parts->part_bytes, end = part + count;

    pthread_mutex_lock(&parts->lock);
    if (count > 1 + 2 * (uint64_t)list->come_count)
        end = part + 1 + 2 * (uint64_t)list->come_count;
    /* The first part tells how many parts an unknown object has. */
    if (!list->identity.is_known) {
        part = 0;
        end = 1;
    }
    if (end > list->part_count)
        end = list->part_count;
    for (; part < end; part++) {
        struct task task = { .list = list, .part = (uint32_t)part };

        if (list->slots[part] == 0 && parts->disk != NULL &&
            disk_has(parts->disk, list->address, (uint32_t)part))
            list->slots[part] = ON_DISK;
        if (list->slots[part] != 0)
            continue;
        if (transfers_are_busy(list->remote->transfers))
            break;
        task.slot = take_slot(parts);
        if (task.slot == NULL || parts_take(parts, &task) != TUNDISH_OK)
            break;
    }
    pthread_mutex_unlock(&parts->lock);
}
