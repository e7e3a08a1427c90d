/* session_steps.c - the ring of steps: finding room for them, cutting them into parts, publishing.
 *
 * A step waits for slots, is opened by one worker, is made in parts by all, and is published by the
 * worker that finishes its last part. `unfinished` counts the parts in work, and one more while
 * parts are left to take. So it reaches 0 exactly once.
 */
#include "session/session_private.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "core/clock.h"
#include "core/log.h"
#include "core/must.h"
#include "deliver/wakeup.h"

/* Until the ring is looked at again that is full of steps which are being published. */
static const int64_t RETRY_NS = 100000;

struct step *
session_step(struct session *session, uint32_t index)
{
    uint32_t entry = session->ring.first + index;

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
    pthread_mutex_unlock(&session->ring.lock);
    if (whom.sleeper)
        pthread_cond_signal(&session->ring.work);
    if (whom.poller)
        wakeup_signal(session->wakeup);
    if (whom.dealer)
        pthread_cond_signal(&session->ring.space);
}

void
session_unlock_and_wake(struct session *session)
{
    unlock_for(session, wake_a_worker(&session->ring.wake));
}

void
session_unlock(struct session *session)
{
    unlock_for(session, wake_due(&session->ring.wake));
}

void
session_fail_step(struct step *step, tundish_status status)
{
    if (step->status != TUNDISH_OK)
        return;
    step->status = status;
    snprintf(step->text, sizeof step->text, "epoch %llu, step %llu: %.900s",
             (unsigned long long)step->epoch, (unsigned long long)step->number, tnd_error_text());
}

void
session_name_slot(const struct step *step, struct share *share)
{
    bool is_batch = step->kind == TND_SLOT_BATCH;

    share->slot.position = step->position;
    share->slot.epoch = step->epoch;
    share->slot.step = step->number;
    share->slot.kind = step->kind;
    share->slot.shard = is_batch ? step->shard : -1;
    share->slot.flags = is_batch ? step->flags : 0;
    /* A batch that fails becomes an ERROR first. Until then another thread may set its status. */
    share->slot.status = is_batch ? TUNDISH_OK : step->status;
    share->slot.text = is_batch ? NULL : step->text;
}

/* Find room for a share. True: there is room, or *failure says why there never will be. For a batch
 * this touches only the share and the lane, which has a lock of its own. So the session's lock need
 * not be held. */
static bool
open_share(struct session *session, struct step *step, uint32_t replica, tundish_status *failure)
{
    const struct deal_slice *slice;
    struct share *share = &step->shares[replica];
    struct lane *lane = feed_lane(session->feed, replica);
    tundish_status status;

    if (share->reserved)
        return true;
    if (step->kind == STEP_PASSED) {
        status = lane_pass(lane, step->position, step->passed_kind, step->epoch, step->number);
        share->reserved = status == TUNDISH_OK;
        return share->reserved;
    }
    if (step->kind != TND_SLOT_BATCH) {
        session_name_slot(step, share);
        status = lane_reserve(lane, &share->slot);
        share->reserved = status == TUNDISH_OK;
        return share->reserved;
    }
    if (!share->fill->in_place)
        /* The sizes are not known before the content is made: make_whole reserves. */
        return lane_has_slot(lane, step->position);
    slice = &step->round.slices[replica];
    if (share->rows_of_part == 0) {
        session_name_slot(step, share);
        share->rows = fill_rows(share->fill, slice);
        share->rows_of_part = fill_describe(share->fill, slice, &share->slot);
    }
    status = feed_reserve(session->feed, replica, &share->slot);
    if (status == TUNDISH_E_TIMEOUT) {
        fill_bring_near(slice);
        return false;
    }
    if (status != TUNDISH_OK)
        *failure = status;
    else
        fill_begin(share->fill, slice, &share->slot);
    share->reserved = status == TUNDISH_OK;
    return true;
}

/* Choose how each share is stored, once: all threads that make it must agree. Lanes differ by their
 * trainers, and a lane's trainers come and go. */
static void
choose_fills(struct session *session, struct step *step)
{
    for (uint32_t r = 0; r < session->plan->replicas; r++)
        if (step->shares[r].fill == NULL)
            step->shares[r].fill =
                session->packed.columns != NULL && lane_is_for_device(feed_lane(session->feed, r))
                    ? &session->packed
                    : &session->fill;
}

/* Find room for every share. Each lane is looked at, and laying texts out takes time in proportion
 * to the rows, so release the lock for batches. STEP_OPENING keeps other workers away from the step
 * meanwhile. */
static bool
open_shares(struct session *session, struct step *step)
{
    bool is_batch = step->kind == TND_SLOT_BATCH;
    bool is_long = is_batch && !wake_is_for_one(&session->ring.wake);
    tundish_status failure = TUNDISH_OK;
    bool all = true;

    must(step->state == STEP_WAITS);
    step->state = STEP_OPENING;
    if (is_long)
        session_unlock(session);
    if (is_batch)
        choose_fills(session, step);
    for (uint32_t r = 0; r < session->plan->replicas; r++) {
        step->shares[r].has_room = open_share(session, step, r, &failure);
        all &= step->shares[r].has_room;
    }
    if (is_long)
        pthread_mutex_lock(&session->ring.lock);
    must(step->state == STEP_OPENING);
    if (failure != TUNDISH_OK)
        session_fail_step(step, failure);
    step->state = all ? STEP_OPEN : STEP_WAITS;
    return all;
}

static void finish_step(struct worker *worker, struct step *step);
static void turn_to_error(struct session *session, struct step *step);

/* Try to open the step, and count how long each lane made it wait. */
static void
open_step(struct worker *worker, struct step *step)
{
    struct session *session = worker->session;
    bool all = open_shares(session, step);
    int64_t now_ns = 0;

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

    while (step->next_share < replicas && step->shares[step->next_share].fill->in_place &&
           step->shares[step->next_share].next_row == step->shares[step->next_share].rows)
        step->next_share++;
    return step->next_share < replicas;
}

/* Take the next part of an open step. The count for parts to come goes to the last one, so that
 * the worker that makes it publishes the step as soon as it is back. */
static bool
take_of_step(const struct session *session, struct step *step, struct part *ret_part)
{
    if (step->status != TUNDISH_OK || !has_part(session, step))
        return false;
    *ret_part = (struct part){ .step = step, .replica = step->next_share };
    if (step->shares[step->next_share].fill->in_place) {
        struct share *share = &step->shares[step->next_share];

        ret_part->begin = share->next_row;
        ret_part->end = share->rows - share->next_row > share->rows_of_part
                            ? share->next_row + share->rows_of_part
                            : share->rows;
        share->next_row = ret_part->end;
    } else {
        step->next_share++;
    }
    if (has_part(session, step))
        step->unfinished++;
    else
        step->next_share = UINT32_MAX;
    return true;
}

/* No part can be taken, of a step that has none or has failed: remove the count for the parts to
 * come. */
static void
settle_taken(struct worker *worker, struct step *step)
{
    must(step->state == STEP_OPEN && step->unfinished > 0);
    step->next_share = UINT32_MAX;
    if (--step->unfinished == 0)
        finish_step(worker, step);
}

bool
session_take_part(struct worker *worker, struct part *ret_part)
{
    struct session *session = worker->session;

    for (uint32_t i = 0; i < session->ring.count && !session->ring.paused; i++) {
        struct step *step = session_step(session, i);

        if (step->state == STEP_OPENING) {
            wake_on_missed(&session->ring.wake);
            return false;
        }
        if (step->state == STEP_WAITS && !find_room(worker, step))
            return false; /* later ones need the same lanes */
        if (step->state != STEP_OPEN || step->next_share == UINT32_MAX)
            continue;
        if (take_of_step(session, step, ret_part))
            return true;
        settle_taken(worker, step);
        i = UINT32_MAX; /* steps may have been removed: start at the first again */
    }
    wake_on_none(&session->ring.wake);
    return false;
}

void
session_take_more(struct part *part, int64_t times)
{
    struct share *share = &part->step->shares[part->replica];
    int64_t left = share->rows - share->next_row, more;

    if (!share->fill->in_place || share->next_row != part->end || times <= 1)
        return;
    more = share->rows_of_part * (times - 1);
    part->end += more < left ? more : left;
    share->next_row = part->end;
}

static void
drop_finished(struct session *session)
{
    /* Steps finish in any order, but the ring only shrinks at its first step. */
    while (session->ring.count > 0 && session_step(session, 0)->state == STEP_DONE) {
        struct step *step = session_step(session, 0);

        deal_round_forget(&step->round); /* of a batch: already forgotten */
        if (step->kind == TND_SLOT_BATCH) {
            session->ring.last_epoch = step->epoch;
            session->ring.last_number = step->number;
        }
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
    must(step->status != TUNDISH_OK && step->state != STEP_OPENING && step->state != STEP_DONE);
    for (uint32_t r = 0; r < session->plan->replicas; r++) {
        struct share *share = &step->shares[r];

        if (share->reserved)
            lane_cancel(feed_lane(session->feed, r), &share->slot);
        share->reserved = false;
    }
    step->kind = TND_SLOT_ERROR;
    step->state = STEP_WAITS;
    session->ring.failed = true;
    tnd_log(TND_LOG_ERROR, "stream", "%s: %s", session->plan->stream->name, step->text);
    if (!step->from_outside)
        session_link_tell_error(session, step->epoch, step->number, step->status, step->text);
}

/* The first step of the ring that is not published, or a new one if there is none. NULL: the ring
 * is full of steps that are being published. */
static struct step *
step_to_fail(struct session *session)
{
    uint64_t epoch = session->ring.last_epoch, number = session->ring.last_number;
    struct step *step;
    uint32_t index = 0;

    for (; index < session->ring.count; index++) {
        step = session_step(session, index);
        if (step->state != STEP_PUBLISHING && step->state != STEP_DONE)
            return step;
        epoch = step->epoch;
        number = step->number;
    }
    if (index == session->ring.capacity)
        return NULL;
    step = session_step(session, index);
    *step = (struct step){
        .shares = step->shares,
        .kind = TND_SLOT_ERROR,
        .position = session->ring.next_position++,
        .epoch = epoch,
        .number = number + 1,
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
    return !session->ring.failed && !session->ring.draining && !session->ring.ended;
}

void
session_fail(struct session *session, tundish_status status, const char *text, bool kept)
{
    struct step *step = NULL;

    pthread_mutex_lock(&session->ring.lock);
    while (can_fail(session) && (step = step_to_fail(session)) == NULL) {
        pthread_mutex_unlock(&session->ring.lock);
        nanosleep(&(struct timespec){ .tv_nsec = RETRY_NS }, NULL);
        pthread_mutex_lock(&session->ring.lock);
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
    } else if (kept && session->ring.draining && session->ring.kept_status == TUNDISH_OK) {
        session->ring.kept_status = status;
        snprintf(session->ring.kept_text, sizeof session->ring.kept_text, "%.1000s", text);
    }
    session_unlock_and_wake(session);
}

void
session_fail_as_kept(struct session *session)
{
    tundish_status status;
    char text[sizeof session->ring.kept_text];

    pthread_mutex_lock(&session->ring.lock);
    status = session->ring.kept_status;
    memcpy(text, session->ring.kept_text, sizeof text);
    session->ring.kept_status = TUNDISH_OK;
    pthread_mutex_unlock(&session->ring.lock);
    if (status != TUNDISH_OK)
        session_fail(session, status, text, true);
}

/* Rows of a batch in its slot, as its first column says. */
static uint64_t
rows_of(const struct slot *slot)
{
    return slot->column_count > 0 && slot->columns[0].shape[0] > 0
               ? (uint64_t)slot->columns[0].shape[0]
               : 0;
}

/* Sealed in every lane before one shows it: if the server dies between two lanes, a trainer that
 * was shown the stream's end may leave, and the next server can still give it to the others
 * (lane.h). */
static void
publish_shares(struct session *session, struct step *step)
{
    if (session->plan->replicas == 1) {
        lane_seal_and_publish(feed_lane(session->feed, 0), &step->shares[0].slot);
        return;
    }
    for (uint32_t r = 0; r < session->plan->replicas; r++)
        lane_seal(feed_lane(session->feed, r), &step->shares[r].slot);
    for (uint32_t r = 0; r < session->plan->replicas; r++)
        lane_publish(feed_lane(session->feed, r), &step->shares[r].slot);
}

/* Checksums read every byte of the batch, and trainers are woken: without the lock. Every part is
 * made, so no other worker touches the step. Returns its rows. */
static uint64_t
publish_batch(struct session *session, struct step *step)
{
    uint64_t rows = 0;

    for (uint32_t r = 0; r < session->plan->replicas; r++)
        rows += rows_of(&step->shares[r].slot);
    publish_shares(session, step);
    deal_round_forget(&step->round);
    return rows;
}

static void
finish_step(struct worker *worker, struct step *step)
{
    struct session *session = worker->session;

    must(step->unfinished == 0 && step->state == STEP_OPEN);
    if (step->kind == TND_SLOT_BATCH && step->status != TUNDISH_OK) {
        turn_to_error(session, step);
        return;
    }
    if (step->kind == TND_SLOT_BATCH) {
        uint64_t rows;

        step->state = STEP_PUBLISHING;
        session_unlock(session);
        rows = publish_batch(session, step);
        worker->now_ns = tnd_clock_ns();
        pthread_mutex_lock(&session->ring.lock);
        session->ring.rows_published += rows;
        session->ring.steps_published++;
        tnd_stats_observe(&session->counters.stream->step_make,
                          (uint64_t)(worker->now_ns - step->opened_ns));
    } else if (step->kind != STEP_PASSED) {
        publish_shares(session, step);
    }
    if (step->kind == TND_SLOT_END_OF_STREAM)
        session->ring.ended = true;
    step->state = STEP_DONE;
    drop_finished(session);
}

static void
finish_part(struct worker *worker, struct step *step, tundish_status status)
{
    if (status != TUNDISH_OK)
        session_fail_step(step, status);
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

    worker->skipped = worker->evaluation.skipped;
    return skips_add(&session->ring.skips, fresh, worker->evaluation.skipped_text);
}

void
session_finish_part(struct worker *worker, const struct part *part, tundish_status status)
{
    if (status == TUNDISH_OK)
        status = add_skips(worker->session, worker);
    /* Cut short by a stop: the step stays unfinished, and session_halt drops it. */
    if (status == TUNDISH_STOPPED && atomic_load(&worker->session->stop)) {
        worker->now_ns = tnd_clock_ns();
        return;
    }
    finish_part(worker, part->step, status);
}
