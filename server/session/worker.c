/* worker.c - how long workers wait. */
#include "session/worker.h"

#include "core/clock.h"
#include "core/must.h"

void
worker_count_wait(struct worker *worker, bool for_slots, int64_t began_ns, int64_t ended_ns)
{
    struct tnd_stats_thread *thread = worker->counters.thread;

    must_in_debug(began_ns <= ended_ns);
    if (thread == NULL) /* it waits for a helper, and is not one of the workers */
        return;
    tnd_stats_add(for_slots ? &thread->slot_wait : &thread->order_wait,
                  (uint64_t)(ended_ns - began_ns));
    tnd_stats_observe(&thread->idle, (uint64_t)(ended_ns - began_ns));
    stats_event(worker->counters.evaluation.track, began_ns, ended_ns,
                for_slots ? TND_STATS_WAITS_SLOT : TND_STATS_WAITS_ORDER, 0);
}

void
worker_note_wait(struct worker *worker, enum worker_wait waits)
{
    must_in_debug(worker->waits == WAITS_FOR_NOTHING || worker->waits_since_ns <= worker->now_ns);
    if (worker->waits == waits)
        return;
    if (worker->waits != WAITS_FOR_NOTHING) {
        /* If the worker has opened a step the reading is new. */
        if (worker->now_ns == worker->waits_since_ns)
            worker->now_ns = tnd_clock_ns();
        worker_count_wait(worker, worker->waits == WAITS_FOR_SLOTS, worker->waits_since_ns,
                          worker->now_ns);
    }
    worker->waits = waits;
    worker->waits_since_ns = worker->now_ns;
}
