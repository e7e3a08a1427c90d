/* parts_private.h - slots and their parts, for parts*.c. */
#ifndef REMOTE_PARTS_PRIVATE_H
#define REMOTE_PARTS_PRIVATE_H

#include <pthread.h>

#include "remote/disk.h"
#include "remote/parts.h"

enum { PARTS_MAX = 1 << 30 };

/* In the place of a slot: the part lies on the disk, and its checksum was once right. */
#define ON_DISK UINT32_MAX
#define CHECKED_ON_DISK (UINT32_MAX - 1)

enum part_slot_state { SLOT_EMPTY, SLOT_COMING, SLOT_READY, SLOT_FAILED };

struct part_slot {
    struct parts *parts;
    struct part_list *list; /* whose part; NULL: it was ended while the part came */
    uint32_t part;
    enum part_slot_state state;
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
    struct part_slot *slots;
};

/* The work on a part. */
struct task {
    struct part_slot *slot;
    struct part_list *list;
    struct object_identity identity;
    uint32_t part;
    bool is_urgent;  /* somebody waits */
    bool is_checked; /* its checksum on the disk was right before */
    bool is_late;    /* wait for no other process any more */
};

/* The lock is held, here and below unless it says otherwise. */
void part_slot_empty(struct part_slot *slot);

/* Where the slot's bytes lie. They do not move while the part is coming or read: without the lock.
 */
int part_slot_file(const struct part_slot *slot);
uint64_t part_slot_position(const struct part_slot *slot);

/* The first part tells how many there are. */
void parts_learn(const struct parts *parts, struct part_list *list,
                 const struct object_identity *identity);

/* Give the lock up for so long, or until something has changed. STOPPED: the session ends. */
tundish_status parts_wait(struct parts *parts, long ns);

/* parts_take.c: from the disk, or by a transfer that goes on afterwards. The lock is given up
 * meanwhile: finding credentials may take its time. */
tundish_status parts_take(struct parts *parts, struct task *task);

/* parts_fetch.c: begin a transfer, to which the slot then belongs. Without the lock. */
tundish_status parts_fetch(struct parts *parts, const struct task *task);

#endif
