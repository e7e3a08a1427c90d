/* ring_looks.c - workers look at content for the order (order/look.h).
 *
 * Looks come before parts, since parts can only follow from them, and are few: the order looks no
 * further ahead than its threads can look at in a moment. A look waits for nobody, so the dealing
 * thread waits for it whatever the lanes wait for.
 */
#include "core/clock.h"
#include "core/must.h"
#include "session/session_private.h"

static void
begin(void *context, struct order_look *look)
{
    struct session *session = context;
    struct ring *ring = &session->ring;

    tnd_lock_take(&ring->lock);
    look->state = LOOK_WAITS;
    look->next = NULL;
    must_in_debug(ring->first_look == NULL || ring->last_look->next == NULL);
    if (ring->first_look == NULL)
        ring->first_look = look;
    else
        ring->last_look->next = look;
    ring->last_look = look;
    wake_on_looks(&ring->wake);
    ring_unlock_due(session);
}

/* The dealing thread. Until no worker has the look, or none will take it. */
static void
wait_for_look(struct session *session, struct order_look *look, bool (*goes_on)(struct ring *))
{
    struct session_dealing *dealing = &session->dealing;
    struct ring *ring = &session->ring;

    must_hold(&ring->lock);
    must_in_debug(ring->awaited_look == NULL); /* by the dealing thread alone */
    if (look->state == LOOK_DONE)
        return;
    dealing_count(dealing, session->counters.stream, dealing->number);
    while (look->state != LOOK_DONE && goes_on(ring)) {
        int64_t began_ns = dealing->now_ns;

        ring->awaited_look = look;
        tnd_lock_wait(&ring->lock, &ring->space);
        dealing_count_wait(dealing, session->counters.stream, began_ns);
    }
    ring->awaited_look = NULL;
}

static bool
is_not_stopped(struct ring *ring)
{
    return !ring->draining;
}

static bool
is_made(struct ring *ring)
{
    (void)ring;
    return true;
}

static tundish_status
await(void *context, struct order_look *look)
{
    struct session *session = context;
    bool is_done;

    tnd_lock_take(&session->ring.lock);
    wait_for_look(session, look, is_not_stopped);
    is_done = look->state == LOOK_DONE;
    tnd_lock_release(&session->ring.lock);
    return is_done ? TUNDISH_OK
                   : tnd_fail(TUNDISH_STOPPED, "stopped while content was looked at for the order");
}

static void
drop_waiting(struct ring *ring, struct order_look *look)
{
    struct order_look *before = NULL;

    must_in_debug(look->state == LOOK_WAITS);
    must_hold(&ring->lock);
    must_in_debug(ring->first_look != NULL && ring->last_look != NULL);
    for (struct order_look *one = ring->first_look; one != look; one = one->next)
        before = one;
    if (before == NULL)
        ring->first_look = look->next;
    else
        before->next = look->next;
    if (ring->last_look == look)
        ring->last_look = before;
    look->state = LOOK_DONE;
}

/* A worker that has the look ends it also while the session is being stopped. */
static void
forget(void *context, struct order_look *look)
{
    struct session *session = context;

    tnd_lock_take(&session->ring.lock);
    if (look->state == LOOK_WAITS)
        drop_waiting(&session->ring, look);
    wait_for_look(session, look, is_made);
    must_in_debug(look->state == LOOK_DONE);
    tnd_lock_release(&session->ring.lock);
}

void
ring_give_looks(struct session *session)
{
    session->looks = (struct order_looks){
        .threads = session->worker_count,
        .context = session,
        .begin = begin,
        .await = await,
        .forget = forget,
    };
}

bool
ring_take_look(struct session *session, struct part *ret_part)
{
    struct ring *ring = &session->ring;
    struct order_look *look = ring->first_look;

    must_hold(&ring->lock);
    if (look == NULL)
        return false;
    must_in_debug(look->state == LOOK_WAITS);
    ring->first_look = look->next;
    look->state = LOOK_RUNS;
    /* Another one waits for trainers meanwhile. */
    if (ring->first_look != NULL || !ring->wake.a_worker_polls)
        wake_on_looks(&ring->wake);
    *ret_part = (struct part){ .look = look };
    return true;
}

void
ring_finish_look(struct worker *worker, struct order_look *look)
{
    struct ring *ring = &worker->session->ring;

    must_hold(&ring->lock);
    must(look->state == LOOK_RUNS);
    look->state = LOOK_DONE;
    if (ring->awaited_look == look)
        ring->wake.dealer_is_due = true;
    worker->now_ns = tnd_clock_ns();
}
