/* session_work.c - workers take steps from the ring, make their content and publish them.
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

/* A worker without work polls this long before it sleeps: about the cost of waking it. */
static const int64_t SPIN_NS = 20000;
static const int64_t RETRY_NS = 100000;
/* Parts that take less time than this are not worth waking another worker. */
static const int64_t SHORT_NS = 20000;
/* The average time of a part covers about this many parts. */
enum { PARTS_REMEMBERED = 8 };

struct step *
session_step(struct session *session, uint32_t index)
{
    return &session->ring.steps[(session->ring.first + index) % session->ring.capacity];
}

/* Only the worker that waits for the wakeup needs its signal: without one, the call would cost a
 * system call for each step. */
void
session_wake(struct session *session)
{
    pthread_cond_signal(&session->ring.work);
    if (session->ring.a_worker_polls)
        wakeup_signal(session->wakeup);
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

static void
name_slot(const struct step *step, struct share *share)
{
    share->slot.position = step->position;
    share->slot.epoch = step->epoch;
    share->slot.step = step->number;
    share->slot.kind = TND_SLOT_BATCH;
    share->slot.shard = step->shard;
    share->slot.flags = step->flags;
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
        status = lane_publish_end(lane, step->position, step->kind, step->epoch, step->number,
                                  step->status, step->text);
        share->reserved = status == TUNDISH_OK;
        return share->reserved;
    }
    if (!share->fill->in_place)
        /* The sizes are not known before the content is made: make_whole reserves. */
        return lane_has_slot(lane, step->position);
    slice = &step->round.slices[replica];
    if (share->rows_of_part == 0) {
        name_slot(step, share);
        share->rows = fill_rows(share->fill, slice);
        share->rows_of_part = fill_describe(share->fill, slice, &share->slot);
    }
    status = feed_reserve(session->feed, replica, &share->slot);
    if (status == TUNDISH_E_TIMEOUT)
        return false;
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

/* Find room for every share. Laying texts out takes time in proportion to the rows, so release the
 * lock for it. STEP_OPENING keeps other workers away from the step meanwhile. */
static bool
open_shares(struct session *session, struct step *step)
{
    bool lays_out =
        step->kind == TND_SLOT_BATCH && session->fill.in_place && !session->fill.is_even;
    tundish_status failure = TUNDISH_OK;
    bool all = true;

    must(step->state == STEP_WAITS);
    step->state = STEP_OPENING;
    if (step->kind == TND_SLOT_BATCH)
        choose_fills(session, step);
    if (lays_out)
        pthread_mutex_unlock(&session->ring.lock);
    for (uint32_t r = 0; r < session->plan->replicas; r++) {
        step->shares[r].has_room = open_share(session, step, r, &failure);
        all &= step->shares[r].has_room;
    }
    if (lays_out)
        pthread_mutex_lock(&session->ring.lock);
    must(step->state == STEP_OPENING);
    if (failure != TUNDISH_OK)
        session_fail_step(step, failure);
    step->state = all ? STEP_OPEN : STEP_WAITS;
    return all;
}

static void finish_step(struct session *session, struct step *step);
static void turn_to_error(struct session *session, struct step *step);

/* Try to open the step, and count how long each lane made it wait. */
static void
open_step(struct session *session, struct step *step)
{
    int64_t now_ns = tnd_clock_ns();
    bool all = open_shares(session, step);

    for (uint32_t r = 0; r < session->plan->replicas; r++) {
        struct share *share = &step->shares[r];

        if (share->has_room && !share->had_room)
            tnd_stats_observe(&session->counters.lanes[r].values->slot_wait,
                              (uint64_t)(now_ns - step->dealt_ns));
        share->had_room |= share->has_room;
    }
    if (!all)
        return;
    step->opened_ns = now_ns;
    tnd_stats_observe(&session->counters.stream->slot_wait,
                      (uint64_t)(step->opened_ns - step->dealt_ns));
    /* The count for the parts to come: without it the first finished part would publish the
     * step. */
    step->unfinished = 1;
    step->next_share = step->kind == TND_SLOT_BATCH ? 0 : session->plan->replicas;
}

/* Open the step, or note that there is no room. Then the dealer wakes no worker for further steps:
 * they need the same lanes, and the worker that waits for the wakeup comes when a slot is released.
 * `lacking` counts down from 2, since one step that finds room does not mean that the next one
 * will. A worker that came during STEP_OPENING may have consumed the wakeup for a release, so look
 * again for it: its wake-up would be lost otherwise. */
static bool
find_room(struct session *session, struct step *step)
{
    do {
        session->ring.missed_room = false;
        open_step(session, step);
        if (step->state == STEP_WAITS && step->kind == TND_SLOT_BATCH &&
            step->status != TUNDISH_OK) { /* failed from outside, while it was being opened */
            turn_to_error(session, step);
            session->ring.missed_room = true;
        }
    } while (step->state == STEP_WAITS && session->ring.missed_room);
    if (step->state == STEP_WAITS) {
        session->ring.lacking = 2;
        return false;
    }
    session->ring.lacking -= session->ring.lacking > 0;
    return true;
}

struct part {
    struct step *step;
    uint32_t replica;
    int64_t begin, end; /* rows; whole slices: not used */
};

/* Take the next part of an open step. */
static bool
take_of_step(struct session *session, struct step *step, struct part *ret_part)
{
    uint32_t replicas = session->plan->replicas;

    while (step->status == TUNDISH_OK && step->next_share < replicas &&
           step->shares[step->next_share].fill->in_place &&
           step->shares[step->next_share].next_row == step->shares[step->next_share].rows)
        step->next_share++;
    if (step->next_share >= replicas || step->status != TUNDISH_OK)
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
    step->unfinished++;
    return true;
}

/* All parts have been taken: remove the count for the parts to come. */
static void
settle_taken(struct session *session, struct step *step)
{
    must(step->state == STEP_OPEN && step->unfinished > 0);
    step->next_share = UINT32_MAX;
    if (--step->unfinished == 0)
        finish_step(session, step);
}

static bool
take_part(struct session *session, struct part *ret_part)
{
    for (uint32_t i = 0; i < session->ring.count && !session->ring.paused; i++) {
        struct step *step = session_step(session, i);

        if (step->state == STEP_OPENING) {
            /* This worker may have been woken for room, and goes away. */
            session->ring.missed_room = true;
            return false;
        }
        if (step->state == STEP_WAITS && !find_room(session, step))
            return false; /* later ones need the same lanes */
        if (step->state != STEP_OPEN || step->next_share == UINT32_MAX)
            continue;
        if (take_of_step(session, step, ret_part))
            return true;
        settle_taken(session, step);
        i = UINT32_MAX; /* steps may have been removed: start at the first again */
    }
    session->ring.lacking =
        0; /* steps are what is missing: the dealer wakes a worker for the next one */
    return false;
}

static void
drop_finished(struct session *session)
{
    /* Steps finish in any order, but the ring only shrinks at its first step. */
    while (session->ring.count > 0 && session_step(session, 0)->state == STEP_DONE) {
        struct step *step = session_step(session, 0);

        deal_round_release(&step->round);
        step->state = STEP_EMPTY;
        session->ring.first = (session->ring.first + 1) % session->ring.capacity;
        session->ring.count--;
    }
    /* Waking the dealer costs as much as making a small batch, so do it once for many steps. */
    if (session->ring.count <= session->ring.dealer_wakes_at)
        pthread_cond_signal(&session->ring.space);
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

/* The first step of the ring, or a new one if the ring is empty. */
static struct step *
step_to_fail(struct session *session)
{
    struct step *step = session_step(session, 0);

    if (session->ring.count > 0)
        return step;
    *step = (struct step){
        .shares = step->shares,
        .kind = TND_SLOT_ERROR,
        .position = session->ring.next_position++,
        .epoch = session->ring.last_epoch,
        .number = session->ring.last_number + 1,
    };
    for (uint32_t r = 0; r < session->plan->replicas; r++)
        step->shares[r].reserved = false;
    session->ring.count = 1;
    return step;
}

void
session_fail(struct session *session, tundish_status status, const char *text)
{
    struct step *step;

    pthread_mutex_lock(&session->ring.lock);
    if (!session->ring.failed && !session->ring.draining && !session->ring.ended) {
        step = step_to_fail(session);
        step->status = status;
        snprintf(step->text, sizeof step->text, "%.1000s", text);
        step->from_outside = true;
        session->ring.failed = true;
        /* A step that is being opened or made belongs to its workers. They see its status and turn
         * it themselves. */
        if (step->state == STEP_WAITS || step->state == STEP_EMPTY)
            turn_to_error(session, step);
        pthread_cond_broadcast(&session->ring.space);
        session_wake(session);
    }
    pthread_mutex_unlock(&session->ring.lock);
}

/* Rows of a batch in its slot, as its first column says. */
static uint64_t
rows_of(const struct slot *slot)
{
    return slot->column_count > 0 && slot->columns[0].shape[0] > 0
               ? (uint64_t)slot->columns[0].shape[0]
               : 0;
}

/* Checksums read every byte of the batch, so release the lock. All parts of the step are made, and
 * no part is left to take: no other worker touches it. */
static void
seal_step(struct session *session, struct step *step)
{
    if (!session->plan->stream->deliver.checksums || step->kind != TND_SLOT_BATCH ||
        step->status != TUNDISH_OK)
        return;
    pthread_mutex_unlock(&session->ring.lock);
    for (uint32_t r = 0; r < session->plan->replicas; r++)
        lane_seal(feed_lane(session->feed, r), &step->shares[r].slot);
    pthread_mutex_lock(&session->ring.lock);
}

static void
finish_step(struct session *session, struct step *step)
{
    must(step->unfinished == 0 && step->state == STEP_OPEN);
    seal_step(session, step);
    if (step->kind == TND_SLOT_BATCH && step->status != TUNDISH_OK) {
        turn_to_error(session, step);
        return;
    }
    if (step->kind == TND_SLOT_BATCH) {
        for (uint32_t r = 0; r < session->plan->replicas; r++) {
            session->ring.rows_published += rows_of(&step->shares[r].slot);
            lane_publish(feed_lane(session->feed, r), &step->shares[r].slot);
        }
        session->ring.steps_published++;
        tnd_stats_observe(&session->counters.stream->step_make,
                          (uint64_t)(tnd_clock_ns() - step->opened_ns));
        session->ring.last_epoch = step->epoch;
        session->ring.last_number = step->number;
    }
    if (step->kind == TND_SLOT_END_OF_STREAM)
        session->ring.ended = true;
    step->state = STEP_DONE;
    drop_finished(session);
}

static void
finish_part(struct session *session, struct step *step, tundish_status status)
{
    if (status != TUNDISH_OK)
        session_fail_step(step, status);
    must(step->state == STEP_OPEN && step->unfinished > 0);
    if (--step->unfinished == 0)
        finish_step(session, step);
}

static void
count_wait(struct worker *worker, bool for_slots, int64_t began_ns)
{
    struct tnd_stats_thread *thread = worker->counters.thread;
    int64_t ended_ns = tnd_clock_ns();

    tnd_stats_add(for_slots ? &thread->slot_wait : &thread->order_wait,
                  (uint64_t)(ended_ns - began_ns));
    tnd_stats_observe(&thread->idle, (uint64_t)(ended_ns - began_ns));
    stats_event(worker->counters.evaluation.track, began_ns, ended_ns,
                for_slots ? TND_STATS_WAITS_SLOT : TND_STATS_WAITS_ORDER, 0);
}

/* Wait for room in the arena. This ends: the lowest step gets a segment of its own once a trainer
 * waits for it (lane.h), and parts are taken in step order. */
static tundish_status
reserve_whole(struct worker *worker, struct share *share, uint32_t replica)
{
    struct session *session = worker->session;
    tundish_status status = feed_reserve(session->feed, replica, &share->slot);
    int64_t began_ns;

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
    worker->part_waited_ns = tnd_clock_ns() - began_ns;
    count_wait(worker, true, began_ns);
    return status;
}

static tundish_status
make_whole(struct worker *worker, const struct part *part)
{
    struct step *step = part->step;
    struct share *share = &step->shares[part->replica];
    struct filled filled;
    tundish_status status;

    name_slot(step, share);
    status = fill_make(share->fill, &worker->evaluation, worker->context,
                       &step->round.slices[part->replica], &share->slot, &filled);
    if (status == TUNDISH_OK)
        status = reserve_whole(worker, share, part->replica);
    if (status != TUNDISH_OK)
        return status;
    share->reserved = true;
    fill_copy(share->fill, &filled, &share->slot);
    return TUNDISH_OK;
}

static tundish_status
make_part(struct worker *worker, const struct part *part)
{
    struct step *step = part->step;
    struct share *share = &step->shares[part->replica];

    if (!share->fill->in_place)
        return make_whole(worker, part);
    return fill_part(share->fill, &worker->evaluation, &step->round.slices[part->replica],
                     part->begin, part->end, &share->slot);
}

/* Should another worker be woken after this part was taken? If parts take long, it is: it makes
 * another part, or waits for the wakeup instead of this worker. If not, this worker is back before
 * another would be awake, so only wake one if parts are left. */
static bool
wants_help(const struct session *session, const struct worker *worker, const struct step *step)
{
    uint32_t last = session->plan->replicas - 1;

    return worker->part_ns > SHORT_NS || step->next_share < last ||
           (step->next_share == last && step->shares[last].fill->in_place &&
            step->shares[last].next_row < step->shares[last].rows);
}

/* Does a worker without work wait for slots, or for steps? */
static bool
waits_for_slots(struct session *session)
{
    return session->ring.count > 0 &&
           session_step(session, session->ring.count - 1)->state == STEP_WAITS;
}

/* No part can be taken. One worker waits for the wakeup of trainers' releases, the others for that
 * worker. A step that is added between the unlock and wakeup_wait is not missed: session_push sees
 * a_worker_polls under the lock and signals the wakeup, which remembers it. */
static void
wait_for_work(struct session *session, struct worker *worker)
{
    bool for_slots = waits_for_slots(session);
    int64_t began_ns = tnd_clock_ns();

    if (session->ring.a_worker_polls) {
        pthread_cond_wait(&session->ring.work, &session->ring.lock);
    } else {
        session->ring.a_worker_polls = true;
        pthread_mutex_unlock(&session->ring.lock);
        wakeup_wait(session->wakeup, SPIN_NS, -1);
        pthread_mutex_lock(&session->ring.lock);
        session->ring.a_worker_polls = false;
    }
    count_wait(worker, for_slots, began_ns);
}

/* Count the rows that the worker left out since the last call. */
static tundish_status
add_skips(struct session *session, struct worker *worker)
{
    uint64_t fresh = worker->evaluation.skipped - worker->skipped;

    worker->skipped = worker->evaluation.skipped;
    return skips_add(&session->ring.skips, fresh, worker->evaluation.skipped_text);
}

void *
session_work(void *argument)
{
    struct worker *worker = argument;
    struct session *session = worker->session;

    pthread_mutex_lock(&session->ring.lock);
    while (!atomic_load_explicit(&session->stop, memory_order_relaxed)) {
        struct part part;
        tundish_status status;
        int64_t began_ns, ended_ns, busy_ns;

        if (!take_part(session, &part)) {
            wait_for_work(session, worker);
            continue;
        }
        /* Under the lock, so in the order in which parts are taken. */
        budget_begin(&worker->memory);
        if (wants_help(session, worker, part.step))
            pthread_cond_signal(&session->ring.work);
        pthread_mutex_unlock(&session->ring.lock);
        began_ns = tnd_clock_ns();
        worker->part_waited_ns = 0;
        status = make_part(worker, &part);
        scratch_reset(worker->evaluation.scratch);
        budget_end(&worker->memory);
        ended_ns = tnd_clock_ns();
        busy_ns = ended_ns - began_ns - worker->part_waited_ns;
        tnd_stats_add(&worker->counters.thread->busy, (uint64_t)busy_ns);
        stats_event(worker->counters.evaluation.track, began_ns, ended_ns, TND_STATS_MAKES_PART,
                    part.step->number);
        pthread_mutex_lock(&session->ring.lock);
        worker->part_ns += (busy_ns - worker->part_ns) / PARTS_REMEMBERED;
        if (status == TUNDISH_OK)
            status = add_skips(session, worker);
        finish_part(session, part.step, status);
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
    session_wake(session);
    pthread_mutex_unlock(&session->ring.lock);
}
