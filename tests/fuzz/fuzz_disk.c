/* fuzz_disk.c - any bytes as the file of a part in the cache on disk, with a trailer whose numbers
 * and checksums are made right, so that what is behind them is reached. */
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/bytes.h"
#include "core/crc32c.h"
#include "core/must.h"
#include "remote/disk.h"

#define ADDRESS "http://store/bucket/a"

/* Where the trailer's parts lie in it. */
enum {
    PART_BYTES = 64 << 10,
    BYTES_AT = 16,
    PART_BYTES_AT = 28,
    CRC_AT = 32,
    ADDRESS_BYTES_AT = 36,
    CHECK_AT = 380,
    TRAILER_BYTES = 384,
    ADDRESS_BYTES = sizeof ADDRESS - 1,
    END_BYTES = ADDRESS_BYTES + TRAILER_BYTES
};

static struct disk *disk;
static char path[512];
static uint8_t room[PART_BYTES + END_BYTES];

/* One that the disk itself keeps tells the name of the file. */
static void
set_up(void)
{
    const struct disk_kept kept = { .address = ADDRESS,
                                    .identity = { .is_known = true, .bytes = 1, .tag = "t" },
                                    .bytes = 1 };
    char folder[64] = "/tmp/fuzz-disk-XXXXXX", pattern[80];
    glob_t found;

    must(mkdtemp(folder) != NULL);
    must(disk_open(folder, PART_BYTES, 1 << 30, &disk) == TUNDISH_OK);
    disk_put(disk, &kept, (const uint8_t *)"x");
    snprintf(pattern, sizeof pattern, "%s/*/*", folder);
    must(glob(pattern, 0, NULL, &found) == 0 && found.gl_pathc == 1);
    snprintf(path, sizeof path, "%s", found.gl_pathv[0]);
    globfree(&found);
}

/* The input's end is the trailer; of every other one the part's checksum is left as it is. */
static size_t
make_file(const uint8_t *data, size_t bytes, uint8_t *file)
{
    size_t body_bytes = bytes - TRAILER_BYTES;
    uint8_t *trailer = file + body_bytes + ADDRESS_BYTES;
    const uint32_t part_bytes = PART_BYTES, address_bytes = ADDRESS_BYTES;
    uint64_t body = body_bytes;
    uint32_t crc = tnd_crc32c(0, data, body_bytes);

    memcpy(file, data, body_bytes);
    memcpy(file + body_bytes, ADDRESS, ADDRESS_BYTES);
    memcpy(trailer, data + body_bytes, TRAILER_BYTES);
    memcpy(trailer, "tndpart", 8);
    memcpy(trailer + BYTES_AT, &body, sizeof body);
    memcpy(trailer + PART_BYTES_AT, &part_bytes, sizeof part_bytes);
    memcpy(trailer + ADDRESS_BYTES_AT, &address_bytes, sizeof address_bytes);
    if (bytes % 2 == 0)
        memcpy(trailer + CRC_AT, &crc, sizeof crc);
    crc = tnd_crc32c(0, trailer, CHECK_AT);
    memcpy(trailer + CHECK_AT, &crc, sizeof crc);
    return body_bytes + END_BYTES;
}

static void *
take_room(void *context, size_t bytes)
{
    must(bytes <= sizeof room);
    return context;
}

static void
try_file(size_t file_bytes)
{
    const struct disk_room small = { take_room, room };
    struct object_identity identity;
    struct disk_wanted wanted = { .address = ADDRESS, .identity = &identity };
    struct disk_small found;
    int descriptor = -1;

    if (disk_read_small(disk, ADDRESS, &small, &found))
        must(found.bytes.size == file_bytes - END_BYTES);
    if (!disk_identity(disk, ADDRESS, &identity))
        return;
    must(strlen(identity.tag) < sizeof identity.tag);
    must(strlen(identity.modified) < sizeof identity.modified);
    if (disk_take(disk, &wanted, &descriptor))
        close(descriptor);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static uint8_t file[PART_BYTES + END_BYTES];
    size_t file_bytes = bytes;
    int descriptor;

    if (bytes > PART_BYTES)
        return 0;
    if (disk == NULL)
        set_up();
    if (bytes >= TRAILER_BYTES)
        file_bytes = make_file(data, bytes, file);
    else if (bytes > 0)
        memcpy(file, data, bytes);
    descriptor = open(path, O_RDWR | O_TRUNC | O_CLOEXEC);
    must(descriptor >= 0);
    must(write(descriptor, file, file_bytes) == (ssize_t)file_bytes);
    close(descriptor);
    try_file(file_bytes);
    return 0;
}
