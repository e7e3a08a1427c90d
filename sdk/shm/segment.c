/* segment.c - nameless shared memory: shm_open without a name, or memfd. Every page is allocated at
 * once, because a page that the kernel cannot provide later would end a process with SIGBUS. */
#include "shm/segment.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "core/memory_room.h"
#include "core/must.h"
#include "core/status.h"
#include "shm/channel.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

#define SHM_FOLDER "/dev/shm"
#define NAME_PREFIX "tundish-"
#define SHM_NAME_MAX 64

/* Up to this size the machine's memory is not examined. */
#define ROOM_UNASKED (UINT64_C(256) << 20)

/* Where the mount gives huge pages to those that ask (huge=advise), it gives them to a mapping at
 * its first touch, and posix_fallocate always takes small ones. Nothing depends on it: what is
 * refused here is left to posix_fallocate. */
static void
touch_huge_pages(int descriptor, uint64_t segment_bytes)
{
    void *bytes;

    if (ftruncate(descriptor, (off_t)segment_bytes) != 0)
        return;
    bytes = mmap(NULL, segment_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (bytes == MAP_FAILED)
        return;
    if (madvise(bytes, segment_bytes, MADV_HUGEPAGE) == 0)
        madvise(bytes, segment_bytes, MADV_POPULATE_WRITE);
    munmap(bytes, segment_bytes);
}

/* posix_fallocate returns an errno, and EINTR whenever a signal handler ran. */
static int
allocate(int descriptor, uint64_t segment_bytes, bool huge_pages)
{
    int error;

    must_in_debug(descriptor >= 0 && segment_bytes > 0);
    if (huge_pages)
        touch_huge_pages(descriptor, segment_bytes);
    do
        error = posix_fallocate(descriptor, 0, (off_t)segment_bytes);
    while (error == EINTR);
    return error;
}

static tundish_status
map_for_writing(int descriptor, uint64_t segment_bytes, uint8_t **ret_bytes)
{
    void *bytes = mmap(NULL, segment_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);

    must_in_debug(descriptor >= 0 && segment_bytes > 0);
    if (bytes == MAP_FAILED)
        return tnd_fail_errno(errno, "cannot map %llu bytes of shared memory",
                              (unsigned long long)segment_bytes);
    *ret_bytes = bytes;
    return TUNDISH_OK;
}

uint64_t
tnd_segment_room(bool memfd)
{
    struct statvfs space = { 0 };
    struct tnd_memory_room memory;
    uint64_t room;

    tnd_memory_room(&memory);
    room = memory.bytes;
    if (!memfd && statvfs(SHM_FOLDER, &space) == 0 && space.f_blocks != 0 &&
        (uint64_t)space.f_bavail * space.f_bsize < room)
        room = (uint64_t)space.f_bavail * space.f_bsize;
    return room;
}

bool
tnd_segment_memory_holds(uint64_t count, uint64_t bytes_each, uint64_t limit_bytes,
                         struct tnd_room *ret_room)
{
    struct tnd_room room = { .limit_bytes = limit_bytes };

    if (__builtin_mul_overflow(count, bytes_each, &room.wanted_bytes))
        room.wanted_bytes = UINT64_MAX;
    if (limit_bytes == 0)
        room.limit_bytes = room.wanted_bytes < ROOM_UNASKED ? ROOM_UNASKED : tnd_segment_room(true);
    *ret_room = room;
    return room.wanted_bytes <= room.limit_bytes;
}

static tundish_status
no_memory(uint64_t segment_bytes)
{
    struct tnd_memory_room room;

    tnd_memory_room(&room);
    return tnd_fail(TUNDISH_E_MEMORY,
                    "there is no room for %llu bytes of batches, only for %llu (%s): lower "
                    "deliver.slots or deliver.lane_bytes, or give the server more memory",
                    (unsigned long long)segment_bytes, (unsigned long long)room.bytes, room.why);
}

/* Open a new name twice, for writing and for reading, then remove the name. From then on the kernel
 * frees the memory with the last process that has it, however that process ends. Consumers get the
 * descriptor for reading, through which they cannot write. */
static tundish_status
open_shm(int *ret_write, int *ret_read)
{
    for (unsigned attempt = 0; attempt < 16; attempt++) {
        char name[SHM_NAME_MAX];
        uint64_t random = 0;
        int write_descriptor, read_descriptor, error;

        if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
            return tnd_fail_errno(errno, "cannot draw a name for shared memory");
        snprintf(name, sizeof name, "/" NAME_PREFIX "%ld-%016llx", (long)getpid(),
                 (unsigned long long)random);
        write_descriptor = shm_open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (write_descriptor < 0 && errno == EEXIST)
            continue;
        if (write_descriptor < 0)
            return tnd_fail_errno(errno, "shm_open %s", name);
        read_descriptor = shm_open(name, O_RDONLY | O_CLOEXEC, 0);
        error = errno;
        shm_unlink(name);
        if (read_descriptor < 0) {
            close(write_descriptor);
            return tnd_fail_errno(error, "shm_open %s for reading", name);
        }
        *ret_write = write_descriptor;
        *ret_read = read_descriptor;
        return TUNDISH_OK;
    }
    return tnd_fail(TUNDISH_E_SYSTEM, "found no free name in " SHM_FOLDER);
}

static void
note_shm_too_small(struct tnd_segment *segment, const struct statvfs *space)
{
    snprintf(segment->note, sizeof segment->note,
             SHM_FOLDER " has %llu of %llu bytes free, %llu are needed: using memfd",
             (unsigned long long)space->f_bavail * space->f_bsize,
             (unsigned long long)space->f_blocks * space->f_bsize,
             (unsigned long long)segment->segment_bytes);
}

/* E_TIMEOUT: /dev/shm cannot hold it, segment->note says why; anything else is final. */
static tundish_status
create_shm(bool huge_pages, struct tnd_segment *segment)
{
    struct statvfs space = { 0 };
    int write_descriptor = -1;
    tundish_status status;

    must_in_debug(segment->bytes == NULL && segment->read_descriptor < 0);
    /* A mount without a size has no blocks. */
    if (statvfs(SHM_FOLDER, &space) == 0 && space.f_blocks != 0 &&
        segment->segment_bytes > (uint64_t)space.f_bavail * space.f_bsize) {
        note_shm_too_small(segment, &space);
        return TUNDISH_E_TIMEOUT;
    }
    status = open_shm(&write_descriptor, &segment->read_descriptor);
    if (status != TUNDISH_OK) {
        snprintf(segment->note, sizeof segment->note, "%s", tnd_error_text());
        return TUNDISH_E_TIMEOUT;
    }
    if (allocate(write_descriptor, segment->segment_bytes, huge_pages) == 0) {
        status = map_for_writing(write_descriptor, segment->segment_bytes, &segment->bytes);
    } else {
        statvfs(SHM_FOLDER, &space);
        note_shm_too_small(segment, &space);
        tnd_channel_close_descriptor(&segment->read_descriptor);
        status = TUNDISH_E_TIMEOUT;
    }
    tnd_channel_close_descriptor(&write_descriptor);
    return status;
}

static int
open_memfd(const char *name)
{
    int descriptor = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);

    /* Kernels before 6.3 do not know MFD_NOEXEC_SEAL. */
    if (descriptor < 0 && errno == EINVAL)
        descriptor = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    return descriptor;
}

static tundish_status
create_memfd(const char *name, uint64_t segment_bytes, int seals, bool huge_pages,
             struct tnd_segment *segment)
{
    tundish_status status;

    must_in_debug(segment->bytes == NULL && segment->read_descriptor < 0);
    segment->is_memfd = true;
    segment->read_descriptor = open_memfd(name);
    if (segment->read_descriptor < 0)
        return tnd_fail_errno(errno, "memfd_create");
    if (allocate(segment->read_descriptor, segment_bytes, huge_pages) != 0)
        return no_memory(segment_bytes);
    status = map_for_writing(segment->read_descriptor, segment_bytes, &segment->bytes);
    if (status != TUNDISH_OK)
        return status;
    /* After the mapping: FUTURE_WRITE keeps our mapping writable and refuses every later one. */
    if (fcntl(segment->read_descriptor, F_ADD_SEALS, seals) != 0)
        return tnd_fail_errno(errno, "cannot seal memfd");
    return TUNDISH_OK;
}

tundish_status
tnd_segment_create(uint64_t segment_bytes, bool memfd, bool huge_pages,
                   struct tnd_segment *ret_segment)
{
    struct tnd_segment segment = TND_SEGMENT_NONE;
    tundish_status status = TUNDISH_E_TIMEOUT;

    must_in_debug(segment_bytes > 0);
    segment.segment_bytes = segment_bytes;
    if (segment_bytes > tnd_segment_room(true))
        return no_memory(segment_bytes);
    if (!memfd)
        status = create_shm(huge_pages, &segment);
    if (status == TUNDISH_E_TIMEOUT)
        status = create_memfd("tundish-batches", segment_bytes,
                              F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL,
                              huge_pages, &segment);
    if (status != TUNDISH_OK) {
        tnd_segment_close(&segment);
        return status;
    }
    *ret_segment = segment;
    return TUNDISH_OK;
}

tundish_status
tnd_segment_create_returns(uint64_t segment_bytes, struct tnd_segment *ret_segment)
{
    struct tnd_segment segment = TND_SEGMENT_NONE;
    tundish_status status;

    segment.segment_bytes = segment_bytes;
    status = create_memfd("tundish-returns", segment_bytes,
                          F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL, false, &segment);
    if (status != TUNDISH_OK) {
        tnd_segment_close(&segment);
        return status;
    }
    *ret_segment = segment;
    return TUNDISH_OK;
}

void
tnd_segment_close(struct tnd_segment *segment)
{
    if (segment->bytes == NULL && segment->segment_bytes == 0)
        return;
    tnd_segment_unmap(segment->bytes, segment->segment_bytes);
    tnd_channel_close_descriptor(&segment->read_descriptor);
    *segment = (struct tnd_segment)TND_SEGMENT_NONE;
}

tundish_status
tnd_segment_map(int descriptor, uint64_t segment_bytes, bool writable, void **ret_bytes)
{
    struct stat status;
    void *bytes;

    if (fstat(descriptor, &status) != 0)
        return tnd_fail_errno(errno, "fstat of a segment");
    /* The exact size: a smaller file would raise SIGBUS where its pages end. */
    if (!S_ISREG(status.st_mode) || segment_bytes == 0 || status.st_size < 0 ||
        (uint64_t)status.st_size != segment_bytes)
        return tnd_fail(TUNDISH_E_CORRUPT,
                        "the server sent a segment of %lld bytes where it announced %llu",
                        (long long)status.st_size, (unsigned long long)segment_bytes);
    bytes = mmap(NULL, segment_bytes, writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED,
                 descriptor, 0);
    if (bytes == MAP_FAILED)
        return tnd_fail_errno(errno, "cannot map a segment of %llu bytes",
                              (unsigned long long)segment_bytes);
    *ret_bytes = bytes;
    return TUNDISH_OK;
}

void
tnd_segment_unmap(void *bytes, uint64_t segment_bytes)
{
    must_in_debug(bytes == NULL || segment_bytes > 0);
    if (bytes != NULL)
        munmap(bytes, segment_bytes);
}

/* Is it "tundish-PID-..." of this user, and no process has that number? */
static bool
is_stale(int folder, const char *name)
{
    struct stat status;
    char *end;
    long pid;

    if (strncmp(name, NAME_PREFIX, strlen(NAME_PREFIX)) != 0)
        return false;
    pid = strtol(name + strlen(NAME_PREFIX), &end, 10);
    if (*end != '-' || pid <= 0 || kill((pid_t)pid, 0) == 0 || errno != ESRCH)
        return false;
    return fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(status.st_mode) &&
           status.st_uid == geteuid();
}

unsigned
tnd_segment_sweep(void)
{
    DIR *folder = opendir(SHM_FOLDER);
    struct dirent *entry;
    unsigned removed = 0;

    if (folder == NULL)
        return 0;
    while ((entry = readdir(folder)) != NULL)
        if (is_stale(dirfd(folder), entry->d_name) &&
            unlinkat(dirfd(folder), entry->d_name, 0) == 0)
            removed++;
    closedir(folder);
    return removed;
}
