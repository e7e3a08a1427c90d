/* session_run.c - the session's threads, started and stopped. */
#include "session/session_private.h"

#include "core/memory.h"
#include "core/must.h"
#include "deliver/wakeup.h"

/* The threads stop after the part they are making. Steps that are not published are dropped. */
void
session_halt(struct session *session)
{
    pthread_mutex_lock(&session->ring.lock);
    /* Set under the lock, so that no thread can check them and go to sleep after the broadcasts. */
    session->ring.draining = true;
    atomic_store(&session->stop, 1);
    pthread_cond_broadcast(&session->ring.space);
    pthread_cond_broadcast(&session->ring.work);
    helpers_wake(session->helpers);
    pthread_mutex_unlock(&session->ring.lock);
    /* One worker does not wait for a condition but for the wakeup. */
    wakeup_signal(session->wakeup);
    if (session->dealing.started)
        pthread_join(session->dealing.thread, NULL);
    session->dealing.started = false;
    for (uint32_t i = 0; i < session->worker_count; i++) {
        if (session->workers[i].started)
            pthread_join(session->workers[i].thread, NULL);
        session->workers[i].started = false;
    }
    helpers_join(session->helpers);
    /* No thread changes the ring any more. The hub's thread still reads how full it is, so that is
     * changed under the lock below. */
    for (uint32_t i = 0; i < session->ring.count; i++) {
        struct step *step = session_step(session, i);

        for (uint32_t r = 0; r < session->plan->replicas; r++)
            if (step->kind != STEP_PASSED && step->state != STEP_DONE && step->shares[r].reserved)
                lane_cancel(feed_lane(session->feed, r), &step->shares[r].slot);
        deal_round_release(&step->round);
        step->state = STEP_EMPTY;
    }
    pthread_mutex_lock(&session->ring.lock);
    session->ring.first = (session->ring.first + session->ring.count) % session->ring.capacity;
    session->ring.count = 0;
    pthread_mutex_unlock(&session->ring.lock);
}

/* Slots are made once and reused by every step in their entry, so that no step allocates them. */
static void
open_steps(struct session *session)
{
    struct session_ring *ring = &session->ring;

    if (ring->steps != NULL)
        return;
    ring->steps = tnd_zalloc(ring->capacity, sizeof *ring->steps);
    for (uint32_t i = 0; i < ring->capacity; i++) {
        ring->steps[i].shares = tnd_zalloc(session->plan->replicas, sizeof *ring->steps[i].shares);
        for (uint32_t r = 0; r < session->plan->replicas; r++)
            slot_init(feed_lane(session->feed, r), &ring->steps[i].shares[r].slot);
    }
}

tundish_status
session_run(struct session *session)
{
    tundish_status status = tnd_memory_for_threads(session->worker_count + 1);
    int error;

    if (status != TUNDISH_OK)
        return status;
    must(!session->dealing.started && session->ring.count == 0);
    session->control.sleeps = false;
    open_steps(session);
    pthread_mutex_lock(&session->ring.lock);
    session->ring.draining = session->ring.failed = session->ring.ended = false;
    wake_on_none(&session->ring.wake);
    pthread_mutex_unlock(&session->ring.lock);
    session_fail_as_kept(session);
    atomic_store(&session->restart_epoch, UINT64_MAX);
    atomic_store(&session->stop, 0);
    error = pthread_create(&session->dealing.thread, NULL, session_deal, session);
    if (error != 0)
        return tnd_fail_errno(error, "cannot start a thread");
    session->dealing.started = true;
    for (uint32_t i = 0; i < session->worker_count; i++) {
        error =
            pthread_create(&session->workers[i].thread, NULL, session_work, &session->workers[i]);
        if (error != 0)
            return tnd_fail_errno(error, "cannot start a thread");
        session->workers[i].started = true;
    }
    return helpers_run(session->helpers);
}
