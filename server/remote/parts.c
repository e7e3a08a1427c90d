/* parts.c - slots of one size in one file. */
#include "remote/parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/memory.h"
#include "core/must.h"
#include "core/read_at.h"

enum { WAIT_NS = 100000000, SLOTS_MAX = 1 << 16 };
#define TELL_NS INT64_C(2000000000)

enum slot_state { SLOT_EMPTY, SLOT_COMING, SLOT_READY, SLOT_FAILED };

struct slot {
    struct parts *parts;
    struct part_list *list; /* whose part; NULL: it was ended while the part came */
    uint32_t part;
    enum slot_state state;
    uint32_t readers; /* that copy from it */
    uint64_t used_at;
    int64_t failed_at_ns; /* FAILED */
    tundish_status status;
    char *text;
};

struct parts {
    int file;
    uint32_t part_bytes, slot_count;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t clock;
    struct slot *slots;
};

tundish_status
parts_open(int folder, uint32_t part_bytes, uint64_t bytes, struct parts **ret_parts)
{
    int file = openat(folder, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    struct parts *parts;
    pthread_condattr_t attributes;

    if (file < 0)
        return tnd_fail_errno(errno, "cannot make a file in the cache folder for what is fetched "
                                     "(TUNDISH_CACHE names another)");
    parts = tnd_zalloc(1, sizeof *parts);
    parts->file = file;
    parts->part_bytes = part_bytes;
    parts->slot_count = bytes / part_bytes < SLOTS_MAX ? (uint32_t)(bytes / part_bytes) : SLOTS_MAX;
    parts->slots = tnd_zalloc(parts->slot_count, sizeof *parts->slots);
    for (uint32_t i = 0; i < parts->slot_count; i++)
        parts->slots[i].parts = parts;
    pthread_mutex_init(&parts->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&parts->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    *ret_parts = parts;
    return TUNDISH_OK;
}

void
parts_begin(struct parts *parts, struct part_list *list)
{
    (void)parts;
    list->part_count = 1;
    list->slots = tnd_zalloc(1, sizeof *list->slots);
}

static void
empty_slot(struct slot *slot)
{
    if (slot->list != NULL)
        slot->list->slots[slot->part] = 0;
    slot->list = NULL;
    slot->state = SLOT_EMPTY;
    free(slot->text);
    slot->text = NULL;
}

void
parts_end(struct parts *parts, struct part_list *list)
{
    pthread_mutex_lock(&parts->lock);
    for (uint32_t i = 0; i < list->part_count; i++) {
        struct slot *slot = list->slots[i] > 0 ? &parts->slots[list->slots[i] - 1] : NULL;

        if (slot != NULL && slot->state == SLOT_COMING)
            slot->list = NULL;
        else if (slot != NULL)
            empty_slot(slot);
    }
    pthread_mutex_unlock(&parts->lock);
    free(list->slots);
    list->slots = NULL;
}

/* An empty slot, else the one that was used longest ago. NULL: all are coming or being read. */
static struct slot *
take_slot(struct parts *parts)
{
    struct slot *oldest = NULL;

    for (uint32_t i = 0; i < parts->slot_count; i++) {
        struct slot *slot = &parts->slots[i];

        if (slot->state == SLOT_EMPTY)
            return slot;
        if (slot->state != SLOT_COMING && slot->readers == 0 &&
            (oldest == NULL || slot->used_at < oldest->used_at))
            oldest = slot;
    }
    if (oldest != NULL)
        empty_slot(oldest);
    return oldest;
}

static off_t
position_of(const struct slot *slot)
{
    return (off_t)(slot - slot->parts->slots) * slot->parts->part_bytes;
}

static bool
put_bytes(void *context, uint64_t offset, const void *bytes, size_t count)
{
    const struct slot *slot = context;
    size_t done = 0;

    while (done < count) {
        ssize_t put = pwrite(slot->parts->file, (const uint8_t *)bytes + done, count - done,
                             position_of(slot) + (off_t)(offset + done));

        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0) {
            (void)tnd_fail_errno(errno, "no room in the cache folder for what is fetched "
                                        "(TUNDISH_CACHE names another; remote.cache_bytes bounds "
                                        "it)");
            return false;
        }
        done += (size_t)put;
    }
    return true;
}

/* The first part tells how many there are. */
static void
learn_identity(struct parts *parts, struct part_list *list, const struct answer *answer)
{
    uint64_t count;

    if (list->identity.is_known)
        return;
    list->identity = request_identity(answer);
    count = (answer->total + parts->part_bytes - 1) / parts->part_bytes;
    list->part_count = count < 1 ? 1 : (uint32_t)count;
    list->slots = tnd_realloc(list->slots, list->part_count, sizeof *list->slots);
    memset(list->slots + 1, 0, (list->part_count - 1) * sizeof *list->slots);
}

static void
end_part(void *context, tundish_status status, const struct answer *answer)
{
    struct slot *slot = context;
    struct parts *parts = slot->parts;

    pthread_mutex_lock(&parts->lock);
    slot->used_at = ++parts->clock;
    if (slot->list == NULL) {
        slot->state = SLOT_EMPTY;
    } else if (status == TUNDISH_OK && answer->total / parts->part_bytes < UINT32_MAX) {
        learn_identity(parts, slot->list, answer);
        slot->state = SLOT_READY;
    } else {
        if (answer->calls_expired)
            remote_credentials_forget(slot->list->remote, slot->list->url->scheme);
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

/* With the lock held, which is given up meanwhile: finding credentials may take its time. */
static tundish_status
fetch_part(struct parts *parts, struct part_list *list, uint32_t part, struct slot *slot,
           bool is_urgent)
{
    struct object_identity identity = list->identity;
    struct transfer_want want = {
        .is_ranged = true,
        .first = (uint64_t)part * parts->part_bytes,
        .bytes = parts->part_bytes,
        .is_urgent = is_urgent,
        .put = put_bytes,
        .done = end_part,
        .context = slot,
        .store = list->store,
    };
    tundish_status status;

    if (identity.is_known && identity.bytes - want.first < want.bytes)
        want.bytes = identity.bytes - want.first;
    slot->list = list;
    slot->part = part;
    slot->state = SLOT_COMING;
    list->slots[part] = (uint32_t)(slot - parts->slots) + 1;
    pthread_mutex_unlock(&parts->lock);
    status = request_object(list->remote, list->url, &identity, &want);
    pthread_mutex_lock(&parts->lock);
    if (status != TUNDISH_OK) {
        empty_slot(slot);
        pthread_cond_broadcast(&parts->changed);
    }
    return status;
}

static tundish_status
wait_a_while(struct parts *parts)
{
    struct timespec until;

    if (remote_has_given_up())
        return tnd_fail(TUNDISH_STOPPED, "stopped while a server was waited for");
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += WAIT_NS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&parts->changed, &parts->lock, &until);
    return TUNDISH_OK;
}

/* The slot of a part that is there, NULL if it is not; a failure is told to all that waited for it.
 */
static tundish_status
look_for_part(struct parts *parts, struct part_list *list, uint32_t part, struct slot **ret_slot)
{
    struct slot *slot = list->slots[part] > 0 ? &parts->slots[list->slots[part] - 1] : NULL;

    *ret_slot = NULL;
    if (slot != NULL && slot->state == SLOT_FAILED) {
        if (tnd_clock_ns() - slot->failed_at_ns < TELL_NS)
            return tnd_fail(slot->status, "%s", slot->text);
        /* A reader that comes later tries again. */
        empty_slot(slot);
    } else if (slot != NULL && slot->state == SLOT_READY) {
        slot->used_at = ++parts->clock;
        *ret_slot = slot;
    }
    return TUNDISH_OK;
}

/* With the lock held: wait until the part is there. */
static tundish_status
wait_for_part(struct parts *parts, struct part_list *list, uint32_t part, struct slot **ret_slot)
{
    struct store_wait wait;
    tundish_status status = TUNDISH_OK;

    store_wait_begin(list->store, &wait, list->url->name);
    while (status == TUNDISH_OK && *ret_slot == NULL) {
        struct slot *slot = list->slots[part] == 0 ? take_slot(parts) : NULL;

        status = slot != NULL ? fetch_part(parts, list, part, slot, true) : wait_a_while(parts);
        if (status == TUNDISH_OK)
            status = look_for_part(parts, list, part, ret_slot);
    }
    store_wait_end(list->store, &wait);
    return status;
}

static tundish_status
have_part(struct parts *parts, struct part_list *list, uint32_t part, struct slot **ret_slot)
{
    tundish_status status = look_for_part(parts, list, part, ret_slot);

    store_count(&list->store->reads, 1);
    if (status == TUNDISH_OK && *ret_slot != NULL)
        store_count(&list->store->hits, 1);
    else if (status == TUNDISH_OK)
        status = wait_for_part(parts, list, part, ret_slot);
    return status;
}

tundish_status
parts_identify(struct parts *parts, struct part_list *list)
{
    struct slot *slot;
    tundish_status status = TUNDISH_OK;

    pthread_mutex_lock(&parts->lock);
    if (!list->identity.is_known)
        status = have_part(parts, list, 0, &slot);
    pthread_mutex_unlock(&parts->lock);
    return status;
}

tundish_status
parts_read(struct parts *parts, struct part_list *list, void *to, size_t bytes, uint64_t offset)
{
    uint32_t part = (uint32_t)(offset / parts->part_bytes);
    size_t got = 0;
    struct slot *slot = NULL;
    tundish_status status;
    int error;

    must(offset % parts->part_bytes + bytes <= parts->part_bytes);
    pthread_mutex_lock(&parts->lock);
    must(part < list->part_count);
    status = have_part(parts, list, part, &slot);
    if (status == TUNDISH_OK)
        slot->readers++;
    pthread_mutex_unlock(&parts->lock);
    if (status != TUNDISH_OK)
        return status;
    error = tnd_read_at(parts->file, to, bytes,
                        (uint64_t)position_of(slot) + offset % parts->part_bytes, &got);
    pthread_mutex_lock(&parts->lock);
    if (--slot->readers == 0)
        pthread_cond_broadcast(&parts->changed);
    pthread_mutex_unlock(&parts->lock);
    if (error != 0 || got < bytes)
        return tnd_fail_errno(error != 0 ? error : EIO, "the file of what was fetched");
    return TUNDISH_OK;
}

void
parts_expect(struct parts *parts, struct part_list *list, uint64_t offset, uint32_t count)
{
    uint64_t part = offset / parts->part_bytes, end = part + count;

    pthread_mutex_lock(&parts->lock);
    /* Of one that nobody has asked for yet, the first part says how many there are. */
    if (!list->identity.is_known) {
        part = 0;
        end = 1;
    }
    if (end > list->part_count)
        end = list->part_count;
    for (; part < end; part++) {
        struct slot *slot;

        if (list->slots[part] != 0)
            continue;
        if (transfers_are_busy(list->remote->transfers))
            break;
        slot = take_slot(parts);
        if (slot == NULL || fetch_part(parts, list, (uint32_t)part, slot, false) != TUNDISH_OK)
            break;
    }
    pthread_mutex_unlock(&parts->lock);
}
