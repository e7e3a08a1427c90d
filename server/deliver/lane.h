/* lane.h - the ring of slots for one replica of a session, and the arena its payloads lie in.
 *
 * Life of a batch: lane_reserve finds room for every buffer, worker threads fill the buffers in
 * place, lane_publish hands it to the trainer. A lane counts everything it delivers - batches, ends
 * of epochs, errors - in one dense `position`, the same in all lanes of a session: positions are
 * reserved and published in any order, from any thread, and reach the trainer in order.
 *
 *     lane_slot_init(lane, &slot);                  once a task; sizes for the lane's columns
 *     slot.position = p; columns' shapes, buffers' stored_bytes ...
 *     lane_reserve(lane, &slot)                OK: slot.buffers[i].data is where to write
 *                                              E_TIMEOUT: no room yet; wait for the wakeup, try
 * again
 *     ... fill ...
 *     lane_seal(lane, &slot)                   in each lane, then
 *     lane_publish(lane, &slot)                in each
 *
 * A step is sealed in every lane before any lane shows it: see lane_seal.
 *
 * Nothing here waits. The lowest position not yet published can always be reserved in the end: if
 * the arena is full of later ones, or of batches that trainers hold, it gets a segment of its own,
 * at once while the lane may grow (most_bytes), else when a trainer waits for it. So a server that
 * reserves in any order and retries after the wakeup cannot deadlock. Under a limit there may be no
 * memory for such a segment. Then positions are reserved strictly in order, so none waits for room
 * that a later one has taken. Where one trainer reads several lanes, it may wait at one lane while
 * another lacks room: feed_reserve looks at all of them.
 */
#ifndef DELIVER_LANE_H
#define DELIVER_LANE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/codec.h"
#include "shm/layout.h"
#include "tundish/tundish.h"

struct wakeup;
struct lane;

enum lane_memory { LANE_SHM, LANE_MEMFD };

struct lane_config {
    const char *name;         /* "train/0", for messages */
    uint32_t slots;           /* at least TND_SLOTS_MIN */
    uint64_t arena_bytes;     /* room for payloads */
    uint64_t most_bytes;      /* the limit of its growth: arena and own segments */
    uint64_t limit_bytes;     /* 0: none; what those two never exceed */
    uint64_t max_batch_bytes; /* 0: no limit but memory */
    enum lane_memory memory;  /* LANE_SHM falls back to memfd where /dev/shm is small */
    bool huge_pages;          /* asked for, not insisted on */
    bool checksums;
    bool queue;      /* distribute.delivery: queue */
    bool takes_back; /* an evaluation: lane_take_back is called */
    uint64_t server_generation;
    const tundish_spec *spec; /* copied */
    struct wakeup *wakeup;    /* signalled when there is room again; outlives the lane */
};

/* One buffer of a slot. The role and its order in the column are given by the element spec. */
struct slot_buffer {
    uint32_t role;          /* enum tnd_role */
    struct tnd_codec codec; /* RAW unless set */
    uint64_t decoded_bytes; /* as the trainer sees it; RAW: taken from stored_bytes */
    uint64_t stored_bytes;  /* lane_reserve: room wanted; lane_publish: filled, at most that */
    void *data;             /* set by lane_reserve, aligned to 64 bytes */
    uint32_t checksum;      /* the lane's */
};

struct slot_column {
    int64_t shape[TND_RANK_MAX]; /* ragged dimensions: -1 */
    uint32_t buffer_count;
    struct slot_buffer *buffers; /* splits 0 .. ragged_rank - 1, indices, offsets, values */
};

/* A slot on its way. Owned by the caller; one may be used again and again. */
struct slot {
    uint64_t position;
    uint64_t epoch;
    uint64_t step; /* in the epoch; END: the number of its steps */
    enum tnd_slot_kind kind;
    uint32_t flags;        /* TUNDISH_BATCH_... */
    int64_t shard;         /* -1: none */
    tundish_status status; /* ERROR */
    const char *text;      /* ERROR; needed until lane_publish returns */
    bool passed;           /* see lane_pass */
    bool is_awaited;       /* for lane_reserve: a trainer waits for it, at some lane */

    uint32_t column_count;
    struct slot_column *columns;
    uint32_t buffer_count;
    struct slot_buffer *buffers; /* those of all columns, in order */

    uint32_t index;  /* the lane's: where it is in the ring */
    bool lacks_room; /* the lane's, with E_TIMEOUT: it would be reserved if it were awaited */
};

/* On return the memory is allocated and filled with zeros. E_MEMORY says how much there is and how
 * much was asked for. */
tundish_status lane_open(const struct lane_config *config, struct lane **ret_lane);

/* Consumers keep their mappings. No reservation may be outstanding. Accepts NULL. */
void lane_close(struct lane *lane);

/* Bytes of shared memory that lane_open would take. */
uint64_t lane_segment_bytes(const struct lane_config *config);

/* Why its memory is not of the kind that was asked for ("/dev/shm has ..."), or "". */
const char *lane_note(const struct lane *lane);

/* Make the slot's tables, with the buffers that the lane's columns have, all sizes 0. The slot may
 * then be reserved, published and set again without another lane_slot_init. */
void lane_slot_init(const struct lane *lane, struct slot *slot);
void lane_slot_init_as(const tundish_spec *spec, struct slot *slot); /* of columns without a lane */
void lane_slot_fini(struct slot *slot);                              /* accepts zeros */

/* The values buffer of a column, which is its last. */
static inline struct slot_buffer *
slot_values(struct slot *slot, uint32_t column)
{
    return &slot->columns[column].buffers[slot->columns[column].buffer_count - 1];
}

/* Find room for the slot's buffers (none for kinds other than BATCH). OK; E_TIMEOUT when there is
 * no slot or no room now; E_MEMORY for a batch above max_batch_bytes, naming its step, or when the
 * kernel or the limit leaves none and no trainer of this lane has anything left to give back. A
 * slot reserved is later published or cancelled. */
tundish_status lane_reserve(struct lane *lane, struct slot *slot);

/* The slot is filled: write its record, and before that its checksums, where the lane has them.
 * Nobody is shown it yet. The record takes the place of that of a position which everybody has
 * released. So once all lanes have sealed a position, a survivor that looks at any lane for the
 * oldest step kept (client/kept.c) finds one from which the next server's lanes reach this
 * position. Trainers that were shown it may then leave: no sibling needs them to get it, too. */
void lane_seal(struct lane *lane, struct slot *slot);

/* Hand a reserved and sealed slot over: trainers see it once every lower position is published as
 * well. */
void lane_publish(struct lane *lane, struct slot *slot);

/* Both at once, where no other lane waits to be sealed. */
void lane_seal_and_publish(struct lane *lane, struct slot *slot);

/* Give the room back; the position may be reserved again. */
void lane_cancel(struct lane *lane, struct slot *slot);

/* Reserve and publish a slot without columns (END, END_OF_STREAM, ERROR, STOPPED). Same results as
 * lane_reserve; never E_MEMORY. */
tundish_status lane_publish_end(struct lane *lane, uint64_t position, enum tnd_slot_kind kind,
                                uint64_t epoch, uint64_t step, tundish_status status,
                                const char *text);

/* A queue: this position was visited before the queue was here. Same results as lane_publish_end.
 */
tundish_status lane_pass(struct lane *lane, uint64_t position, enum tnd_slot_kind kind,
                         uint64_t epoch, uint64_t step);

/* Does a trainer of this lane wait, with no published batch left to take? */
bool lane_is_awaited(struct lane *lane);

/* Is a trainer attached that has yet to give back a batch, or the end of an epoch? */
bool lane_is_owed(struct lane *lane);

/* An evaluation's lane, which has one trainer. If the trainer has begun nothing from the position
 * `from` on, and that is published, it gets nothing before `until`, not below what is published or
 * reserved so far: these slots are freed, now or as they are published. */
bool lane_take_back(struct lane *lane, uint64_t from, uint64_t until);

/* Has the trainer not heard of that yet? It asks for nothing then, whatever its page says. */
bool lane_is_taken_back(struct lane *lane);

/* Does the trainer make claims? An older library's does not. */
bool lane_is_claimed(struct lane *lane);

/* A queue in which nothing is published: the set bits mark those of its first positions that will
 * be passed. Its place reports them from now on. At most TND_SLOTS_MAX. */
void lane_set_visited(struct lane *lane, const uint8_t *bits, uint64_t bit_count);

/* Would lane_reserve find a slot for this position? */
bool lane_has_slot(struct lane *lane, uint64_t position);

/* The encoding of a stored buffer, for statistics: users' codecs together. */
enum lane_encoding { LANE_RAW, LANE_NARROW, LANE_BITPACK, LANE_ZSTD, LANE_OTHER, LANE_ENCODINGS };
const char *lane_encoding_name(enum lane_encoding encoding);

struct lane_encoded {
    uint64_t buffers, decoded_bytes, stored_bytes; /* published so far */
};

/* Positions, for the session and for statistics. */
struct lane_stats {
    uint64_t published;      /* positions below are with the trainers */
    uint64_t released;       /* positions below are free, by the slowest group */
    uint64_t taken;          /* positions below were returned by tundish_next, by the slowest */
    uint64_t passed_from;    /* where a trainer last left an epoch; UINT64_MAX: none did */
    uint32_t reserved_count; /* reserved, not yet visible */
    uint64_t payload_bytes;  /* in use, segments of their own included */
    uint64_t arena_bytes;
    uint64_t decoded_bytes;                      /* published so far, as trainers see them */
    uint64_t stored_bytes;                       /* and as they lie in the slots */
    struct lane_encoded encoded[LANE_ENCODINGS]; /* that, by codec */
    uint64_t segment_bytes;                      /* of shared memory */
    uint64_t own_segment_count; /* batches that got a segment of their own so far */
    bool full;                  /* no slot is free */
    bool starves;               /* a queue: so, and some reader waits */
    bool trainer_waits;         /* some trainer is in tundish_next without a batch */
    int64_t trainer_waits_ns;   /* for how long, the longest */
};
void lane_stats(struct lane *lane, struct lane_stats *ret_stats);

/* Forget everything published and start at position 0 again, in the same memory. Only while no
 * consumer is attached and nothing is reserved. */
void lane_reset(struct lane *lane);

#endif
