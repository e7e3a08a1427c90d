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
#include "core/crc32c.h"
#include "core/memory.h"
#include "core/must.h"
#include "core/read_at.h"
#include "remote/disk.h"

enum { WAIT_NS = 100000000, BUSY_WAIT_NS = 5000000, SLOTS_MAX = 1 << 16 };

/* With a disk each slot is an open file. */
enum { DISK_SLOTS = 512 };

/* In the place of a slot: the part lies on the disk, and its checksum was once right. */
static const uint32_t ON_DISK = UINT32_MAX;
static const uint32_t CHECKED_ON_DISK = UINT32_MAX - 1;

enum { PARTS_MAX = 1 << 30 };
#define TELL_NS INT64_C(2000000000)

/* A process that fetches a part for so long may be stopped. */
#define LATE_NS INT64_C(30000000000)

enum slot_state { SLOT_EMPTY, SLOT_COMING, SLOT_READY, SLOT_FAILED };

struct slot {
    struct parts *parts;
    struct part_list *list; /* whose part; NULL: it was ended while the part came */
    uint32_t part;
    enum slot_state state;
    uint32_t readers; /* that copy from it */
    uint64_t used_at;
    uint64_t come_bytes;     /* COMING: the first bytes, which can be read */
    uint64_t awaited;        /* ... how many somebody waits for; 0: nobody does */
    struct disk_claim claim; /* its file, if it has its own; named while it comes */
    uint32_t crc;
    uint64_t crc_bytes;   /* of the first bytes; UINT64_MAX: they did not come in order */
    int64_t failed_at_ns; /* FAILED */
    tundish_status status;
    char *text;
};

struct parts {
    struct disk *disk; /* or NULL */
    int file;
    uint32_t part_bytes, slot_count, least_count;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t clock;
    struct slot *slots;
};

/* What does not find room on the disk is kept in memory. */
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
    pthread_condattr_t attributes;
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
    struct remote_site site = remote_site_of(list->remote);

    (void)parts;
    list->address = remote_url_address(list->url, &site);
    list->part_count = 1;
    list->slots = tnd_zalloc(1, sizeof *list->slots);
}

static void
empty_slot(struct slot *slot)
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

static struct slot *
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
        struct slot *slot = slot_of(parts, list, i);

        if (slot != NULL && slot->state == SLOT_COMING)
            slot->list = NULL;
        else if (slot != NULL)
            empty_slot(slot);
    }
    pthread_mutex_unlock(&parts->lock);
    free(list->slots);
    free(list->address);
    list->slots = NULL;
    list->address = NULL;
}

/* An empty slot, else the one that was used longest ago. NULL: all are coming or being read. */
static struct slot *
take_slot(struct parts *parts)
{
    struct slot *oldest = NULL;
    bool is_in_memory = parts->disk != NULL && disk_is_off(parts->disk);
    uint32_t count = is_in_memory ? parts->least_count : parts->slot_count;

    for (uint32_t i = 0; i < count; i++) {
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

static int
file_of(const struct slot *slot)
{
    return slot->claim.descriptor >= 0 ? slot->claim.descriptor : slot->parts->file;
}

static uint64_t
position_of(const struct slot *slot)
{
    return slot->claim.descriptor >= 0
               ? 0
               : (uint64_t)(slot - slot->parts->slots) * slot->parts->part_bytes;
}

static int
write_bytes(const struct slot *slot, uint64_t offset, const void *bytes, size_t count)
{
    size_t done = 0;

    while (done < count) {
        ssize_t put = pwrite(file_of(slot), (const uint8_t *)bytes + done, count - done,
                             (off_t)(position_of(slot) + offset + done));

        if (put < 0 && errno != EINTR)
            return errno;
        done += put < 0 ? 0 : (size_t)put;
    }
    return 0;
}

/* The part is about to move: nobody reads it from here on. */
static void
wait_for_readers(struct slot *slot)
{
    pthread_mutex_lock(&slot->parts->lock);
    slot->come_bytes = 0;
    while (slot->readers > 0)
        pthread_cond_wait(&slot->parts->changed, &slot->parts->lock);
    pthread_mutex_unlock(&slot->parts->lock);
}

/* The disk is full: what has come of the part goes on to the memory, where the rest follows. */
static int
leave_disk(struct slot *slot, uint64_t come_bytes, int error)
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
add_to_checksum(struct slot *slot, uint64_t offset, const void *bytes, size_t count)
{
    if (slot->crc_bytes != offset) {
        slot->crc_bytes = UINT64_MAX;
        return;
    }
    slot->crc = tnd_crc32c(slot->crc, bytes, count);
    slot->crc_bytes += count;
}

static void
note_come(struct slot *slot, uint64_t come_bytes)
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
    struct slot *slot = context;
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

/* The first part tells how many there are. */
static void
learn_identity(const struct parts *parts, struct part_list *list,
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

static void
begin_to_come(void *context, const struct answer *answer)
{
    struct slot *slot = context;
    struct object_identity identity = request_identity(answer);

    pthread_mutex_lock(&slot->parts->lock);
    if (slot->list != NULL)
        learn_identity(slot->parts, slot->list, &identity);
    pthread_cond_broadcast(&slot->parts->changed);
    pthread_mutex_unlock(&slot->parts->lock);
}

/* A part that has come into a file of the disk is whole: keep it there. Without a name it is still
 * there to be read. */
static void
keep_part(struct slot *slot, tundish_status status, const struct answer *answer)
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

static void
end_part(void *context, tundish_status status, const struct answer *answer)
{
    struct slot *slot = context;
    struct parts *parts = slot->parts;

    pthread_mutex_lock(&parts->lock);
    slot->used_at = ++parts->clock;
    if (slot->claim.descriptor >= 0)
        keep_part(slot, status, answer);
    if (slot->list == NULL) {
        empty_slot(slot);
    } else if (status == TUNDISH_OK && answer->total / parts->part_bytes < PARTS_MAX) {
        struct object_identity identity = request_identity(answer);

        learn_identity(parts, slot->list, &identity);
        slot->list->come_count++;
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

static tundish_status
wait_a_while(struct parts *parts, long ns)
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

/* What is to be done about a part. */
struct task {
    struct slot *slot;
    struct part_list *list;
    struct object_identity identity;
    uint32_t part;
    bool is_urgent;  /* somebody waits */
    bool is_checked; /* its checksum on the disk was right before */
    bool is_late;    /* wait for no other process any more */
};

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

static tundish_status
ask_for(struct parts *parts, const struct task *task)
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

/* With the lock held, which is given up meanwhile: finding credentials may take its time. */
static tundish_status
begin_part(struct parts *parts, struct task *task)
{
    struct slot *slot = task->slot;
    enum step step = STEP_FETCH;
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
    /* From here on the slot is the transfers'. */
    if (status == TUNDISH_OK && step == STEP_FETCH)
        status = ask_for(parts, task);
    pthread_mutex_lock(&parts->lock);
    if (status == TUNDISH_OK && task->identity.is_known)
        learn_identity(parts, task->list, &task->identity);
    if (status == TUNDISH_OK && step == STEP_READY) {
        have_from_disk(parts, task);
    } else if (status != TUNDISH_OK || step == STEP_LATER) {
        empty_slot(slot);
    }
    pthread_cond_broadcast(&parts->changed);
    if (status == TUNDISH_OK && step == STEP_LATER && task->is_urgent)
        status = wait_a_while(parts, BUSY_WAIT_NS);
    return status;
}

/* A part, as far as it is wanted: its first bytes can be read while the others come. */
struct wanted_part {
    struct part_list *list;
    uint32_t part;
    uint64_t bytes; /* 0: none, but the object's identity */
};

static bool
has_come(struct slot *slot, const struct wanted_part *wanted)
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
look_for_part(struct parts *parts, const struct wanted_part *wanted, struct slot **ret_slot)
{
    struct slot *slot = slot_of(parts, wanted->list, wanted->part);

    *ret_slot = NULL;
    if (slot != NULL && slot->state == SLOT_FAILED) {
        if (tnd_clock_ns() - slot->failed_at_ns < TELL_NS)
            return tnd_fail(slot->status, "%s", slot->text);
        /* A reader that comes later tries again. */
        if (slot->readers == 0)
            empty_slot(slot);
    } else if (slot != NULL && has_come(slot, wanted)) {
        slot->used_at = ++parts->clock;
        *ret_slot = slot;
    }
    return TUNDISH_OK;
}

/* With the lock held: wait until the part is there. */
static tundish_status
wait_for_part(struct parts *parts, const struct wanted_part *wanted, struct slot **ret_slot)
{
    struct part_list *list = wanted->list;
    struct store_wait wait;
    tundish_status status = TUNDISH_OK;

    store_wait_begin(list->store, &wait, list->url->name);
    while (status == TUNDISH_OK && *ret_slot == NULL) {
        struct task task = { .list = list, .part = wanted->part, .is_urgent = true };

        task.slot = slot_of(parts, list, wanted->part) == NULL ? take_slot(parts) : NULL;
        task.is_late = tnd_clock_ns() - wait.since_ns > LATE_NS;
        status = task.slot != NULL ? begin_part(parts, &task) : wait_a_while(parts, WAIT_NS);
        if (status == TUNDISH_OK)
            status = look_for_part(parts, wanted, ret_slot);
    }
    store_wait_end(list->store, &wait);
    return status;
}

static tundish_status
have_part(struct parts *parts, const struct wanted_part *wanted, struct slot **ret_slot)
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
    struct slot *slot;
    tundish_status status = TUNDISH_OK;

    pthread_mutex_lock(&parts->lock);
    if (!list->identity.is_known)
        status = have_part(parts, &(struct wanted_part){ .list = list }, &slot);
    pthread_mutex_unlock(&parts->lock);
    return status;
}

tundish_status
parts_read(struct parts *parts, struct part_list *list, void *to, size_t bytes, uint64_t offset)
{
    uint64_t from = offset % parts->part_bytes;
    const struct wanted_part wanted = { list, (uint32_t)(offset / parts->part_bytes),
                                        from + bytes };
    uint64_t position = 0;
    size_t got = 0;
    struct slot *slot = NULL;
    tundish_status status;
    int error, file = -1;

    must(from + bytes <= parts->part_bytes);
    pthread_mutex_lock(&parts->lock);
    must(wanted.part < list->part_count);
    status = have_part(parts, &wanted, &slot);
    if (status == TUNDISH_OK) {
        slot->readers++;
        file = file_of(slot);
        position = position_of(slot);
    }
    pthread_mutex_unlock(&parts->lock);
    if (status != TUNDISH_OK)
        return status;
    error = tnd_read_at(file, to, bytes, position + from, &got);
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
    const struct slot *slot = slot_of(parts, list, part);

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
    /* Of one that nobody has looked at, the first part says how large it is. */
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
    /* Of one that nobody has asked for yet, the first part says how many there are. */
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
        if (task.slot == NULL || begin_part(parts, &task) != TUNDISH_OK)
            break;
    }
    pthread_mutex_unlock(&parts->lock);
}
