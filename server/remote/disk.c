/* disk.c - see disk.h. */
#include "remote/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/crc32c.h"
#include "core/hash_farm.h"
#include "core/log.h"
#include "core/memory.h"
#include "core/own_file.h"
#include "core/read_write.h"
#include "remote/disk_private.h"

enum { CHECK_BYTES = 256 << 10, MS_NS = 1000000 };

/* The use of a part is noted after so long, and a small object is right for so long that was right.
 */
#define RECENT_NS INT64_C(3600000000000)

static const char MAGIC[8] = "tndpart";

/* At the end of a part's file, after the address. */
struct trailer {
    char magic[8];
    uint64_t total, bytes; /* of the object, of the part */
    uint32_t part, part_bytes, crc, address_bytes;
    char tag[ANSWER_TAG_BYTES], modified[ANSWER_WORD_BYTES];
    uint32_t reserved, check; /* CRC of all before */
};

static uint32_t
check_of(const struct trailer *trailer)
{
    return tnd_crc32c(0, trailer, offsetof(struct trailer, check));
}

tundish_status
disk_open(const char *folder, uint32_t part_bytes, uint64_t bytes, struct disk **ret_disk)
{
    struct disk *disk;
    int descriptor;
    tundish_status status;

    if (mkdir(folder, 0700) != 0 && errno != EEXIST)
        return tnd_fail_errno(errno, "cannot make the cache %s (remote.cache)", folder);
    descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0)
        return tnd_fail_errno(errno, "cannot open the cache %s (remote.cache)", folder);
    if (faccessat(descriptor, ".", W_OK, 0) != 0) {
        int error = errno;

        close(descriptor);
        return tnd_fail_errno(error, "cannot write to the cache %s (remote.cache)", folder);
    }
    status = tnd_own_folder_check(
        &(struct tnd_own_folder){ descriptor, folder, "the cache", "give remote.cache another" });
    if (status != TUNDISH_OK) {
        close(descriptor);
        return status;
    }
    disk = tnd_zalloc(1, sizeof *disk);
    disk->path = tnd_strdup(folder);
    disk->folder = descriptor;
    disk->part_bytes = part_bytes;
    disk->bytes_max = bytes;
    disk->begun_ns = tnd_clock_wall_ns() / MS_NS * MS_NS;
    disk->added_bytes = bytes; /* look what there is before the first part comes */
    *ret_disk = disk;
    return TUNDISH_OK;
}

void
disk_close(struct disk *disk)
{
    if (disk == NULL)
        return;
    close(disk->folder);
    free(disk->path);
    free(disk);
}

static char *
put_hex(char *to, uint64_t number, unsigned digits)
{
    while (digits-- > 0)
        *to++ = "0123456789abcdef"[number >> (4 * digits) & 15];
    return to;
}

/* Parts lie in 256 folders by the last byte of their hash. */
static void
name_part(const struct disk *disk, const char *address, uint32_t part, char name[40])
{
    uint64_t hash = tnd_hash_farm_cat(tnd_hash_farm(address, strlen(address)), disk->part_bytes);
    unsigned digits = 1;

    while (digits < 8 && part >> (4 * digits) != 0)
        digits++;
    name = put_hex(name, hash, 2);
    *name++ = '/';
    name = put_hex(name, hash, 16);
    *name++ = '-';
    *put_hex(name, part, digits) = '\0';
}

static bool
is_same_object(const struct trailer *trailer, const struct object_identity *identity)
{
    if (trailer->total != identity->bytes)
        return false;
    if (identity->tag[0] != '\0' || trailer->tag[0] != '\0')
        return strcmp(trailer->tag, identity->tag) == 0;
    return identity->modified[0] != '\0' && strcmp(trailer->modified, identity->modified) == 0;
}

/* A part's file. Its end is the address and the trailer. */
struct entry {
    const char *address;
    size_t end_bytes;
    uint32_t part;
    uint64_t file_bytes;
    int64_t time_ns; /* of its last use */
    struct trailer trailer;
};

/* -1: there is none that can be of that part. */
static int
open_entry(const struct disk *disk, const char *address, uint32_t part, struct entry *entry)
{
    struct stat about;
    char name[40];
    int descriptor;

    name_part(disk, address, part, name);
    descriptor = openat(disk->folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (descriptor < 0)
        return -1;
    entry->address = address;
    entry->end_bytes = strlen(address) + sizeof(struct trailer);
    entry->part = part;
    if (fstat(descriptor, &about) != 0 || !tnd_own_file_is_ours(&about) ||
        (uint64_t)about.st_size < entry->end_bytes ||
        (uint64_t)about.st_size > entry->end_bytes + disk->part_bytes) {
        close(descriptor);
        return -1;
    }
    entry->file_bytes = (uint64_t)about.st_size;
    entry->time_ns = about.st_mtim.tv_sec * INT64_C(1000000000) + about.st_mtim.tv_nsec;
    return descriptor;
}

/* Is that the end of the file? All of it may be noise. */
static bool
take_end(const struct disk *disk, struct entry *entry, const uint8_t *end)
{
    size_t address_bytes = entry->end_bytes - sizeof(struct trailer);
    struct trailer *trailer = &entry->trailer;

    memcpy(trailer, end + address_bytes, sizeof *trailer);
    return memcmp(trailer->magic, MAGIC, sizeof MAGIC) == 0 &&
           trailer->check == check_of(trailer) && trailer->part == entry->part &&
           trailer->part_bytes == disk->part_bytes && trailer->address_bytes == address_bytes &&
           trailer->bytes == entry->file_bytes - entry->end_bytes &&
           trailer->tag[ANSWER_TAG_BYTES - 1] == '\0' &&
           trailer->modified[ANSWER_WORD_BYTES - 1] == '\0' &&
           memcmp(end, entry->address, address_bytes) == 0;
}

static int
open_part(const struct disk *disk, const char *address, uint32_t part, struct entry *entry)
{
    int descriptor = open_entry(disk, address, part, entry);
    uint8_t *end;
    size_t got = 0;

    if (descriptor < 0)
        return -1;
    end = tnd_alloc(entry->end_bytes);
    if (tnd_read_at(descriptor, end, entry->end_bytes, entry->file_bytes - entry->end_bytes,
                    &got) != 0 ||
        got < entry->end_bytes || !take_end(disk, entry, end)) {
        close(descriptor);
        descriptor = -1;
    }
    free(end);
    return descriptor;
}

bool
disk_has(const struct disk *disk, const char *address, uint32_t part)
{
    char name[40];

    name_part(disk, address, part, name);
    return faccessat(disk->folder, name, R_OK, 0) == 0;
}

static struct object_identity
identity_of(const struct trailer *trailer)
{
    struct object_identity identity = { .is_known = true, .bytes = trailer->total };

    memcpy(identity.tag, trailer->tag, sizeof trailer->tag);
    memcpy(identity.modified, trailer->modified, sizeof trailer->modified);
    return identity;
}

bool
disk_identity(const struct disk *disk, const char *address, struct object_identity *ret_identity)
{
    struct entry entry;
    int descriptor = open_part(disk, address, 0, &entry);

    if (descriptor < 0)
        return false;
    close(descriptor);
    *ret_identity = identity_of(&entry.trailer);
    return true;
}

/* Do the first bytes of the file match their checksum? */
static bool
is_sound(int descriptor, const struct trailer *trailer)
{
    uint8_t *buffer = tnd_alloc(CHECK_BYTES);
    uint32_t crc = 0;
    uint64_t at = 0;

    while (at < trailer->bytes) {
        uint64_t left = trailer->bytes - at;
        size_t count = left < CHECK_BYTES ? (size_t)left : CHECK_BYTES, got = 0;

        if (tnd_read_at(descriptor, buffer, count, at, &got) != 0 || got < count)
            break;
        crc = tnd_crc32c(crc, buffer, count);
        at += count;
    }
    free(buffer);
    return at == trailer->bytes && crc == trailer->crc;
}

/* The time of the last change is that of the last use. */
static void
touch(int descriptor)
{
    (void)futimens(descriptor, NULL);
}

/* Or, in whole milliseconds, that at which its checksum was last right, for small objects. The
 * kernel gives a file that somebody changes a time that is not. */
static void
touch_sound(int descriptor)
{
    int64_t ms = tnd_clock_wall_ns() / MS_NS;
    struct timespec times[2] = { { .tv_nsec = UTIME_OMIT },
                                 { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * MS_NS } };

    (void)futimens(descriptor, times);
}

static bool
is_recent(const struct entry *entry)
{
    int64_t age_ns = tnd_clock_wall_ns() - entry->time_ns;

    return age_ns >= 0 && age_ns < RECENT_NS;
}

bool
disk_take(const struct disk *disk, const struct disk_wanted *wanted, int *ret_descriptor)
{
    struct entry entry;
    int descriptor = open_part(disk, wanted->address, wanted->part, &entry);

    if (descriptor < 0)
        return false;
    if (!is_same_object(&entry.trailer, wanted->identity) ||
        (!wanted->is_checked && !is_sound(descriptor, &entry.trailer))) {
        close(descriptor);
        return false;
    }
    if (!is_recent(&entry))
        touch(descriptor);
    *ret_descriptor = descriptor;
    return true;
}

/* All of it is in memory. */
static bool
is_small(const struct disk *disk, struct entry *entry, const uint8_t *bytes, int descriptor)
{
    size_t count = (size_t)entry->file_bytes - entry->end_bytes;

    if (!take_end(disk, entry, bytes + count) || entry->trailer.total != count)
        return false;
    if (entry->time_ns % MS_NS == 0 && is_recent(entry))
        return true;
    if (tnd_crc32c(0, bytes, count) != entry->trailer.crc)
        return false;
    touch_sound(descriptor);
    return true;
}

bool
disk_read_small(const struct disk *disk, const char *address, const struct disk_room *room,
                struct disk_small *ret_small)
{
    struct entry entry;
    int descriptor = open_entry(disk, address, 0, &entry);
    bool is_right = false;

    if (descriptor < 0)
        return false;
    /* An object that another run has fetched may have changed since. */
    if (entry.time_ns >= disk->begun_ns) {
        size_t bytes = (size_t)entry.file_bytes, got = 0;
        uint8_t *to = room->take(room->context, bytes);

        is_right = tnd_read_at(descriptor, to, bytes, 0, &got) == 0 && got == bytes &&
                   is_small(disk, &entry, to, descriptor);
        if (is_right)
            *ret_small =
                (struct disk_small){ { to, entry.trailer.total }, identity_of(&entry.trailer) };
    }
    close(descriptor);
    return is_right;
}

bool
disk_is_named(const struct disk *disk, const char *name, int descriptor)
{
    struct stat by_name, opened;

    return fstatat(disk->folder, name, &by_name, AT_SYMLINK_NOFOLLOW) == 0 &&
           fstat(descriptor, &opened) == 0 && by_name.st_dev == opened.st_dev &&
           by_name.st_ino == opened.st_ino;
}

static int
open_new(const struct disk *disk, const char *name)
{
    int flags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW;
    int descriptor = openat(disk->folder, name, flags, 0600);
    char folder[3] = { name[0], name[1], '\0' };

    if (descriptor < 0 && errno == ENOENT &&
        (mkdirat(disk->folder, folder, 0700) == 0 || errno == EEXIST))
        descriptor = openat(disk->folder, name, flags, 0600);
    return descriptor;
}

enum disk_answer
disk_claim(struct disk *disk, const char *address, uint32_t part, struct disk_claim *ret_claim)
{
    struct disk_claim claim;
    struct stat about;
    char name[40];

    if (disk_is_off(disk))
        return DISK_OFF;
    name_part(disk, address, part, name);
    snprintf(claim.name, sizeof claim.name, "%s.new", name);
    claim.descriptor = open_new(disk, claim.name);
    if (claim.descriptor < 0) {
        disk_turn_off(disk, errno);
        return DISK_OFF;
    }
    /* Left by another user, who could write to it after it is kept. */
    if (fstat(claim.descriptor, &about) != 0 || !tnd_own_file_is_ours(&about)) {
        close(claim.descriptor);
        if (unlinkat(disk->folder, claim.name, 0) == 0)
            return DISK_BUSY;
        disk_turn_off(disk, errno);
        return DISK_OFF;
    }
    if (flock(claim.descriptor, LOCK_EX | LOCK_NB) != 0 ||
        !disk_is_named(disk, claim.name, claim.descriptor) || ftruncate(claim.descriptor, 0) != 0) {
        close(claim.descriptor);
        return DISK_BUSY;
    }
    *ret_claim = claim;
    return DISK_YOURS;
}

bool
disk_keep(struct disk *disk, const struct disk_claim *claim, const struct disk_kept *kept)
{
    size_t address_bytes = strlen(kept->address);
    struct trailer trailer = {
        .total = kept->identity.bytes,
        .bytes = kept->bytes,
        .part = kept->part,
        .part_bytes = disk->part_bytes,
        .crc = kept->crc,
        .address_bytes = (uint32_t)address_bytes,
    };
    char name[40];
    int error;

    memcpy(trailer.magic, MAGIC, sizeof MAGIC);
    memcpy(trailer.tag, kept->identity.tag, sizeof trailer.tag);
    memcpy(trailer.modified, kept->identity.modified, sizeof trailer.modified);
    trailer.check = check_of(&trailer);
    /* A version that cannot be told from others is not kept. */
    if (trailer.tag[0] == '\0' && trailer.modified[0] == '\0') {
        disk_leave(disk, claim);
        return false;
    }
    name_part(disk, kept->address, kept->part, name);
    error = tnd_write_at(claim->descriptor, kept->address, address_bytes, kept->bytes);
    if (error == 0)
        error =
            tnd_write_at(claim->descriptor, &trailer, sizeof trailer, kept->bytes + address_bytes);
    touch_sound(claim->descriptor);
    if (error == 0 && renameat(disk->folder, claim->name, disk->folder, name) != 0)
        error = errno;
    flock(claim->descriptor, LOCK_UN);
    if (error != 0) {
        disk_leave(disk, claim);
        disk_turn_off(disk, error);
        return false;
    }
    atomic_fetch_add_explicit(&disk->added_bytes, kept->bytes + address_bytes + sizeof trailer,
                              memory_order_relaxed);
    return true;
}

void
disk_leave(const struct disk *disk, const struct disk_claim *claim)
{
    if (disk_is_named(disk, claim->name, claim->descriptor))
        unlinkat(disk->folder, claim->name, 0);
}

void
disk_put(struct disk *disk, const struct disk_kept *kept, const uint8_t *bytes)
{
    struct disk_kept whole = *kept;
    struct disk_claim claim;
    int error;

    disk_make_room(disk);
    if (disk_claim(disk, kept->address, kept->part, &claim) != DISK_YOURS)
        return;
    whole.crc = tnd_crc32c(0, bytes, (size_t)kept->bytes);
    error = tnd_write_at(claim.descriptor, bytes, (size_t)kept->bytes, 0);
    if (error == 0) {
        (void)disk_keep(disk, &claim, &whole);
    } else {
        disk_leave(disk, &claim);
        disk_turn_off(disk, error);
    }
    close(claim.descriptor);
}

tundish_status
disk_open_unnamed(const struct disk *disk, int *ret_descriptor)
{
    int descriptor = openat(disk->folder, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

    if (descriptor < 0)
        return tnd_fail_errno(errno, "cannot make a file in the cache %s", disk->path);
    *ret_descriptor = descriptor;
    return TUNDISH_OK;
}

bool
disk_is_off(const struct disk *disk)
{
    return atomic_load_explicit(&disk->is_off, memory_order_relaxed) != 0;
}

void
disk_turn_off(struct disk *disk, int error)
{
    if (atomic_exchange(&disk->is_off, 1) != 0)
        return;
    (void)tnd_fail_errno(error, "the cache %s is not written any more", disk->path);
    tnd_log(TND_LOG_WARNING, "remote",
            "%s; parts of files at URLs are kept in memory from now on, as few as possible (free "
            "the disk, or lower remote.cache_bytes, and restart)",
            tnd_error_text());
}
