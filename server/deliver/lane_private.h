/* lane_private.h - the internals of a lane, for lane*.c. */
#ifndef DELIVER_LANE_PRIVATE_H
#define DELIVER_LANE_PRIVATE_H

#include <pthread.h>
#include <sys/types.h>

#include "core/clock.h"
#include "core/lock.h"
#include "deliver/arena.h"
#include "deliver/delivery.h"
#include "deliver/lane.h"
#include "deliver/lane_reader.h"
#include "deliver/wakeup_lanes.h"
#include "shm/ring.h"
#include "shm/segment.h"
#include "shm/spec.h"

/* The states of a slot, in this order. PINNED may be skipped. */
enum slot_state {
    SLOT_FREE,
    SLOT_RESERVED,  /* being filled */
    SLOT_SEALED,    /* filled; not every lane has it yet */
    SLOT_READY,     /* every lane has it; a lower position is not ready */
    SLOT_PUBLISHED, /* some group has yet to release it */
    SLOT_PINNED     /* only trainers that were cut off still hold it */
};

enum { NOBODY = -1 };

/* In index_of: no slot is reserved for this position. */
#define LANE_NO_SLOT UINT32_MAX

/* The server's own book of a slot: nothing of it is read back from shared memory. */
struct lane_slot {
    enum slot_state state;
    enum tnd_slot_kind kind;
    uint64_t position;
    uint64_t epoch, step;
    bool in_arena;
    uint64_t arena_offset;
    struct own_segment *own; /* or NULL */
    int holder;              /* queue: the line it is granted to, or NOBODY */
    uint64_t seen;           /* queue, not a BATCH: bit i: granted to line i + 1 */
    uint64_t visits;
    bool passed;    /* queue: no reader is given it, see lane_pass */
    bool was_given; /* queue: to some reader, which may be gone */
};

/* A segment for one batch. Kept for the next one that fits. */
struct own_segment {
    struct tnd_segment memory;
    uint32_t id;
    bool busy;
};

struct lane_reader {
    struct lane *lane;
    uint32_t line;
    bool cut_off;
    struct connection *connection; /* NULL: no trainer is attached */
    struct tnd_segment returns;    /* its page, while a trainer is attached */
    int event;                     /* we write: something is published */
    int wakeup;                    /* it writes: something is released */
    uint64_t released, taken;
    uint64_t taken_in_all;          /* not a position: how many */
    uint64_t back_from, back_until; /* what was last taken back: see lane_take_back */
    struct lane_until passes;       /* while no trainer takes anything; (0, 0): nothing */
    struct lane_tie tie;
    uint64_t waiting_since_ns;            /* as last seen */
    uint64_t waited_ns, waited_before_ns; /* in all; by trainers that are gone */
    uint64_t waits[TND_WAIT_BUCKETS];
    uint32_t page_waits[TND_WAIT_BUCKETS]; /* of those, as the page last had them */
    uint64_t granted;                      /* queue */
    const uint64_t *given; /* its trainer may take no more: see delivery_ops.open_reader */
    uint64_t begins_at;    /* queue, until it is granted one: ends before this are not for it */
};

struct place_size {
    uint64_t epoch, bytes;
};

struct lane {
    struct lane_config config;
    const struct delivery_ops *delivery;
    char *name;
    struct tnd_spec spec;
    struct tnd_segment segment;
    int memory_node; /* that the segments were moved to, or -1; see lane_lie_near */
    struct tnd_batches *batches;
    uint32_t column_capacity, buffer_capacity;
    uint64_t slots_offset, slot_stride, lines_offset, payload_offset;

    struct tnd_lock lock; /* of all below; never held while filling a batch */
    struct arena arena;
    struct lane_slot *slots;
    uint32_t *index_of; /* position % slots -> slot, for those not yet published */
    uint64_t published, released;
    uint64_t passed_from;                           /* as in lane_stats */
    uint64_t next_epoch, next_step;                 /* what follows the last published */
    uint32_t reserved_count;                        /* RESERVED, SEALED or READY */
    uint32_t visible_count;                         /* PUBLISHED or PINNED */
    struct lane_reader *readers[TND_CONSUMERS_MAX]; /* by line - 1 */
    uint32_t reader_limit;                          /* none from here on has ever been used */
    struct own_segment **own;
    uint32_t own_count, own_id;
    uint64_t own_bytes, own_total;
    uint64_t refused_position; /* for which there was no memory last */
    struct lane_encoded encoded[LANE_ENCODINGS];
    bool grants_no_more;    /* a queue: see lane_note_ending */
    uint64_t visited_count; /* a queue: see lane_set_visited */
    uint8_t visited[TND_SLOTS_MAX / 8];
    struct place_size *places;
    uint32_t place_next;
    uint64_t progress, progress_seen;
    bool has_new_wait; /* some trainer began to wait since the last look */
};

static inline struct tnd_slot *
lane_slot_memory(struct lane *lane, uint32_t index)
{
    must_in_debug(index < lane->config.slots);
    return (struct tnd_slot *)(void *)(lane->segment.bytes + lane->slots_offset +
                                       index * lane->slot_stride);
}

static inline struct tnd_line *
lane_line(struct lane *lane, uint32_t line)
{
    must_in_debug(line <= TND_CONSUMERS_MAX);
    return (struct tnd_line *)(void *)(lane->segment.bytes + lane->lines_offset +
                                       line * tnd_line_bytes(lane->config.slots));
}

static inline _Atomic uint32_t *
lane_line_slots(struct lane *lane, uint32_t line)
{
    return (_Atomic uint32_t *)(void *)(lane_line(lane, line) + 1);
}

/* How long its trainer has waited by its own account; -1: it does not wait, or no trainer is
 * attached. */
static inline int64_t
lane_reader_waits_ns(const struct lane_reader *reader)
{
    uint64_t now_ns = (uint64_t)tnd_clock_ns();

    if (reader->connection == NULL || reader->waiting_since_ns == 0)
        return -1;
    return reader->waiting_since_ns < now_ns ? (int64_t)(now_ns - reader->waiting_since_ns) : 0;
}

/* All waits, this one included. */
static inline uint64_t
lane_reader_waited_ns(const struct lane_reader *reader)
{
    int64_t waits_ns = lane_reader_waits_ns(reader);

    return reader->waited_ns + (waits_ns > 0 ? (uint64_t)waits_ns : 0);
}

static inline struct tnd_returns *
lane_reader_page(const struct lane_reader *reader)
{
    return (struct tnd_returns *)(void *)reader->returns.bytes;
}

/* Was this position taken back from the trainer? */
static inline bool
lane_reader_lost(const struct lane_reader *reader, uint64_t position)
{
    return position >= reader->back_from && position < reader->back_until;
}

static inline uint64_t
lane_round_up(uint64_t value, uint64_t unit)
{
    return (value + unit - 1) / unit * unit;
}

static inline bool
slot_has_payload(const struct slot *slot)
{
    return slot->kind == TND_SLOT_BATCH && !slot->passed;
}

/* The decoded size of a filled buffer. */
static inline uint64_t
lane_decoded_bytes(const struct slot_buffer *buffer)
{
    return buffer->codec.number == TND_CODEC_RAW ? buffer->stored_bytes : buffer->decoded_bytes;
}

/* Add a filled slot's buffers to what its codecs have carried. The lock is held. */
void lane_count_encoded(struct lane *lane, const struct slot *slot);

/* Read its page and clamp each value to its valid range. The lock is held, here and below. */
void lane_reader_read(struct lane *lane, struct lane_reader *reader);

/* Is there something that its trainer, which is still to come, has had already? */
bool lane_reader_passes(const struct lane_reader *reader);

/* Has the reader's trainer given this slot back, by its own account? */
bool lane_reader_has_returned(const struct lane_reader *reader, uint32_t index, uint64_t position);

/* Add what the page counted since the last time to the reader's waits. */
void lane_reader_count_waits(struct lane_reader *reader);

/* Would lane_reserve find a slot for the next position to publish? */
bool lane_can_publish(const struct lane *lane);

bool lane_look_at(const struct lane *lane, uint64_t position, struct lane_look *ret_look);

/* Read every page and free the slots that all readers have released. The lock is held, here and
 * below. */
void lane_collect(struct lane *lane);

/* Grant published slots to a queue's trainers. True: some sleep, and tnd_ring_wake, which needs no
 * lock, wakes them. */
bool lane_has_sleeper(struct lane *lane);

/* The same, waking them at once. */
void lane_wake(struct lane *lane);

/* How many trainers of this lane wait for a batch, and whether all of them do. If all wait, no slot
 * will be released until the next position is published. */
uint32_t lane_count_waiting(const struct lane *lane, bool *ret_all);

void lane_free_slot(struct lane *lane, uint32_t index);
void lane_free_visible(struct lane *lane, uint32_t index);

/* A segment for one batch: a free one that fits, or a new one, which is announced to all trainers.
 * E_MEMORY where the limit or the kernel leaves no memory. */
tundish_status lane_own_take(struct lane *lane, uint64_t bytes, struct own_segment **ret_own);
/* Would the lane, with such a segment in use, be within its limit? */
bool lane_own_is_growth(const struct lane *lane, uint64_t bytes);
uint64_t lane_own_all_bytes(const struct lane *lane); /* free ones, too */
void lane_own_put(struct lane *lane, struct own_segment *own);
void lane_own_announce(struct lane *lane,
                       struct connection *connection); /* all there are, to a newcomer */
void lane_own_close_all(struct lane *lane);

/* If the lane's only trainer is bound to one NUMA node, move the lane's memory there and allocate
 * there from now on. Not under the lock: this copies. The hub's thread. */
void lane_lie_near(struct lane *lane, pid_t trainer);

#endif
