/* disk.h - parts of objects in a folder that outlives the server, for all servers of the user
 * on the node.
 *
 * A part is a file: its bytes, then the address, then a trailer that says which part of which
 * version of the object it is, with checksums. It is written under another name, on which its
 * writer holds a lock, and renamed when it is whole: a server that is killed leaves a file that
 * nobody reads, and whose lock is gone. The folder and each file are the user's alone
 * (core/own_file.h): who writes a part also writes its checksums. Nothing is synchronized to the
 * disk, since the checksum tells a part that is not whole. The parts that were used longest ago are
 * deleted where there are too many; a reader keeps its descriptor.
 */
#ifndef REMOTE_DISK_H
#define REMOTE_DISK_H

#include <stdatomic.h>

#include "core/bytes.h"
#include "remote/request.h"

struct disk;

/* E_SYSTEM: the folder cannot be made or written, or others may write to it. */
tundish_status disk_open(const char *folder, uint32_t part_bytes, uint64_t bytes,
                         struct disk **ret_disk);

void disk_close(struct disk *disk); /* accepts NULL */

/* Is there a file for that part? */
bool disk_has(const struct disk *disk, const char *address, uint32_t part);

/* The version of the object whose first part lies here. */
bool disk_identity(const struct disk *disk, const char *address,
                   struct object_identity *ret_identity);

/* A part of that version, whole. The caller closes the descriptor, whose first bytes it is.
 * `is_checked`: its checksum was right before. False: it is not there. */
struct disk_wanted {
    const char *address;
    const struct object_identity *identity;
    uint32_t part;
    bool is_checked;
};
bool disk_take(const struct disk *disk, const struct disk_wanted *wanted, int *ret_descriptor);

/* Read a whole single-part object that some server has fetched since this one started: with one
 * read of its file, which is a little larger, into memory from `room`. Checks its checksum unless
 * that was done within the last hour and the file has not changed since. False: it is not there. */
struct disk_room {
    void *(*take)(void *context, size_t bytes); /* never NULL */
    void *context;
};
struct disk_small {
    struct byte_view bytes;
    struct object_identity identity;
};
bool disk_read_small(const struct disk *disk, const char *address, const struct disk_room *room,
                     struct disk_small *ret_small);

/* A part that this process fetches. */
struct disk_claim {
    int descriptor; /* -1: none */
    char name[48];
};

enum disk_answer {
    DISK_YOURS,
    DISK_BUSY, /* another process fetches it; ask again a little later */
    DISK_OFF   /* nothing can be kept */
};
enum disk_answer disk_claim(struct disk *disk, const char *address, uint32_t part,
                            struct disk_claim *ret_claim);

/* The bytes are in the file: others find them from now on. The descriptor stays the caller's.
 * False: they could not be kept, but are there to be read. */
struct disk_kept {
    const char *address;
    struct object_identity identity;
    uint32_t part, crc;
    uint64_t bytes;
};
bool disk_keep(struct disk *disk, const struct disk_claim *claim, const struct disk_kept *kept);

/* Both, for a part that is in memory. */
void disk_put(struct disk *disk, const struct disk_kept *kept, const uint8_t *bytes);

/* The file goes; the descriptor stays the caller's. */
void disk_leave(const struct disk *disk, const struct disk_claim *claim);

/* A file without a name, for what is then put. The caller closes it. */
tundish_status disk_open_unnamed(const struct disk *disk, int *ret_descriptor);

/* The disk is full, or broken: from now on nothing is kept. Says so once. */
void disk_turn_off(struct disk *disk, int error);
bool disk_is_off(const struct disk *disk);

/* Delete parts where there are too many. May take its time. */
void disk_make_room(struct disk *disk);

#endif
