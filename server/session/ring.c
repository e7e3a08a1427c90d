/* ring.c - the ring of steps: opened and closed, filled by the dealer, and shown. */
#include "session/ring.h"

#include <stdlib.h>
#include <time.h>

#include "core/clock.h"
#include "core/log.h"
#include "core/memory.h"
#include "core/must.h"
#include "deliver/wakeup.h"
#include "session/session_private.h"

/* The lock is held for less time than going to sleep takes. So a thread that finds it taken spins
 * for a while. */
static void
init_lock(pthread_mutex_t *lock)
{
    pthread_mutexattr_t attributes;

    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ADAPTIVE_NP);
    pthread_mutex_init(lock, &attributes);
    pthread_mutexattr_destroy(&attributes);
}

void
ring_open(struct ring *ring, const char *stream, uint64_t skip_limit)
{
    must_in_debug(ring->capacity == 0 && ring->steps == NULL);
    ring->skips.stream = stream;
    ring->skips.limit = skip_limit;
    init_lock(&ring->lock.mutex);
    pthread_cond_init(&ring->work, NULL);
    pthread_cond_init(&ring->space, NULL);
}

void
ring_size(struct ring *ring, uint32_t few, uint32_t ahead, uint32_t workers, uint32_t lanes)
{
    must_in_debug(few > 0 && workers > 0 && lanes > 0);
    ring->few = few;
    ring->capacity = few + ahead;
    wake_open(&ring->wake, workers, lanes);
}

bool
ring_is_open(const struct ring *ring)
{
    return ring->capacity > 0;
}

uint32_t
ring_count_steps(const struct session *session)
{
    must_hold(&session->ring.lock);
    return session->ring.count;
}

uint32_t
ring_steps_ahead(const struct ring *ring)
{
    return ring->capacity + ring->few;
}

void
ring_lock(struct session *session)
{
    tnd_lock_take(&session->ring.lock);
}

void
ring_unlock(struct session *session)
{
    tnd_lock_release(&session->ring.lock);
}

/* Slots are made once and reused by every step in their entry, so that no step allocates them. */
static void
open_steps(struct session *session)
{
    struct ring *ring = &session->ring;

    if (ring->steps != NULL)
        return;
    ring->steps = tnd_zalloc(ring->capacity, sizeof *ring->steps);
    for (uint32_t i = 0; i < ring->capacity; i++) {
        ring->steps[i].shares = tnd_zalloc(session->plan->replicas, sizeof *ring->steps[i].shares);
        for (uint32_t r = 0; r < session->plan->replicas; r++)
            lane_slot_init(feed_lane(session->feed, r), &ring->steps[i].shares[r].slot);
    }
}

void
ring_begin(struct session *session)
{
    must(session->ring.count == 0);
    must_in_debug(ring_is_open(&session->ring));
    open_steps(session);
    tnd_lock_take(&session->ring.lock);
    session->ring.draining = session->ring.failed = session->ring.ended = false;
    session->ring.next_epoch = session->dealing.start.epoch;
    session->ring.next_number = session->dealing.start.step;
    wake_on_none(&session->ring.wake);
    tnd_lock_release(&session->ring.lock);
}

/* The dealing thread. Its clock was read just now. */
static void
wait_for_space(struct session *session)
{
    int64_t began_ns = session->dealing.now_ns;

    must_hold(&session->ring.lock);
    tnd_lock_wait(&session->ring.lock, &session->ring.space);
    dealing_count_wait(&session->dealing, session->counters.stream, began_ns);
}

/* Wait until the ring holds no more than `at_most` steps, or until the end. The lock is held. */
static void
await_room(struct session *session, uint32_t at_most)
{
    must_hold(&session->ring.lock);
    session->ring.wake.dealer_wakes_at = at_most;
    while (session->ring.count > at_most && !session->ring.draining && !session->ring.failed)
        wait_for_space(session);
}

/* A free entry in the ring of steps, the lock held; NULL when stopping. */
static struct step *
next_step(struct session *session)
{
    struct step *step;

    must_hold(&session->ring.lock);
    if (session->ring.count == session->ring.capacity)
        /* Down to half: the dealer then wakes once for many steps. */
        await_room(session, session->ring.capacity / 2);
    if (session->ring.count == session->ring.capacity || session->ring.draining ||
        session->ring.failed)
        return NULL;
    step = ring_step(session, session->ring.count);
    must(step->state == STEP_EMPTY);
    must_in_debug(session->ring.count == 0 ||
                  ring_step(session, session->ring.count - 1)->position + 1 ==
                      session->ring.next_position);
    step->position = session->ring.next_position;
    step->status = TUNDISH_OK;
    step->text[0] = '\0';
    step->from_outside = false;
    for (uint32_t r = 0; r < session->plan->replicas; r++) {
        step->shares[r].reserved = step->shares[r].had_room = false;
        step->shares[r].next_row = step->shares[r].rows = step->shares[r].rows_of_part = 0;
        step->shares[r].fill = NULL;
    }
    return step;
}

static bool
was_visited(const struct session *session, uint64_t position)
{
    const struct start *start = &session->dealing.start;

    return position < start->visited_count &&
           (start->visited[position / 8] >> position % 8 & 1) != 0;
}

bool
ring_push(struct session *session, enum tnd_slot_kind kind, uint64_t epoch, uint64_t number,
          struct deal_round *round, tundish_status status)
{
    struct deal_round spent;
    struct step *step;

    must_in_debug((kind == TND_SLOT_BATCH) == (round != NULL));
    must_in_debug((kind == TND_SLOT_ERROR) == (status != TUNDISH_OK));
    dealing_count(&session->dealing, session->counters.stream, number);
    tnd_lock_take(&session->ring.lock);
    step = next_step(session);
    if (step == NULL) {
        tnd_lock_release(&session->ring.lock);
        if (round != NULL)
            dealer_release_round(round);
        return false;
    }
    step->kind = kind;
    step->epoch = epoch;
    step->number = number;
    step->shard = session->dealing.shard;
    step->flags = session->dealing.flags;
    if (was_visited(session, step->position) && status == TUNDISH_OK) {
        step->passed_kind = kind;
        step->kind = STEP_PASSED;
    }
    spent = step->round;
    step->round = round != NULL ? *round : (struct deal_round){ 0 };
    if (status != TUNDISH_OK) {
        step_fail(step, status);
        session->ring.failed = true;
        tnd_log(TND_LOG_ERROR, "stream", "%s: %s", session->plan->stream->name, step->text);
        session->nodes->tell_error(session, epoch, number, step->status, step->text);
    }
    step->state = STEP_WAITS;
    step->dealt_ns = session->dealing.now_ns;
    session->ring.next_position++;
    session->ring.count++;
    must_in_debug(session->ring.count <= session->ring.capacity);
    if (wake_on_push(&session->ring.wake))
        ring_unlock_and_wake(session);
    else
        tnd_lock_release(&session->ring.lock);
    dealer_take_back(session->dealer, &spent);
    return true;
}

bool
ring_has_failed(struct session *session)
{
    bool has_failed;

    tnd_lock_take(&session->ring.lock);
    has_failed = session->ring.failed;
    tnd_lock_release(&session->ring.lock);
    return has_failed;
}

void
ring_note_failure(struct session *session)
{
    tnd_lock_take(&session->ring.lock);
    session->ring.failed = true;
    tnd_lock_release(&session->ring.lock);
}

void
ring_await_few(struct session *session)
{
    tnd_lock_take(&session->ring.lock);
    await_room(session, session->ring.few - 1);
    tnd_lock_release(&session->ring.lock);
}

void
ring_await_while(struct session *session, bool (*is_too_much)(const struct session *))
{
    tnd_lock_take(&session->ring.lock);
    while (is_too_much(session) && session->ring.count > 0 && !session->ring.draining &&
           !session->ring.failed) {
        session->ring.wake.dealer_wakes_at = session->ring.count - 1;
        wait_for_space(session);
    }
    tnd_lock_release(&session->ring.lock);
}

/* Until a worker returns from the wakeup, or there is room, or the session is stopped, or `wait_ns`
 * have passed. The lock is held. */
static void
wait_briefly(struct session *session, int64_t wait_ns)
{
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += wait_ns;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    if (session->ring.draining)
        return;
    must_hold(&session->ring.lock);
    tnd_lock_note(&session->ring.lock, 0);
    pthread_cond_clockwait(&session->ring.space, &session->ring.lock.mutex, CLOCK_MONOTONIC,
                           &until);
    tnd_lock_note(&session->ring.lock, pthread_self());
}

void
ring_wait_briefly(struct session *session, int64_t wait_ns)
{
    tnd_lock_take(&session->ring.lock);
    wait_briefly(session, wait_ns);
    tnd_lock_release(&session->ring.lock);
}

bool
ring_look_for_room(struct session *session, uint32_t *at_most, int64_t wait_ns)
{
    bool has_room;

    tnd_lock_take(&session->ring.lock);
    if (*at_most == 0) {
        *at_most = session->ring.capacity - 1;
        if (session->ring.count > *at_most)
            /* Down to half: the dealer then wakes once for many steps. */
            session->ring.wake.dealer_wakes_at = *at_most = session->ring.capacity / 2;
    }
    must_in_debug(*at_most < session->ring.capacity);
    has_room = session->ring.count <= *at_most || session->ring.draining || session->ring.failed;
    if (!has_room)
        wait_briefly(session, wait_ns);
    tnd_lock_release(&session->ring.lock);
    return has_room;
}

tundish_status
ring_add_skips(struct session *session, uint64_t count, const char *text)
{
    tundish_status status;

    tnd_lock_take(&session->ring.lock);
    status = skips_add(&session->ring.skips, count, text);
    tnd_lock_release(&session->ring.lock);
    return status;
}

uint64_t
ring_next_position(const struct session *session)
{
    return session->ring.next_position;
}

uint64_t
ring_count_dealt(struct session *session)
{
    uint64_t dealt;

    tnd_lock_take(&session->ring.lock);
    dealt = session->ring.next_position;
    tnd_lock_release(&session->ring.lock);
    return dealt;
}

bool
ring_has_idle_workers(const struct session *session)
{
    must_hold(&session->ring.lock);
    return session->ring.wake.idle_workers > 0;
}

bool
ring_has_more_work(const struct session *session)
{
    must_hold(&session->ring.lock);
    return session->ring.wake.idle_workers == 0 && session->ring.count > 0 && !session->ring.paused;
}

bool
ring_is_first(struct session *session, const struct step *step)
{
    must_hold(&session->ring.lock);
    return step == ring_step(session, 0);
}

void
session_pause(struct session *session, bool paused)
{
    tnd_lock_take(&session->ring.lock);
    session->ring.paused = paused;
    ring_unlock_and_wake(session);
}

void
ring_show(struct session *session, struct tnd_stats_stream *stream)
{
    struct ring *ring = &session->ring;

    tnd_lock_take(&ring->lock);
    tnd_stats_set(&stream->epoch, ring->last_epoch);
    tnd_stats_set(&stream->step, ring->last_number);
    tnd_stats_set(&stream->steps, ring->steps_published);
    tnd_stats_set(&stream->rows, ring->rows_published);
    skips_tell(&ring->skips);
    tnd_stats_set(&stream->rows_skipped, ring->skips.count);
    tnd_stats_set(&stream->failed, ring->failed);
    tnd_stats_set(&stream->paused, ring->paused);
    tnd_stats_set(&stream->ready_steps, ring->count);
    tnd_lock_release(&ring->lock);
}

bool
ring_has_ended(struct session *session)
{
    bool ended;

    tnd_lock_take(&session->ring.lock);
    ended = session->ring.ended;
    tnd_lock_release(&session->ring.lock);
    return ended;
}

void
ring_shut(struct session *session)
{
    tnd_lock_take(&session->ring.lock);
    session->ring.draining = true;
    tnd_lock_release(&session->ring.lock);
}

void
ring_rewind(struct session *session)
{
    must_in_debug(session->ring.count == 0 && session->ring.draining);
    session->ring.next_position = 0;
    session->ring.skips.count_before = session->ring.skips.count;
}

void
ring_stop(struct session *session)
{
    tnd_lock_take(&session->ring.lock);
    /* Set under the lock, so that no thread can check them and go to sleep after the broadcasts. */
    session->ring.draining = true;
    atomic_store(&session->stop, 1);
    pthread_cond_broadcast(&session->ring.space);
    pthread_cond_broadcast(&session->ring.work);
    helpers_wake(session->helpers);
    tnd_lock_release(&session->ring.lock);
    /* One worker does not wait for a condition but for the wakeup. */
    wakeup_signal(session->wakeup);
}

/* No thread changes the ring any more. The hub's thread still reads how full it is, so that is
 * changed under the lock. */
void
ring_clear(struct session *session)
{
    must_in_debug(session->ring.draining);
    for (uint32_t i = 0; i < session->ring.count; i++) {
        struct step *step = ring_step(session, i);

        must_in_debug(step->state != STEP_EMPTY && step->state != STEP_OPENING &&
                      step->state != STEP_PUBLISHING);
        must_in_debug(step->position + session->ring.count - i == session->ring.next_position);
        if (step->kind != STEP_PASSED && step->state != STEP_DONE)
            step_cancel(session, step);
        dealer_release_round(&step->round);
        step->state = STEP_EMPTY;
    }
    tnd_lock_take(&session->ring.lock);
    session->ring.first = (session->ring.first + session->ring.count) % session->ring.capacity;
    session->ring.count = 0;
    tnd_lock_release(&session->ring.lock);
}

void
ring_close_steps(struct ring *ring, uint32_t lanes)
{
    skips_tell_rest(&ring->skips);
    for (uint32_t i = 0; ring->steps != NULL && i < ring->capacity; i++) {
        for (uint32_t r = 0; r < lanes; r++)
            lane_slot_fini(&ring->steps[i].shares[r].slot);
        free(ring->steps[i].shares);
        dealer_release_round(&ring->steps[i].round);
    }
    free(ring->steps);
}

void
ring_close(struct ring *ring)
{
    pthread_cond_destroy(&ring->space);
    pthread_cond_destroy(&ring->work);
    pthread_mutex_destroy(&ring->lock.mutex);
}
