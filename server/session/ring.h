/* ring.h - the steps between the dealer, which adds them, and the workers, which make them.
 *
 * Only ring.c, ring_parts.c and ring_looks.c touch what is in a struct ring, its lock and its
 * conditions. Its lock is taken after session->control.lock, and before those of the feed and of
 * the lanes.
 *
 * Steps open in order, since later ones need the same lanes. They finish in any order, and the ring
 * shrinks at its first step alone. Whom an event wakes is decided in wake.h.
 */
#ifndef SESSION_RING_H
#define SESSION_RING_H

#include <pthread.h>

#include "core/lock.h"
#include "session/skips.h"
#include "session/wake.h"
#include "session/worker.h"

struct ring {
    struct tnd_lock lock;
    pthread_cond_t work;  /* a step has come, or room */
    pthread_cond_t space; /* a step was removed: the dealer may continue */
    struct step *steps;   /* a ring: first .. first + count */
    uint32_t capacity, first, count;
    uint32_t few; /* an epoch is begun when there are fewer */
    struct wake wake;
    struct order_look *first_look, *last_look; /* that wait for a worker */
    const struct order_look *awaited_look;     /* the dealer waits for it, or NULL */
    uint64_t next_position;
    bool draining, failed, ended, paused;
    struct skips skips;
    uint64_t steps_published, rows_published;
    uint64_t last_epoch, last_number; /* of the last batch that left the ring */
    uint64_t next_epoch, next_number; /* of the step that follows those that left it */
    tundish_status kept_status;       /* ring_fail's, while no thread ran */
    char kept_text[1024];
};

/* Before anything else of the session; ring_size once the sizes of batches are known. */
void ring_open(struct ring *ring, const char *stream, uint64_t skip_limit);
void ring_size(struct ring *ring, uint32_t few, uint32_t ahead, uint32_t workers, uint32_t lanes);
bool ring_is_open(const struct ring *ring);

/* After all threads; the slots of steps are closed before the feed. */
void ring_close_steps(struct ring *ring, uint32_t lanes);
void ring_close(struct ring *ring);

/* The threads are about to run; are to stop after the part they are making; have stopped. Steps
 * that are not published are dropped. */
void ring_begin(struct session *session);
void ring_stop(struct session *session);
void ring_clear(struct session *session);

/* Nothing more goes into the ring; positions count from 0 again, as no thread runs. */
void ring_shut(struct session *session);
void ring_rewind(struct session *session);

/* The dealing thread adds a step, and waits for a free entry. False: the threads are being stopped.
 * The round is released in any case. */
bool ring_push(struct session *session, enum tnd_slot_kind kind, uint64_t epoch, uint64_t number,
               struct deal_round *round, tundish_status status);

/* The dealing thread waits until few enough steps are in the ring for an epoch to begin; while
 * there is too much under way, and steps that may become fewer. */
void ring_await_few(struct session *session);
void ring_await_while(struct session *session, bool (*is_too_much)(const struct session *));

/* The dealing thread waits for no longer than `wait_ns`, for a reader that asks, or for room. */
void ring_wait_briefly(struct session *session, int64_t wait_ns);

/* The dealing thread looks for room for another step: true, there is, or nothing goes in any more.
 * Else it has waited briefly, and looks again with the same *at_most, which begins as 0. */
bool ring_look_for_room(struct session *session, uint32_t *at_most, int64_t wait_ns);

/* The order has left out `count` more rows; `text` is the error of the last. */
tundish_status ring_add_skips(struct session *session, uint64_t count, const char *text);

/* How many steps were added since the start: for the dealing thread, and for any. */
uint64_t ring_next_position(const struct session *session);
uint64_t ring_count_dealt(struct session *session);

/* Has it failed, so that no step follows? ring_note_failure: it has, without a step of its own. */
bool ring_has_failed(struct session *session);
void ring_note_failure(struct session *session);

/* How many steps the dealer may be ahead of the lanes. */
uint32_t ring_steps_ahead(const struct ring *ring);

/* Workers and helpers' lines. A thread holds the lock from ring_lock or ring_finish on. Two
 * functions release it: ring_unlock wakes nobody, ring_unlock_due those that are due. */
void ring_lock(struct session *session);
void ring_unlock(struct session *session);
void ring_unlock_due(struct session *session);
void ring_unlock_and_wake(struct session *session); /* wakes a worker, for work or for room */

/* A worker waits for a part or a look, takes it, and releases the lock. False: the session is
 * stopped, and the lock is released, too. */
bool ring_take(struct worker *worker, struct part *ret_part);

/* Let workers look at content for the order, by session->looks. */
void ring_give_looks(struct session *session);

/* Take a look that waits; false: there is none. It is done. The lock is held; the latter reads the
 * clock. */
bool ring_take_look(struct session *session, struct part *ret_part);
void ring_finish_look(struct worker *worker, struct order_look *look);

/* Take the next part of the steps in the ring, opening them; false: there is none now. The lock is
 * held, but may be released meanwhile. */
bool ring_take_part(struct worker *worker, struct part *ret_part);

/* Take as many rows of the slice as this number of parts has, with the part that was taken. */
void ring_take_more(struct part *part, int64_t times);

/* The part is made, or has failed; the last part of a step publishes it. The lock is held, but may
 * be released meanwhile. Reads the clock. */
void ring_finish(struct worker *worker, const struct part *part, tundish_status status);

/* A worker took `busy_ns` for a part. The lock is held, as for all below. */
void ring_note_made(struct worker *worker, int64_t busy_ns);

/* Wait for a condition that goes with the ring's lock, and for no longer than `wait_ns`. */
void ring_wait(struct session *session, pthread_cond_t *condition, int64_t wait_ns);

/* Some worker has nothing to do; no worker is idle, and there are steps; this is the first step. */
bool ring_has_idle_workers(const struct session *session);
bool ring_has_more_work(const struct session *session);
bool ring_is_first(struct session *session, const struct step *step);

/* How many steps are in the ring; step `index` of them. */
uint32_t ring_count_steps(const struct session *session);
struct step *ring_step(struct session *session, uint32_t index);

/* The stream ends with this error, at the first step that is not published. Any thread, without the
 * lock. If the session's threads do not run: as soon as they do, where the error is to be `kept`.
 */
void ring_fail(struct session *session, tundish_status status, const char *text, bool kept);
void ring_fail_as_kept(struct session *session); /* they are about to run */

/* Has the whole stream been published? */
bool ring_has_ended(struct session *session);

/* Set the metrics of what has left the ring. */
void ring_show(struct session *session, struct tnd_stats_stream *stream);

#endif
