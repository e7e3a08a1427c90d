/* session_work.c - workers take parts of steps (session_steps.c), make their content, and wait. */
#include "session/session_private.h"

#include <time.h>

#include "core/clock.h"
#include "core/numa.h"
#include "deliver/wakeup.h"

/* A worker without work polls this long before it sleeps: about the cost of waking it. */
static const int64_t SPIN_NS = 20000;
/* Between two looks for room. */
static const int64_t RETRY_NS = 100000;
/* Where parts take less than UNTIMED_NS, the stages of one part in UNTIMED_PARTS + 1 are timed. A
 * reading of the clock takes a fortieth of a batch of one microsecond, and each stage needs one. */
static const int64_t UNTIMED_NS = 5000;
enum { UNTIMED_PARTS = 7 };
/* The average time of a part covers about this many parts. */
enum { PARTS_REMEMBERED = 8 };

static void
count_wait(struct worker *worker, bool for_slots, int64_t began_ns, int64_t ended_ns)
{
    struct tnd_stats_thread *thread = worker->counters.thread;

    if (thread == NULL) /* it waits for a helper, and is not one of the workers */
        return;
    tnd_stats_add(for_slots ? &thread->slot_wait : &thread->order_wait,
                  (uint64_t)(ended_ns - began_ns));
    tnd_stats_observe(&thread->idle, (uint64_t)(ended_ns - began_ns));
    stats_event(worker->counters.evaluation.track, began_ns, ended_ns,
                for_slots ? TND_STATS_WAITS_SLOT : TND_STATS_WAITS_ORDER, 0);
}

/* Wait for room in the arena. This ends: the lowest step gets a segment of its own once a trainer
 * waits for it (lane.h), and parts are taken in step order. */
tundish_status
session_reserve_whole(struct worker *worker, struct share *share, uint32_t replica)
{
    struct session *session = worker->session;
    tundish_status status = feed_reserve(session->feed, replica, &share->slot);
    int64_t began_ns, ended_ns;

    if (status != TUNDISH_E_TIMEOUT)
        return status;
    began_ns = tnd_clock_ns();
    while (status == TUNDISH_E_TIMEOUT) {
        /* Relaxed: the flag carries no data, and session_halt joins this thread. */
        if (atomic_load_explicit(&session->stop, memory_order_relaxed))
            return tnd_fail(TUNDISH_E_TIMEOUT, "the server is stopping");
        nanosleep(&(struct timespec){ .tv_nsec = RETRY_NS }, NULL);
        status = feed_reserve(session->feed, replica, &share->slot);
    }
    ended_ns = tnd_clock_ns();
    worker->part_waited_ns = ended_ns - began_ns;
    count_wait(worker, true, began_ns, ended_ns);
    return status;
}

static tundish_status
make_whole(struct worker *worker, const struct part *part)
{
    struct step *step = part->step;
    struct share *share = &step->shares[part->replica];
    struct filled filled;
    tundish_status status;

    session_name_slot(step, share);
    status = fill_make(share->fill, &worker->evaluation, worker->context,
                       &step->round.slices[part->replica], &share->slot, &filled);
    if (status == TUNDISH_OK)
        status = session_reserve_whole(worker, share, part->replica);
    if (status != TUNDISH_OK)
        return status;
    share->reserved = true;
    fill_copy(share->fill, &filled, &share->slot);
    return TUNDISH_OK;
}

tundish_status
session_make_part(struct worker *worker, const struct part *part)
{
    struct step *step = part->step;
    struct share *share = &step->shares[part->replica];

    if (!share->fill->in_place)
        return make_whole(worker, part);
    return fill_part(share->fill, &worker->evaluation, &step->round.slices[part->replica],
                     part->begin, part->end, &share->slot);
}

static bool
has_short_parts(const struct worker *worker)
{
    return worker->part_ns > 0 && worker->part_ns < UNTIMED_NS;
}

/* Has the step parts that no worker has taken? */
static bool
has_parts_left(const struct session *session, const struct step *step)
{
    uint32_t last = session->plan->replicas - 1;

    return step->next_share < last ||
           (step->next_share == last && step->shares[last].fill->in_place &&
            step->shares[last].next_row < step->shares[last].rows);
}

/* Does a worker without work wait for slots, or for steps? */
static enum worker_wait
waits_for(struct session *session)
{
    return session->ring.count > 0 &&
                   session_step(session, session->ring.count - 1)->state == STEP_WAITS
               ? WAITS_FOR_SLOTS
               : WAITS_FOR_STEPS;
}

/* A wait lasts from the end of the last part to the next one, however often the worker looked in
 * between, so that looking takes no reading of the clock. */
static void
note_wait(struct worker *worker, enum worker_wait waits)
{
    if (worker->waits == waits)
        return;
    if (worker->waits != WAITS_FOR_NOTHING) {
        /* If the worker has opened a step the reading is new. */
        if (worker->now_ns == worker->waits_since_ns)
            worker->now_ns = tnd_clock_ns();
        count_wait(worker, worker->waits == WAITS_FOR_SLOTS, worker->waits_since_ns,
                   worker->now_ns);
    }
    worker->waits = waits;
    worker->waits_since_ns = worker->now_ns;
}

/* No part can be taken. One worker waits for the wakeup of trainers' releases, the others for that
 * worker. A step that is added between the unlock and wakeup_wait is not missed: session_push sees
 * under the lock that a worker polls, and then signals the wakeup, which remembers it. Looking for
 * a part may have released the lock: if the session was stopped meanwhile, its signal may be gone,
 * taken by another worker. */
static void
wait_for_work(struct session *session, struct worker *worker)
{
    bool polls;

    if (atomic_load_explicit(&session->stop, memory_order_relaxed))
        return;
    note_wait(worker, waits_for(session));
    polls = wake_on_wait(&session->ring.wake);
    if (!polls) {
        if (wake_due_dealer(&session->ring.wake))
            pthread_cond_signal(&session->ring.space);
        pthread_cond_wait(&session->ring.work, &session->ring.lock);
    } else {
        session_unlock(session);
        wakeup_wait(session->wakeup, SPIN_NS, -1);
        pthread_mutex_lock(&session->ring.lock);
        if (session->options.shards != NULL) /* its reader may have asked */
            pthread_cond_signal(&session->ring.space);
    }
    wake_on_return(&session->ring.wake, polls);
}

/* Are the stages of the next part timed? */
static void
choose_timing(struct worker *worker)
{
    struct evaluation_counters *counters = &worker->counters.evaluation;

    if (!counters->is_untimed)
        counters->untimed_parts = 0;
    counters->is_untimed = has_short_parts(worker) && counters->untimed_parts < UNTIMED_PARTS;
    counters->untimed_parts += counters->is_untimed;
    counters->now_ns = worker->now_ns;
}

void *
session_work(void *argument)
{
    struct worker *worker = argument;
    struct session *session = worker->session;

    pthread_setname_np(pthread_self(), "work"); /* as top -H and perf show it */
    if (session->options.pin)
        tnd_numa_bind_thread((uint32_t)(worker - session->workers));
    worker->now_ns = tnd_clock_ns();
    worker->waits = WAITS_FOR_NOTHING;
    pthread_mutex_lock(&session->ring.lock);
    while (!atomic_load_explicit(&session->stop, memory_order_relaxed)) {
        struct part part;
        tundish_status status;
        int64_t began_ns, busy_ns;
        uint64_t number;
        bool wakes;

        /* This one and another. */
        if (wake_has_enough(&session->ring.wake, 2) || !session_take_part(worker, &part)) {
            wait_for_work(session, worker);
            continue;
        }
        note_wait(worker, WAITS_FOR_NOTHING);
        /* Under the lock, so in the order in which parts are taken. */
        budget_begin(&worker->memory);
        wakes = wake_on_take(worker->part_ns, has_parts_left(session, part.step));
        if (wakes)
            helpers_wake(session->helpers);
        session_unlock(session);
        if (wakes)
            pthread_cond_signal(&session->ring.work);
        began_ns = worker->now_ns;
        choose_timing(worker);
        number = part.step->number;
        worker->part_waited_ns = 0;
        status = session_make_part(worker, &part);
        scratch_reset(worker->evaluation.scratch);
        pthread_mutex_lock(&session->ring.lock);
        session_finish_part(worker, &part, status);
        budget_end(&worker->memory); /* only now: a trainer may wait for the step */
        busy_ns = worker->now_ns - began_ns - worker->part_waited_ns;
        worker->part_ns += (busy_ns - worker->part_ns) / PARTS_REMEMBERED;
        wake_on_made(&session->ring.wake, worker->part_ns, busy_ns, worker->now_ns);
        tnd_stats_add(&worker->counters.thread->busy, (uint64_t)busy_ns);
        stats_event(worker->counters.evaluation.track, began_ns, worker->now_ns,
                    TND_STATS_MAKES_PART, number);
    }
    /* Other workers may wait for the one that polled. */
    pthread_cond_broadcast(&session->ring.work);
    pthread_mutex_unlock(&session->ring.lock);
    return NULL;
}

void
session_pause(struct session *session, bool paused)
{
    pthread_mutex_lock(&session->ring.lock);
    session->ring.paused = paused;
    session_unlock_and_wake(session);
}
