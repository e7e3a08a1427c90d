/* layout.h - every byte that two processes must agree on.
 *
 * Each consumer of a lane maps two kinds of segment, so that the kernel protects batches from stray
 * writes of a training program:
 *
 *   batches | header, published | lines | slots | spec | payloads |   server writes
 *   returns | header, released, released slots |                    consumer writes; `claim`: both
 *
 * A batch too large for the payload room of its lane lies in a segment of its own, which has no
 * header: the server announces its number, size and descriptor over the socket (channel.h) before
 * it publishes the slot.
 *
 * Fixed-width types only. Offsets count from a segment's first byte; there are no pointers. Every
 * TND_LINE has one writer, but for a word that both sides exchange (`claim`). New fields replace
 * `reserved` and raise TND_LAYOUT_MINOR; any other change raises TND_LAYOUT_MAJOR, which both sides
 * must share. layout.c and tests/abi hold the offsets in place.
 *
 * A slot is a fixed header, then `column_capacity` columns, `buffer_capacity` buffers, and in its
 * last TND_SLOT_TEXT bytes the text of an error. A reader first copies it, then checks the copy
 * (shm/view.h), and uses only that copy.
 */
#ifndef TND_SHM_LAYOUT_H
#define TND_SHM_LAYOUT_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdint.h>

#include "core/codec.h"
#include "core/magic.h"

#define TND_LAYOUT_MAJOR 2
#define TND_LAYOUT_MINOR 4

#define TND_LINE 128 /* two cache lines: the prefetcher fetches pairs */
#define TND_BUFFER_ALIGN 64
#define TND_RANK_MAX 8
#define TND_SLOTS_MIN 3
#define TND_SLOTS_MAX 1024
#define TND_COLUMNS_MAX 4096
#define TND_BUFFERS_MAX (TND_COLUMNS_MAX * 4)
#define TND_CONSUMERS_MAX 64 /* at one lane */
#define TND_SLOT_TEXT 1024

/* The number of the lane's own segment. Other segments are announced, numbered from 1. */
#define TND_SEGMENT_LANE 0

/* The kinds of slot. Numbers are never reused. */
enum tnd_slot_kind {
    TND_SLOT_BATCH = 1,
    TND_SLOT_END = 2,           /* the epoch is over */
    TND_SLOT_END_OF_STREAM = 3, /* no epoch follows */
    TND_SLOT_ERROR = 4,         /* status and text, for good */
    TND_SLOT_STOPPED = 5        /* the server drained, for good */
};

/* The contents of a column's buffer. Numbers are never reused. */
enum tnd_role {
    TND_ROLE_VALUES = 1,  /* of the dtype; strings: their bytes */
    TND_ROLE_OFFSETS = 2, /* int64, one more than strings */
    TND_ROLE_SPLITS = 3,  /* int64; one buffer a ragged dimension, outermost first */
    TND_ROLE_INDICES = 4  /* int64, values * rank */
};

struct tnd_batches {
    uint64_t magic;
    uint16_t layout_major;
    uint16_t layout_minor;
    uint32_t slot_count; /* TND_SLOTS_MIN .. TND_SLOTS_MAX */
    uint64_t segment_bytes;
    uint64_t slots_offset;
    uint64_t slot_stride; /* bytes from slot to slot, a multiple of TND_LINE */
    uint32_t column_capacity;
    uint32_t buffer_capacity;
    uint64_t spec_offset; /* spec.h */
    uint64_t spec_bytes;
    uint64_t payload_offset;
    uint64_t payload_bytes;
    uint64_t server_generation; /* random: differs after every server start */
    uint64_t lines_offset;      /* struct tnd_line, `line_count` of them */
    uint32_t line_count;        /* 1 for the lane, and one for each consumer there may be */
    uint32_t delivery;          /* enum tnd_delivery */
    _Atomic uint32_t ready;     /* 1 is stored last, with release */
    /* The number of groups with a cursor here, for trainers that outlive the server: groups that
     * have trainers, and groups that may still come back. Since 1.3; 0 and 0: not known */
    _Atomic uint32_t groups_present, groups_gone;
    uint8_t reserved[4]; /* zero */

    /* Written by the server's threads that publish. */
    alignas(TND_LINE) _Atomic uint64_t published; /* slots filled since the start */
    _Atomic uint32_t signal; /* the futex to sleep on: changes when sleepers are woken */
    _Atomic uint32_t notice; /* messages sent to some consumer of this lane: read the socket */
    _Atomic uint64_t heartbeat_ns; /* CLOCK_MONOTONIC, once a second or so */
    /* TND_NEWEST of the newest entry of line 0 and its slot, stored before `published`. A consumer
     * that waits for this entry finds its slot without another line. Since 2.2; 0: not known */
    _Atomic uint64_t newest;

    /* Written by the server's thread that fills the lane. */
    alignas(TND_LINE) _Atomic uint32_t server_waits; /* not 0: signal the wakeup after a release */
};

/* An entry's number plus one, modulo 2^32, and its slot. A lane never holds two entries with the
 * same number modulo 2^32. */
#define TND_NEWEST(entry, slot) ((uint64_t)(uint32_t)((entry) + 1) << 32 | (uint32_t)(slot))

enum tnd_delivery { TND_DELIVER_LANE = 1, TND_DELIVER_QUEUE = 2 };

/* Which slots, in which order. Line 0 is the lane's: all published slots, for every consumer. Each
 * consumer has another: in a queue it lists the slots granted to it, else only `told` is used. */
struct tnd_line {
    alignas(TND_LINE) _Atomic uint64_t granted; /* entries so far; line 0: see published */
    _Atomic uint32_t told;                      /* TND_TOLD_...: why nothing more comes */
    /* Not 0: in a queue, while this consumer waits and no slot is free. Since 2.3 */
    _Atomic uint32_t starves;
    /* Where this consumer goes on when it finds its claim taken back. Since 2.4 */
    _Atomic uint64_t back_until;
    uint8_t reserved[TND_LINE - 24];
    /* Followed by _Atomic uint32_t slot[slot_count]: entry i is slot[i % slot_count]. */
};

#define TND_TOLD_DETACHED                                                                          \
    1 /* the consumer's cursor is gone; what it holds stays until released                         \
       */

/* Waits are counted by duration, as TND_STATS_BUCKETS (stats.h) has it. */
enum { TND_WAIT_BUCKETS = 26 };

/* One per consumer, made by the server, written by the consumer alone after `magic`. */
struct tnd_returns {
    uint64_t magic;
    uint16_t layout_major;
    uint16_t layout_minor;
    uint32_t slot_count;
    _Atomic uint32_t waits[TND_WAIT_BUCKETS]; /* that are over; modulo 2^32. Since 1.2 */
    uint8_t reserved[8];                      /* zero */

    alignas(TND_LINE) _Atomic uint64_t released; /* every position below has been given back */
    _Atomic uint64_t taken;            /* every position below has been returned by tundish_next */
    _Atomic uint32_t sleeping;         /* not 0: futex-wake `signal` after publishing */
    _Atomic uint32_t polling;          /* not 0: raise its event (ring.h) after publishing */
    _Atomic uint64_t wanted;           /* queue: slots asked for since the start */
    _Atomic uint64_t waiting_since_ns; /* CLOCK_MONOTONIC while tundish_next waits, else 0 */
    _Atomic uint64_t waited_ns;        /* in all waits that are over */
    _Atomic uint64_t passed_from; /* 1 + the position at which tundish_restart was last called: from
                                   * there on the rest of that epoch is given back without having
                                   * been returned; 0: never. Since 1.4 */
    /* A reader whose batches go on to a device, as tundish_tell_device has it. Since 2.1 */
    _Atomic uint32_t device_mode, device_why;
    _Atomic uint64_t device_copied_bytes, device_copy_ns, device_kernel_ns, device_waited_ns;
    /* TND_CLAIM. Since 2.4 */
    _Atomic uint64_t claim;

    /* Followed, on a new line, by _Atomic uint64_t released_slot[slot_count]: 1 + the position last
     * given back in each slot. A queue goes by these, and so does a lane for a detached group. */
};

/* In an evaluation the server may take back batches that lie ready and were not begun: the consumer
 * has a right to every position below this one, and asks for a further one by exchanging the word
 * for the next. The server takes back what is from this position on, up to `back_until`, by
 * exchanging it for the same with the bit TAKEN_BACK. So either of them has a position, also if one
 * dies in between. The consumer then goes on at `back_until`: it exchanges the word again, without
 * the bit, before it looks at any slot. 0: the consumer makes no claims. */
#define TND_CLAIM(position) (((uint64_t)(position) + 1) << 1)
#define TND_CLAIM_TAKEN_BACK UINT64_C(1)

struct tnd_slot {
    uint64_t position; /* in the lane, counting everything */
    uint64_t epoch;
    uint64_t step;
    uint32_t kind;    /* enum tnd_slot_kind */
    int32_t status;   /* ERROR: a tundish_status */
    uint32_t flags;   /* TUNDISH_BATCH_... */
    uint32_t segment; /* where the buffers are */
    int64_t shard;
    uint64_t visits;
    uint64_t place_bytes; /* what a place taken in this epoch carries (channel.h) has this many */
    uint32_t column_count;
    uint32_t buffer_count;
    uint32_t text_bytes;  /* ERROR: without a NUL */
    uint8_t reserved[44]; /* zero */
};

struct tnd_column {
    uint32_t dtype;
    uint32_t kind;
    uint32_t rank;
    uint32_t ragged_rank;
    uint32_t buffer_first; /* its buffers in the slot's table: splits, indices, offsets, values */
    uint32_t buffer_count;
    uint64_t reserved;           /* zero */
    int64_t shape[TND_RANK_MAX]; /* ragged dimensions: -1 */
};

struct tnd_buffer {
    uint64_t offset; /* in the slot's segment, a multiple of TND_BUFFER_ALIGN */
    uint64_t stored_bytes;
    uint64_t decoded_bytes;
    uint16_t role; /* enum tnd_role */
    uint16_t has_checksum;
    uint32_t checksum; /* CRC32C of the stored bytes */
    struct tnd_codec codec;
    uint8_t reserved[16]; /* zero */
};

static inline uint64_t
tnd_line_bytes(uint32_t slot_count)
{
    uint64_t bytes = sizeof(struct tnd_line) + (uint64_t)slot_count * sizeof(uint32_t);

    return (bytes + TND_LINE - 1) / TND_LINE * TND_LINE;
}

static inline uint64_t
tnd_returns_bytes(uint32_t slot_count)
{
    return sizeof(struct tnd_returns) + (uint64_t)slot_count * sizeof(uint64_t);
}

static inline _Atomic uint64_t *
tnd_returns_slots(struct tnd_returns *returns)
{
    return (_Atomic uint64_t *)(void *)(returns + 1);
}

static inline uint64_t
tnd_slot_bytes(uint32_t column_capacity, uint32_t buffer_capacity)
{
    uint64_t bytes = sizeof(struct tnd_slot) +
                     (uint64_t)column_capacity * sizeof(struct tnd_column) +
                     (uint64_t)buffer_capacity * sizeof(struct tnd_buffer) + TND_SLOT_TEXT;

    return (bytes + TND_LINE - 1) / TND_LINE * TND_LINE;
}

#endif
