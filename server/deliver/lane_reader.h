/* lane_reader.h - a cursor in a lane: how far one group has taken and released, and the trainer
 * that reads there, if one is attached. For the feed.
 *
 * Everything the trainer writes in its page is clamped: it may release what it was given, no more,
 * and never take a release back.
 */
#ifndef DELIVER_LANE_READER_H
#define DELIVER_LANE_READER_H

#include "deliver/lane.h"
#include "deliver/socket/connection.h"

struct lane_reader;

/* How far each replica of a group has released, in its own lane. A slot is kept until all of them
 * have released its position, so that the group can go back to its lowest. */
struct lane_tie {
    _Atomic uint64_t *released; /* `count` of them, or NULL: this cursor goes by itself */
    uint32_t count, index;
};

/* A cursor at `position`, or at the lowest position that is still there if that is higher. From
 * here on nothing at or above it is dropped. E_MEMORY: there are TND_CONSUMERS_MAX of them. */
tundish_status lane_reader_open(struct lane *lane, uint64_t position,
                                struct lane_reader **ret_reader);

/* From now on the cursor keeps what its group needs. The array outlives it. */
void lane_reader_tie(struct lane_reader *reader, struct lane_tie tie);

/* Go to a position that is still there, or is to come. Nobody is attached. Positions that the
 * cursor has passed may be gone, also since the caller looked: then it goes to the lowest that is
 * there. */
void lane_reader_move(struct lane_reader *reader, uint64_t position);

/* The trainer to come has had all before this step, of a server that is gone, or is to begin there:
 * pass over it, now and as it is published. One that is attached takes nothing (TND_WELCOME_FROM)
 * until this is over. */
struct lane_until {
    uint64_t epoch, step;
};
void lane_reader_pass(struct lane_reader *reader, struct lane_until until);
void lane_reader_pass_no_more(struct lane_reader *reader);

/* Drop it and release all it held. Accepts NULL. */
void lane_reader_close(struct lane_reader *reader);

/* Let a trainer read from its first unreleased position on: make its page, event and wakeup, and
 * send them in a WELCOME, whose numbers of the lane are filled in here, and where that position is
 * unless it is given. The connection stays the caller's and lives until lane_reader_detach. */
tundish_status lane_reader_attach(struct lane_reader *reader, struct connection *connection,
                                  struct tnd_welcome *welcome);

/* The trainer is gone. Its unreleased batches stay, or in a queue are offered again. */
void lane_reader_detach(struct lane_reader *reader);

/* Cut the trainer off: it gets no more batches, and the lane no longer waits for it. Only the slots
 * that it has taken and not released stay, until it releases them or is gone. */
void lane_reader_cut_off(struct lane_reader *reader);

/* Make the trainer look at its socket. */
void lane_reader_notify(struct lane_reader *reader);

/* As the trainer attached tells it (tundish_tell_device): `mode` 0 if it has no device. Nothing
 * here is checked. */
struct device_stats {
    uint32_t mode, why;
    uint64_t copied_bytes, copy_ns, kernel_ns, waited_ns;
};

struct lane_reader_stats {
    bool attached;
    uint64_t released, taken; /* positions; a queue counts slots */
    uint64_t published;       /* to which the lane is filled; in a queue, the slots granted */
    uint64_t taken_in_all;
    int64_t waits_ns;                 /* -1: it does not wait */
    uint64_t waited_ns;               /* all waits, this one included */
    uint64_t waits[TND_WAIT_BUCKETS]; /* those, by duration */
    struct device_stats device;
};
void lane_reader_stats(struct lane_reader *reader, struct lane_reader_stats *ret_stats);

/* Does some trainer attached expand what it reads on a device? */
bool lane_is_for_device(struct lane *lane);

/* The content of a position, or its coming content. False if the slot is gone, if the position is
 * after the next one to come, or if nothing was published yet. */
struct lane_look {
    bool published;
    enum tnd_slot_kind kind; /* if published */
    uint64_t epoch, step;
};
bool lane_look(struct lane *lane, uint64_t position, struct lane_look *ret_look);

/* Is it what the stream ends with: its end, an error, or STOPPED? */
static inline bool
lane_is_last(const struct lane_look *look)
{
    return look->published && look->kind != TND_SLOT_BATCH && look->kind != TND_SLOT_END;
}

/* The lowest position that is still there. */
uint64_t lane_lowest(struct lane *lane);

/* Slots of this epoch carry the size of its place (layout.h). */
void lane_set_place_bytes(struct lane *lane, uint64_t epoch, uint64_t place_bytes);

/* About once a second, while a trainer is attached: this server is alive. */
void lane_beat(struct lane *lane, int64_t now_ns);

/* For trainers that outlive this server: how many groups have trainers, and how many may come
 * back. */
void lane_tell_groups(struct lane *lane, uint32_t present, uint32_t gone);

/* The server is ending and detaches its trainers, who outlive it. Batches of a queue that they hold
 * are not offered to those that are still attached. */
void lane_note_ending(struct lane *lane);

/* A queue: read how many batches each trainer wants, and grant them. */
void lane_grant(struct lane *lane);
int lane_reader_wakeup(const struct lane_reader *reader);

/* A queue's place: every position before that of (epoch, step) is given back; bit i is set if the
 * i-th from there on is. False: nothing was published yet. */
struct lane_queue_state {
    uint64_t epoch, step;
    uint32_t bit_count; /* up to what is published */
    uint8_t bits[TND_SLOTS_MAX / 8];
};
bool lane_queue_state(struct lane *lane, struct lane_queue_state *ret_state);

#endif
