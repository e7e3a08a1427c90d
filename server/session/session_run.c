/* session_run.c - the session's threads, started and stopped. */
#include "session/session_private.h"

#include "batch/kept_rows.h"
#include "core/memory.h"
#include "core/must.h"

/* The threads stop after the part they are making. Steps that are not published are dropped. */
void
session_halt(struct session *session)
{
    ring_stop(session);
    if (session->dealing.started)
        pthread_join(session->dealing.thread, NULL);
    session->dealing.started = false;
    for (uint32_t i = 0; i < session->worker_count; i++) {
        if (session->workers[i].started)
            pthread_join(session->workers[i].thread, NULL);
        session->workers[i].started = false;
    }
    helpers_join(session->helpers);
    ring_clear(session);
}

tundish_status
session_run(struct session *session)
{
    tundish_status status = tnd_memory_for_threads(session->worker_count + 1);
    int error;

    if (status != TUNDISH_OK)
        return status;
    must(!session->dealing.started);
    must_hold(&session->control.lock);
    session->control.sleeps = false;
    if (session->kept_rows != NULL)
        kept_rows_clear(session->kept_rows);
    ring_begin(session);
    ring_fail_as_kept(session);
    atomic_store(&session->restart_epoch, UINT64_MAX);
    atomic_store(&session->stop, 0);
    error = pthread_create(&session->dealing.thread, NULL, session_deal, session);
    if (error != 0)
        return tnd_fail_errno(error, "cannot start a thread");
    session->dealing.started = true;
    for (uint32_t i = 0; i < session->worker_count; i++) {
        must_in_debug(!session->workers[i].started);
        error =
            pthread_create(&session->workers[i].thread, NULL, session_work, &session->workers[i]);
        if (error != 0)
            return tnd_fail_errno(error, "cannot start a thread");
        session->workers[i].started = true;
    }
    return helpers_run(session->helpers);
}
