/* step.h - one step on its way to the lanes: room for it, its parts, its publishing.
 *
 * A step is a global batch, or the end of an epoch, or an error. It waits for slots, is opened by
 * one worker, is made in parts by all, and is published by the worker that finishes its last part.
 * The ring's lock guards a step's state; a function here says if it needs no lock.
 */
#ifndef SESSION_STEP_H
#define SESSION_STEP_H

#include "batch/dealer.h"
#include "deliver/lane.h"

struct fill;
struct session;

enum step_state {
    STEP_EMPTY,
    STEP_WAITS,      /* for free slots in every lane */
    STEP_OPENING,    /* one worker reserves them and lays texts out, perhaps without the lock */
    STEP_OPEN,       /* its slices are being made */
    STEP_PUBLISHING, /* one worker seals and publishes them, without the lock */
    STEP_DONE
};

/* The kind of a step that was visited already, according to a queue's place. */
#define STEP_PASSED ((enum tnd_slot_kind)0)

/* One replica's part of a step. */
struct share {
    struct slot slot;
    bool reserved; /* STEP_PASSED: published */
    bool has_room;
    bool had_room; /* its lane's wait has been counted */
    int64_t rows, next_row;
    int64_t rows_of_part;    /* 0: the slot has not been described */
    const struct fill *fill; /* NULL: not chosen yet */
};

struct step {
    enum step_state state;
    enum tnd_slot_kind kind;
    enum tnd_slot_kind passed_kind; /* STEP_PASSED: its kind before */
    uint64_t position, epoch, number;
    int64_t shard;               /* of an evaluation; else -1 */
    uint32_t flags;              /* TUNDISH_BATCH_... */
    int64_t dealt_ns, opened_ns; /* when it came, and when all its lanes had room */
    /* Stays when the step is done: the thread that made it frees it, when the entry is next used.
     * Freed by another thread it would cost more than a small batch's content. */
    struct deal_round round;
    struct share *shares;
    uint32_t next_share; /* the first whose rows are not all taken */
    uint32_t unfinished; /* parts taken but not finished, and one while any is left */
    bool from_outside;   /* its error is another node's */
    tundish_status status;
    char text[1024];
};

/* A piece of work: some rows of a slice, or a whole one; or a look for the order. */
struct part {
    struct order_look *look; /* or NULL: */
    struct step *step;
    uint32_t replica;
    uint32_t more;      /* whole slices: those of `more` replicas after it, too */
    int64_t begin, end; /* rows; whole slices: not used */
};

/* The step fails with this thread's error text, unless it failed before. */
void step_fail(struct step *step, tundish_status status);

/* Name the slot of a share: whose it is, and of what. */
void step_name_slot(const struct step *step, struct share *share);

/* Find room for every share. True: there is room, or *failure says why there never will be. A batch
 * needs no lock: its state STEP_OPENING keeps other workers away. */
bool step_find_room(struct session *session, struct step *step, tundish_status *failure);

/* Publish a step whose parts are all made, and return the rows of a batch. Checksums read every
 * byte of a batch, and trainers are woken, so the lock is not held for one. */
uint64_t step_publish(struct session *session, struct step *step);

/* Give back what was reserved for the step. */
void step_cancel(struct session *session, struct step *step);

#endif
