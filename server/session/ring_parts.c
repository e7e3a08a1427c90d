/* ring_parts.c - workers at the ring: they open steps, take and finish parts, and wait for work.
 *
 * `unfinished` of a step counts the parts in work, and one more while parts are left to take. So it
 * reaches 0 exactly once.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "core/clock.h"
#include "core/log.h"
#include "core/must.h"
#include "deliver/wakeup.h"
#include "session/ring.h"
#include "session/session_private.h"

/* Until the ring is looked at again that is full of steps which are being published. */
static const int64_t RETRY_NS = 100000;
/* A worker without work polls this long before it sleeps: about the cost of waking it. */
static const int64_t SPIN_NS = 20000;

struct step *
ring_step(struct session *session, uint32_t index)
{
    uint32_t entry = session->ring.first + index;

    must_in_debug(index < session->ring.capacity && session->ring.steps != NULL);
    /* No division: this is called several times a step. */
    if (entry >= session->ring.capacity)
        entry -= session->ring.capacity;
    return &session->ring.steps[entry];
}

/* Threads are woken after the lock is released: the kernel may run a woken thread at once, and that
 * one would wait for the lock. */
static void
unlock_for(struct session *session, struct wake_whom whom)
{
    tnd_lock_release(&session->ring.lock);
    if (whom.sleeper)
        pthread_cond_signal(&session->ring.work);
    if (whom.poller)
        wakeup_signal(session->wakeup);
    if (whom.dealer)
        pthread_cond_signal(&session->ring.space);
}

void
ring_unlock_and_wake(struct session *session)
{
    must_hold(&session->ring.lock);
    unlock_for(session, wake_a_worker(&session->ring.wake));
}

void
ring_unlock_due(struct session *session)
{
    must_hold(&session->ring.lock);
    if (wake_is_anyone_due(&session->ring.wake))
        unlock_for(session, wake_due(&session->ring.wake));
    else
        tnd_lock_release(&session->ring.lock);
}

static void finish_step(struct worker *worker, struct step *step);
static void turn_to_error(struct session *session, struct step *step);

/* Find room for every share. That takes long for batches, so release the lock for them. */
static bool
open_shares(struct session *session, struct step *step)
{
    bool is_batch = step->kind == TND_SLOT_BATCH;
    bool is_long = is_batch && !wake_is_for_one(&session->ring.wake);
    tundish_status failure = TUNDISH_OK;
    bool all;

    must_hold(&session->ring.lock);
    must(step->state == STEP_WAITS);
    step->state = STEP_OPENING;
    if (is_long)
        ring_unlock_due(session);
    all = step_find_room(session, step, &failure);
    if (is_long)
        tnd_lock_take(&session->ring.lock);
    must(step->state == STEP_OPENING);
    if (failure != TUNDISH_OK)
        step_fail(step, failure);
    step->state = all ? STEP_OPEN : STEP_WAITS;
    return all;
}

/* Try to open the step, and count how long each lane made it wait. */
static void
open_step(struct worker *worker, struct step *step)
{
    struct session *session = worker->session;
    bool all = open_shares(session, step);
    int64_t now_ns = 0;

    must_in_debug(step->dealt_ns > 0);
    for (uint32_t r = 0; r < session->plan->replicas; r++) {
        struct share *share = &step->shares[r];

        if (!share->has_room || share->had_room)
            continue;
        share->had_room = true;
        if (now_ns == 0)
            now_ns = tnd_clock_ns();
        tnd_stats_observe(&session->counters.lanes[r].values->slot_wait,
                          (uint64_t)(now_ns - step->dealt_ns));
    }
    if (!all)
        return;
    step->opened_ns = worker->now_ns = now_ns != 0 ? now_ns : tnd_clock_ns();
    tnd_stats_observe(&session->counters.stream->slot_wait,
                      (uint64_t)(step->opened_ns - step->dealt_ns));
    /* The count for the parts to come: without it the first finished part would publish the
     * step. */
    step->unfinished = 1;
    step->next_share = step->kind == TND_SLOT_BATCH ? 0 : session->plan->replicas;
}

/* Open the step; false: there is no room. */
static bool
find_room(struct worker *worker, struct step *step)
{
    struct session *session = worker->session;
    struct wake *wake = &session->ring.wake;

    must_hold(&session->ring.lock);
    do {
        wake_on_look(wake);
        open_step(worker, step);
        if (step->state == STEP_WAITS && step->kind == TND_SLOT_BATCH &&
            step->status != TUNDISH_OK) { /* failed from outside, while it was being opened */
            turn_to_error(session, step);
            wake_on_missed(wake);
        }
    } while (step->state == STEP_WAITS && wake_must_look_again(wake));
    wake_on_looked(wake, step->state != STEP_WAITS);
    return step->state != STEP_WAITS;
}

/* Pass over shares whose rows are all taken. False: no part is left to take. */
static bool
has_part(const struct session *session, struct step *step)
{
    uint32_t replicas = session->plan->replicas;

    must_hold(&session->ring.lock);
    while (step->next_share < replicas && step->shares[step->next_share].fill->in_place &&
           step->shares[step->next_share].next_row == step->shares[step->next_share].rows)
        step->next_share++;
    return step->next_share < replicas;
}

/* Take the next part of an open step; false: none is left, or the step has failed. */
static bool
take_of_step(const struct session *session, struct step *step, struct part *ret_part)
{
    must_hold(&session->ring.lock);
    must_in_debug(step->state == STEP_OPEN && step->next_share != UINT32_MAX);
    if (step->status != TUNDISH_OK || !has_part(session, step))
        return false;
    must_in_debug(step->next_share < session->plan->replicas);
    *ret_part = (struct part){ .step = step, .replica = step->next_share };
    if (step->shares[step->next_share].fill->in_place) {
        struct share *share = &step->shares[step->next_share];

        ret_part->begin = share->next_row;
        ret_part->end = share->rows - share->next_row > share->rows_of_part
                            ? share->next_row + share->rows_of_part
                            : share->rows;
        share->next_row = ret_part->end;
    } else {
        /* Who makes a batch to cut a slice from it cuts all its slices. */
        if (session->plan->cuts_batches)
            ret_part->more = session->plan->replicas - 1 - step->next_share;
        step->next_share += 1 + ret_part->more;
    }
    /* The count for parts to come goes to the last one, so that the worker that makes it publishes
     * the step as soon as it is back. */
    if (has_part(session, step))
        step->unfinished++;
    else
        step->next_share = UINT32_MAX;
    return true;
}

void
ring_take_more(struct part *part, int64_t times)
{
    struct share *share = &part->step->shares[part->replica];
    int64_t left = share->rows - share->next_row, more;

    must_in_debug(part->step->state == STEP_OPEN && left >= 0);
    if (!share->fill->in_place || share->next_row != part->end || times <= 1)
        return;
    more = share->rows_of_part * (times - 1);
    part->end += more < left ? more : left;
    must_in_debug(part->end <= share->rows);
    share->next_row = part->end;
}

/* Has the step parts that no worker has taken? */
static bool
has_parts_left(const struct session *session, const struct step *step)
{
    uint32_t last = session->plan->replicas - 1;

    must_hold(&session->ring.lock);
    return step->next_share < last ||
           (step->next_share == last && step->shares[last].fill->in_place &&
            step->shares[last].next_row < step->shares[last].rows);
}

/* No part can be taken, of a step that has none or has failed: remove the count for the parts to
 * come. */
static void
settle_taken(struct worker *worker, struct step *step)
{
    must_hold(&worker->session->ring.lock);
    must(step->state == STEP_OPEN && step->unfinished > 0);
    step->next_share = UINT32_MAX;
    if (--step->unfinished == 0)
        finish_step(worker, step);
}

bool
ring_take_part(struct worker *worker, struct part *ret_part)
{
    struct session *session = worker->session;
    uint32_t i = 0;

    must_hold(&session->ring.lock);
    while (i < session->ring.count && !session->ring.paused) {
        struct step *step = ring_step(session, i);

        if (step->state == STEP_OPENING) {
            wake_on_missed(&session->ring.wake);
            return false;
        }
        if (step->state == STEP_WAITS && !find_room(worker, step))
            return false; /* later ones need the same lanes */
        if (step->state != STEP_OPEN || step->next_share == UINT32_MAX) {
            i++;
            continue;
        }
        if (take_of_step(session, step, ret_part))
            return true;
        settle_taken(worker, step);
        i = 0; /* steps may have been removed */
    }
    wake_on_none(&session->ring.wake);
    return false;
}

static void
note_next(const struct step *step, uint64_t *ret_epoch, uint64_t *ret_number)
{
    bool is_end = (step->kind == STEP_PASSED ? step->passed_kind : step->kind) == TND_SLOT_END;

    *ret_epoch = step->epoch + is_end;
    *ret_number = is_end ? 0 : step->number + 1;
}

static void
drop_finished(struct session *session)
{
    must_hold(&session->ring.lock);
    /* Steps finish in any order, but the ring only shrinks at its first step. */
    while (session->ring.count > 0 && ring_step(session, 0)->state == STEP_DONE) {
        struct step *step = ring_step(session, 0);

        must_in_debug(step->unfinished == 0);
        dealer_forget_round(&step->round); /* of a batch: already forgotten */
        if (step->kind == TND_SLOT_BATCH) {
            session->ring.last_epoch = step->epoch;
            session->ring.last_number = step->number;
        }
        note_next(step, &session->ring.next_epoch, &session->ring.next_number);
        step->state = STEP_EMPTY;
        session->ring.first = (session->ring.first + 1) % session->ring.capacity;
        session->ring.count--;
    }
    wake_on_drop(&session->ring.wake, session->ring.count);
}

/* A failed step becomes an error in every lane, after which the stream has no more steps. It waits
 * for slots again, since an ERROR needs one in each lane. */
static void
turn_to_error(struct session *session, struct step *step)
{
    must_hold(&session->ring.lock);
    must(step->status != TUNDISH_OK && step->state != STEP_OPENING && step->state != STEP_DONE);
    must_in_debug(step->state != STEP_PUBLISHING);
    step_cancel(session, step);
    step->kind = TND_SLOT_ERROR;
    step->state = STEP_WAITS;
    session->ring.failed = true;
    tnd_log(TND_LOG_ERROR, "stream", "%s: %s", session->plan->stream->name, step->text);
    if (!step->from_outside)
        session->nodes->tell_error(session, step->epoch, step->number, step->status, step->text);
}

/* The first step of the ring that is not published, or a new one if there is none. NULL: the ring
 * is full of steps that are being published. */
static struct step *
step_to_fail(struct session *session)
{
    uint64_t epoch = session->ring.next_epoch, number = session->ring.next_number;
    struct step *step;
    uint32_t index = 0;

    must_hold(&session->ring.lock);
    for (; index < session->ring.count; index++) {
        step = ring_step(session, index);
        if (step->state != STEP_PUBLISHING && step->state != STEP_DONE)
            return step;
        note_next(step, &epoch, &number);
    }
    if (index == session->ring.capacity)
        return NULL;
    step = ring_step(session, index);
    must_in_debug(step->state == STEP_EMPTY);
    *step = (struct step){
        .shares = step->shares,
        .kind = TND_SLOT_ERROR,
        .position = session->ring.next_position++,
        .dealt_ns = tnd_clock_ns(),
        .epoch = epoch,
        .number = number,
        .round = step->round, /* of the step that was here before */
    };
    for (uint32_t r = 0; r < session->plan->replicas; r++)
        step->shares[r].reserved = false;
    session->ring.count++;
    return step;
}

static bool
can_fail(const struct session *session)
{
    must_hold(&session->ring.lock);
    return !session->ring.failed && !session->ring.draining && !session->ring.ended;
}

void
ring_fail(struct session *session, tundish_status status, const char *text, bool kept)
{
    struct step *step = NULL;

    must_in_debug(status != TUNDISH_OK);
    tnd_lock_take(&session->ring.lock);
    while (can_fail(session) && (step = step_to_fail(session)) == NULL) {
        tnd_lock_release(&session->ring.lock);
        nanosleep(&(struct timespec){ .tv_nsec = RETRY_NS }, NULL);
        tnd_lock_take(&session->ring.lock);
    }
    if (can_fail(session)) {
        step->status = status;
        snprintf(step->text, sizeof step->text, "%.1000s", text);
        step->from_outside = true;
        session->ring.failed = true;
        /* A step that is being opened or made belongs to its workers. They see its status and turn
         * it themselves. */
        if (step->state == STEP_WAITS || step->state == STEP_EMPTY)
            turn_to_error(session, step);
        pthread_cond_broadcast(&session->ring.space);
    } else if (session->ring.ended && !session->ring.failed && !session->ring.draining &&
               status != TUNDISH_E_PEER_LOST) {
        /* Its trainers have all there is, but they begin again together with the others. */
        session->ring.failed = true;
        tnd_log(TND_LOG_ERROR, "stream", "%s: %s", session->plan->stream->name, text);
    } else if (kept && session->ring.draining && session->ring.kept_status == TUNDISH_OK) {
        session->ring.kept_status = status;
        snprintf(session->ring.kept_text, sizeof session->ring.kept_text, "%.1000s", text);
    }
    ring_unlock_and_wake(session);
}

void
ring_fail_as_kept(struct session *session)
{
    tundish_status status;
    char text[sizeof session->ring.kept_text];

    tnd_lock_take(&session->ring.lock);
    status = session->ring.kept_status;
    memcpy(text, session->ring.kept_text, sizeof text);
    session->ring.kept_status = TUNDISH_OK;
    tnd_lock_release(&session->ring.lock);
    if (status != TUNDISH_OK)
        ring_fail(session, status, text, true);
}

static void
finish_step(struct worker *worker, struct step *step)
{
    struct session *session = worker->session;

    must_hold(&session->ring.lock);
    must(step->unfinished == 0 && step->state == STEP_OPEN);
    if (step->kind == TND_SLOT_BATCH && step->status != TUNDISH_OK) {
        turn_to_error(session, step);
        return;
    }
    if (step->kind == TND_SLOT_BATCH) {
        uint64_t rows;

        step->state = STEP_PUBLISHING;
        ring_unlock_due(session);
        rows = step_publish(session, step);
        worker->now_ns = tnd_clock_ns();
        tnd_lock_take(&session->ring.lock);
        session->ring.rows_published += rows;
        session->ring.steps_published++;
        tnd_stats_observe(&session->counters.stream->step_make,
                          (uint64_t)(worker->now_ns - step->opened_ns));
    } else if (step->kind != STEP_PASSED) {
        (void)step_publish(session, step);
    }
    if (step->kind == TND_SLOT_END_OF_STREAM)
        session->ring.ended = true;
    step->state = STEP_DONE;
    drop_finished(session);
}

static void
finish_part(struct worker *worker, struct step *step, tundish_status status)
{
    must_hold(&worker->session->ring.lock);
    if (status != TUNDISH_OK)
        step_fail(step, status);
    must(step->state == STEP_OPEN && step->unfinished > 0);
    if (--step->unfinished == 0 && step->status == TUNDISH_OK) {
        finish_step(worker, step); /* which reads the clock when it has published */
        return;
    }
    worker->now_ns = tnd_clock_ns();
    if (step->unfinished == 0)
        finish_step(worker, step);
}

/* Count the rows that the worker left out since the last call. */
static tundish_status
add_skips(struct session *session, struct worker *worker)
{
    uint64_t fresh = worker->evaluation.skipped - worker->skipped;

    must_hold(&session->ring.lock);
    must_in_debug(worker->evaluation.skipped >= worker->skipped);
    worker->skipped = worker->evaluation.skipped;
    return skips_add(&session->ring.skips, fresh, worker->evaluation.skipped_text);
}

void
ring_finish(struct worker *worker, const struct part *part, tundish_status status)
{
    must_hold(&worker->session->ring.lock);
    if (status == TUNDISH_OK)
        status = add_skips(worker->session, worker);
    /* Cut short by a stop: the step stays unfinished, and ring_clear drops it. */
    if (status == TUNDISH_STOPPED && atomic_load(&worker->session->stop)) {
        worker->now_ns = tnd_clock_ns();
        return;
    }
    finish_part(worker, part->step, status);
}
/* Does a worker without work wait for slots, or for steps? */
static enum worker_wait
waits_for(struct session *session)
{
    must_hold(&session->ring.lock);
    return session->ring.count > 0 &&
                   ring_step(session, session->ring.count - 1)->state == STEP_WAITS
               ? WAITS_FOR_SLOTS
               : WAITS_FOR_STEPS;
}

/* No part can be taken. One worker waits for the wakeup of trainers' releases, the others for that
 * worker. A step that is added between the unlock and wakeup_wait is not missed: ring_push sees
 * under the lock that a worker polls, and then signals the wakeup, which remembers it. Looking for
 * a part may have released the lock: if the session was stopped meanwhile, its signal may be gone,
 * taken by another worker. */
static void
wait_for_work(struct session *session, struct worker *worker)
{
    bool polls;

    must_hold(&session->ring.lock);
    if (atomic_load_explicit(&session->stop, memory_order_relaxed))
        return;
    worker_note_wait(worker, waits_for(session));
    polls = wake_on_wait(&session->ring.wake);
    if (!polls) {
        if (wake_due_dealer(&session->ring.wake))
            pthread_cond_signal(&session->ring.space);
        tnd_lock_wait(&session->ring.lock, &session->ring.work);
    } else {
        ring_unlock_due(session);
        wakeup_wait(session->wakeup, SPIN_NS, -1);
        tnd_lock_take(&session->ring.lock);
        if (session->options.shards != NULL) /* its reader may have asked */
            pthread_cond_signal(&session->ring.space);
    }
    wake_on_return(&session->ring.wake, polls);
}

bool
ring_take(struct worker *worker, struct part *ret_part)
{
    struct session *session = worker->session;
    bool wakes;

    must_hold(&session->ring.lock);
    for (;;) {
        if (atomic_load_explicit(&session->stop, memory_order_relaxed)) {
            /* Other workers may wait for the one that polled. */
            pthread_cond_broadcast(&session->ring.work);
            if (wake_due_dealer(&session->ring.wake)) /* it may wait for a look to end */
                pthread_cond_signal(&session->ring.space);
            tnd_lock_release(&session->ring.lock);
            return false;
        }
        if (ring_take_look(session, ret_part))
            break;
        /* Enough: this worker and another. */
        if (!wake_has_enough(&session->ring.wake, 2) && ring_take_part(worker, ret_part))
            break;
        wait_for_work(session, worker);
    }
    worker_note_wait(worker, WAITS_FOR_NOTHING);
    /* Under the lock, so in the order in which parts are taken. */
    budget_begin(&worker->memory);
    if (ret_part->look != NULL) {
        ring_unlock_due(session);
        return true;
    }
    must_in_debug(ret_part->step->state == STEP_OPEN && ret_part->step->unfinished > 0);
    wakes = wake_on_take(worker->part_ns, has_parts_left(session, ret_part->step));
    if (wakes)
        helpers_wake(session->helpers);
    ring_unlock_due(session);
    if (wakes)
        pthread_cond_signal(&session->ring.work);
    return true;
}

void
ring_note_made(struct worker *worker, int64_t busy_ns)
{
    must_hold(&worker->session->ring.lock);
    wake_on_made(&worker->session->ring.wake, worker->part_ns, busy_ns, worker->now_ns);
}

void
ring_wait(struct session *session, pthread_cond_t *condition, int64_t wait_ns)
{
    int64_t until_ns = tnd_clock_deadline_ns(wait_ns);
    struct timespec until = { .tv_sec = until_ns / 1000000000, .tv_nsec = until_ns % 1000000000 };

    must_hold(&session->ring.lock);
    if (wake_is_anyone_due(&session->ring.wake)) {
        ring_unlock_due(session);
        tnd_lock_take(&session->ring.lock);
    }
    if (atomic_load_explicit(&session->stop, memory_order_relaxed) != 0)
        return;
    tnd_lock_wait_until(&session->ring.lock, condition, &until);
}
