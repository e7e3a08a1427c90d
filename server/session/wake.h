/* wake.h - whom to wake, decided by counting: no lock, no clock, no thread.
 *
 * The dealer adds steps to the ring, and workers take parts of them. Waking a thread costs about as
 * much as making a small batch, so each event says who is woken for it, and often it is nobody. One
 * idle worker waits for the wakeup, which trainers signal when they release a slot; the other idle
 * workers sleep on a condition. The ring's lock guards a struct wake, and the ring does what is
 * decided here.
 *
 * Figures beside the constants: batches of 4 KiB from memory, server and trainer on two cores.
 */
#ifndef SESSION_WAKE_H
#define SESSION_WAKE_H

#include <stdbool.h>
#include <stdint.h>

/* A part shorter than this is short: one worker makes such parts faster alone than two that take
 * turns at the locks. With one worker 1.07 to 1.26 million batches a second, with all of them 0.91
 * to 0.99; the server's processor time for a batch fell from 1.05 to 0.89 us. */
static const int64_t WAKE_SHORT_NS = 5000;

/* A worker that takes a part longer than this wakes another worker even if no part is left: the
 * other one waits for trainers meanwhile. About the time that waking a thread takes. */
static const int64_t WAKE_WORTH_NS = 20000;

/* After a part longer than WAKE_LONG_NS, which may have waited for a disk, all workers stay awake
 * for WAKE_CALM_TIMES its duration. So one worker that works alone loses at most a twentieth of
 * what others could have read in that time. */
static const int64_t WAKE_LONG_NS = 1000000;
enum { WAKE_CALM_TIMES = 20 };

/* A step that finds no room in the lanes starves the ring for WAKE_STARVED steps: one that finds
 * room does not mean that the next one will. While the ring starves, a dealt step wakes nobody. A
 * trainer that sleeps for each of 21,000 batches cost 12,000 signals of the wakeup without this,
 * and a few dozen with it; the server's processor time fell from 0.46 to 0.28 s. */
enum { WAKE_STARVED = 2 };

struct wake {
    uint32_t worker_count;
    bool has_one_lane;        /* so a step is one slice, which one worker can make */
    uint32_t idle_workers;    /* they wait for the wakeup, or sleep */
    bool a_worker_polls;      /* one of them waits for the wakeup */
    bool has_short_parts;     /* the last part was short, and no long one is recent */
    int64_t calm_from_ns;     /* from then on no long part is recent */
    uint32_t starved;         /* > 0: a step found no room a short while ago */
    bool missed_room;         /* a worker came while a step was being opened, and went away */
    uint32_t dealer_wakes_at; /* the dealer waits until the ring has no more steps than these */
    bool dealer_is_due;       /* the dealer is to be woken when the lock is released */
    bool worker_is_due;       /* likewise a worker */
};

/* The threads that one event wakes. */
struct wake_whom {
    bool sleeper; /* a worker that sleeps */
    bool poller;  /* the worker that waits for the wakeup */
    bool dealer;
};

void wake_open(struct wake *wake, uint32_t worker_count, uint32_t lane_count);

/* Short parts of one lane: one worker makes them all. */
static inline bool
wake_is_for_one(const struct wake *wake)
{
    return wake->has_short_parts && wake->has_one_lane;
}

/* Looks wait, which are worth waking a worker for; it wakes the next one if more are left. */
static inline void
wake_on_looks(struct wake *wake)
{
    wake->worker_is_due |= wake->idle_workers > 0;
}

/* Are at least `workers` of them awake, where one is enough? */
static inline bool
wake_has_enough(const struct wake *wake, uint32_t workers)
{
    return wake->worker_count - wake->idle_workers >= workers && wake_is_for_one(wake);
}

/* A worker is to be woken: which? The poller comes by the wakeup alone, which costs a system call,
 * so nobody signals it in vain. */
static inline struct wake_whom
wake_a_worker(const struct wake *wake)
{
    bool polls = wake->a_worker_polls;

    return (struct wake_whom){ .sleeper = !polls || !wake_is_for_one(wake), .poller = polls };
}

/* The dealer has added a step. True: wake a worker. Without room in the lanes no worker could open
 * the step, and the poller comes when a slot is released. A worker that makes short parts comes by
 * itself. */
static inline bool
wake_on_push(const struct wake *wake)
{
    return wake->starved == 0 && !wake_has_enough(wake, 1);
}

/* A worker whose parts take `part_ns` has taken one. True: wake another. After a short part this
 * worker is back before another one would be awake, so it wakes one only if parts are left. */
static inline bool
wake_on_take(int64_t part_ns, bool parts_are_left)
{
    return part_ns > WAKE_WORTH_NS || parts_are_left;
}

/* A worker has made a part in `busy_ns`, `part_ns` on average, by the time `now_ns`. */
void wake_on_made(struct wake *wake, int64_t part_ns, int64_t busy_ns, int64_t now_ns);

/* Steps have left the ring, and `left` are there still. The dealer is woken once for many steps. */
static inline void
wake_on_drop(struct wake *wake, uint32_t left)
{
    wake->dealer_is_due |= left <= wake->dealer_wakes_at;
}

/* A worker looks for room for a step: first wake_on_look, then wake_on_looked says what it found.
 * A worker that comes in between goes away (wake_on_missed), although its wakeup may have been that
 * of a release. If no room was found and wake_must_look_again, the first worker looks again, or
 * that wakeup is lost. If room was found, the other worker is told to come back. */
static inline void
wake_on_look(struct wake *wake)
{
    wake->missed_room = false;
}

static inline void
wake_on_missed(struct wake *wake)
{
    wake->missed_room = true;
}

static inline bool
wake_must_look_again(const struct wake *wake)
{
    return wake->missed_room;
}

static inline void
wake_on_looked(struct wake *wake, bool has_room)
{
    if (!has_room) {
        wake->starved = WAKE_STARVED;
        return;
    }
    wake->starved -= wake->starved > 0;
    wake->worker_is_due |= wake->missed_room;
}

/* A worker found no step that waits for room: the next dealt step wakes a worker. */
static inline void
wake_on_none(struct wake *wake)
{
    wake->starved = 0;
}

/* A worker finds nothing to do. True: it waits for the wakeup; false: it sleeps. wake_on_return
 * says that it waits no more. */
bool wake_on_wait(struct wake *wake);
void wake_on_return(struct wake *wake, bool polled);

static inline bool
wake_is_anyone_due(const struct wake *wake)
{
    return wake->worker_is_due || wake->dealer_is_due;
}

/* The lock is about to be released: those that are due are woken now. */
static inline struct wake_whom
wake_due(struct wake *wake)
{
    struct wake_whom whom = { 0 };

    if (wake->worker_is_due)
        whom = wake_a_worker(wake);
    whom.dealer = wake->dealer_is_due;
    wake->dealer_is_due = wake->worker_is_due = false;
    return whom;
}

/* Likewise the dealer alone, by a worker that goes to sleep: it leaves the due worker to others. */
bool wake_due_dealer(struct wake *wake);

#endif
