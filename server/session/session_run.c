/* session_run.c - the session's threads, started and stopped. */
#include "session/session_private.h"

#include "core/memory.h"
#include "deliver/wakeup.h"

/* Threads stop where they are; steps that are not published go. */
void
session_halt(struct session *session)
{
    pthread_mutex_lock(&session->lock);
    session->draining = true;
    atomic_store(&session->stop, 1);
    pthread_cond_broadcast(&session->ring_space);
    pthread_cond_broadcast(&session->work);
    pthread_mutex_unlock(&session->lock);
    wakeup_signal(session->wakeup);
    if (session->dealing_started)
        pthread_join(session->dealing, NULL);
    session->dealing_started = false;
    for (uint32_t i = 0; i < session->worker_count; i++) {
        if (session->workers[i].started)
            pthread_join(session->workers[i].thread, NULL);
        session->workers[i].started = false;
    }
    /* No thread is left that changes the ring, but the hub's still looks at how full it is. */
    for (uint32_t i = 0; i < session->count; i++) {
        struct step *step = session_step(session, i);

        for (uint32_t r = 0; r < session->plan->replicas; r++)
            if (step->kind == TND_SLOT_BATCH && step->state != STEP_DONE &&
                step->shares[r].reserved)
                lane_cancel(feed_lane(session->feed, r), &step->shares[r].slot);
        deal_round_release(&step->round);
        step->state = STEP_EMPTY;
    }
    pthread_mutex_lock(&session->lock);
    session->first = (session->first + session->count) % session->capacity;
    session->count = 0;
    pthread_mutex_unlock(&session->lock);
}

tundish_status
session_run(struct session *session)
{
    tundish_status status = tnd_memory_for_threads(session->worker_count + 1);
    int error;

    if (status != TUNDISH_OK)
        return status;
    session->draining = session->failed = session->ended = false;
    session->lacking = 0;
    atomic_store(&session->restart_epoch, UINT64_MAX);
    atomic_store(&session->stop, 0);
    error = pthread_create(&session->dealing, NULL, session_deal, session);
    if (error != 0)
        return tnd_fail_errno(error, "cannot start a thread");
    session->dealing_started = true;
    for (uint32_t i = 0; i < session->worker_count; i++) {
        error =
            pthread_create(&session->workers[i].thread, NULL, session_work, &session->workers[i]);
        if (error != 0)
            return tnd_fail_errno(error, "cannot start a thread");
        session->workers[i].started = true;
    }
    return TUNDISH_OK;
}
