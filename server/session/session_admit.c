/* session_admit.c - the feed's callbacks, and where trainers may start.
 *
 * All run in the hub's thread. They take control.lock, which also keeps session_stop away while a
 * start is being moved.
 */
#include "session/session_private.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/log.h"
#include "core/memory.h"
#include "session/checkpoint/place_code.h"
#include "session/checkpoint/session_state.h"
#include "session/nodes/session_ahead.h"
#include "session/nodes/session_cut.h"
#include "session/nodes/session_replay.h"
#include "session/nodes/session_seeds.h"
#include "session/nodes/session_standing.h"
#include "session/session_split.h"

/* Stop it, and empty its lanes. If these are in use it goes on as before, and the trainer is told
 * why: the text stays, whatever comes of the others. */
static tundish_status
rewind_session(struct session *session)
{
    tundish_status status;
    char *text;

    must_hold(&session->control.lock);
    session_halt(session);
    status = feed_rewind(session->feed);
    if (status == TUNDISH_OK)
        return TUNDISH_OK;
    text = tnd_strdup(tnd_error_text());
    start_barrier_go_on(session);
    (void)tnd_fail(status, "%s", text);
    free(text);
    return status;
}

/* No trainer needs the session's present position, so restart it at the place. But a server that
 * keeps places begins where the session stands, if that is lower: others without places may need
 * what is before the place. A queue's place says itself which batches are still to be visited. */
static tundish_status
move_start(struct session *session, const char *group, const struct place *place,
           const struct feed_start *start)
{
    const uint64_t root_seed = session->plan->options.root_seed;
    bool stays = session->options.state != NULL &&
                 session->plan->stream->distribute.delivery != DELIVER_QUEUE &&
                 start_barrier_is_same_run(session, place->root_seed, root_seed);
    size_t standing_bytes = 0;
    uint8_t *standing = stays ? session_state_place(session, &standing_bytes) : NULL;
    tundish_status status;

    status = rewind_session(session);
    if (status != TUNDISH_OK) {
        free(standing);
        return status;
    }
    if (standing != NULL)
        status = session_state_start(session, standing, standing_bytes);
    free(standing);
    session->control.restored &= stays;
    if (stays && session->control.barrier.is_restored)
        start_barrier_return(session);
    else
        start_barrier_reclose(session);
    return status == TUNDISH_OK ? start_barrier_lower(session, group, place, start) : status;
}

static tundish_status
refuse_place(const struct session *session, const struct feed_start *start)
{
    if (start->survivor)
        return tnd_fail(
            TUNDISH_E_DETACHED,
            "stream '%s' has passed epoch %" PRIu64 ", step %" PRIu64
            ": this group reattached too late after the server's start (deliver.group_wait, "
            "slow_group, rejoin); open again without a place, or at a place in its own session",
            session->plan->stream->name, start->epoch, start->step);
    return tnd_fail(
        TUNDISH_E_PLACE,
        "other trainers read stream '%s' and have passed epoch %" PRIu64 ", step %" PRIu64
        ", where this trainer wants to start: start without a place, or use its own session",
        session->plan->stream->name, start->epoch, start->step);
}

/* It is a survivor, and no other survivor has come to this server yet. */
static bool
is_first_back(const struct session *session, const char *group, const struct feed_start *start)
{
    must_hold(&session->control.lock);
    return start->has_kept && feed_is_unused(session->feed) && !feed_knows(session->feed, group);
}

/* Is this lane still empty, and will it begin at the place or before? */
static bool
is_about_to_start(const struct session *session, uint32_t replica, const struct feed_start *start)
{
    const struct start *own = &session->dealing.start;
    uint64_t epoch = own->after_end ? own->epoch - 1 : own->epoch;
    uint64_t step = own->after_end ? own->end_steps : own->step;
    struct lane_stats stats;

    lane_stats(feed_lane(session->feed, replica), &stats);
    return stats.published == 0 &&
           (epoch < start->epoch || (epoch == start->epoch && step <= start->step));
}

void
session_note_code(struct session *session, const struct place *place)
{
    char *names;

    if (place->code == 0 || place->code == place_code(session->plan) ||
        atomic_exchange(&session->has_noted_code, true))
        return;
    names = place_code_names(session->plan);
    tnd_log(TND_LOG_NOTICE, "code_changed",
            "stream '%s': the code of %s has changed since the place was saved. It goes on there: "
            "rows come in the same order, and are made by the code as it is now",
            session->plan->stream->name, names);
    free(names);
}

static tundish_status
read_place(struct session *session, const struct feed_start *start, struct place *ret_place)
{
    tundish_status status = place_read(start->place, start->place_bytes, ret_place);

    if (status == TUNDISH_OK)
        status = place_check(ret_place, session->plan, &session->place_files);
    if (status == TUNDISH_OK)
        session_note_code(session, ret_place);
    return status;
}

/* The place is beyond all that this replica was given here, so that siblings without places stand
 * elsewhere. A survivor knows where it stands. The survivors of a server that died show what
 * replicas lack that have not been here since. */
static bool
is_ahead(const struct session *session, const char *group, uint32_t replica,
         const struct feed_start *start)
{
    const struct start_barrier *barrier = &session->control.barrier;
    const struct start *own = &session->dealing.start;
    bool known, is_beyond;

    must_hold(&session->control.lock);
    if (start->survivor || (start->epoch == 0 && start->step == 0) ||
        (barrier->has_kept && !feed_was_taken(session->feed, group, replica)))
        return false;
    if (barrier->closed)
        return !session->control.restored || barrier->epoch < start->epoch ||
               (barrier->epoch == start->epoch && barrier->step < start->step);
    is_beyond = feed_is_beyond(session->feed, group, replica, start, &known);
    return known ? is_beyond
                 : own->epoch < start->epoch ||
                       (own->epoch == start->epoch && own->step < start->step);
}

/* A trainer brings a place. While the barrier is closed, the start moves there. Later, the trainer
 * is let in if the step it wants is still to come: the SDK skips the steps before it. */
static tundish_status
admit_at_place(struct session *session, const char *group, uint32_t replica,
               const struct feed_start *start)
{
    struct place place;
    struct place_split split;
    bool near = false, reached;
    tundish_status status = read_place(session, start, &place);

    must_hold(&session->control.lock);
    if (status != TUNDISH_OK)
        return status;
    if (session->control.barrier.closed)
        return start_barrier_lower(session, group, &place, start);
    if (is_first_back(session, group, start) ||
        (ring_has_failed(session) && feed_is_unused(session->feed)))
        return move_start(session, group, &place, start);
    /* In this order, since the lane goes on meanwhile: a lane that starts between the two questions
     * is still found by the second. */
    reached = (is_about_to_start(session, replica, start) ||
               feed_reaches(session->feed, group, replica, start->epoch, start->step, &near)) &&
              start_barrier_is_same_run(session, place.root_seed, session->plan->options.root_seed);
    if (reached && (near || !feed_is_unused(session->feed))) {
        split = session_split_of(session, &place, start);
        return session_split_check(session, &session->dealing.start.split, &split);
    }
    if (!feed_is_unused(session->feed))
        return refuse_place(session, start);
    return move_start(session, group, &place, start);
}

static tundish_status
take_place(struct session *session, const char *group, uint32_t replica,
           const struct feed_start *start)
{
    struct start_barrier *barrier = &session->control.barrier;
    bool ahead = is_ahead(session, group, replica, start);
    tundish_status status = admit_at_place(session, group, replica, start);

    must_hold(&session->control.lock);
    if (status != TUNDISH_OK)
        return status;
    if (strcmp(barrier->brought_by, group) == 0 && barrier->epoch == start->epoch &&
        barrier->step == start->step)
        barrier->brought_from = replica;
    if (ahead)
        feed_admit_ahead(session->feed);
    return TUNDISH_OK;
}

/* All readers share a queue, so a late one reads on where the queue is, whatever place it brings.
 * Only the server knows which batches were visited, so a survivor cannot start the queue again. */
static tundish_status
admit_to_queue(struct session *session, const char *group, const struct feed_start *start)
{
    struct place place;
    tundish_status status = read_place(session, start, &place);

    must_hold(&session->control.lock);
    if (status != TUNDISH_OK)
        return status;
    if (!session->control.barrier.closed &&
        (!feed_is_unused(session->feed) || (start->survivor && session->control.restored)))
        return TUNDISH_OK;
    if (start->survivor)
        return tnd_fail(
            TUNDISH_E_PLACE,
            "the server of the queue '%s' has restarted and does not know which batches were "
            "visited: open again at a saved place, or at the start (serve --state DIR saves this)",
            session->plan->stream->name);
    return move_start(session, group, &place, start);
}

/* Was the place that the session begins at brought by a replica of this group, and none of a server
 * before says what this one has had? */
static bool
lacks_what_was_brought(const struct session *session, const char *group, uint32_t replica)
{
    const struct start_barrier *barrier = &session->control.barrier;

    must_hold(&session->control.lock);
    return strcmp(barrier->brought_by, group) == 0 && barrier->brought_by[0] != '\0' &&
           !barrier->has_kept && !session->control.restored &&
           feed_lacks(session->feed, group, replica);
}

/* The places of its group's other replicas say where they are, not where this one is. It may lack
 * earlier batches. It is told so when it asks for one: until then it may leave, and open at a place
 * that it has loaded. */
static void
admit_without_place(struct session *session, const char *group, uint32_t replica)
{
    const struct start_barrier *barrier = &session->control.barrier;
    struct feed_elsewhere ahead = { .group = group };

    must_hold(&session->control.lock);
    if (barrier->has_kept && !feed_was_taken(session->feed, group, replica))
        return;
    if (!feed_find_ahead(session->feed, group, replica, &ahead.ahead) &&
        !session_ahead_find(session, group, replica, &ahead)) {
        if (!lacks_what_was_brought(session, group, replica))
            return;
        if (barrier->closed && !feed_has_placed(session->feed, group)) { /* it is gone */
            start_barrier_begin(session);
            return;
        }
        ahead.ahead = (struct feed_ahead){
            session->plan->options.worker * session->plan->replicas + barrier->brought_from,
            barrier->epoch,
            barrier->step,
        };
    }
    feed_admit_unplaced(session->feed, &ahead);
}

/* The stream has failed, and nobody goes on where it stands: begin as a server does that starts. */
static tundish_status
begin_again(struct session *session)
{
    size_t count = 0;
    uint8_t *standing =
        session->options.state != NULL ? session_state_place(session, &count) : NULL;
    tundish_status status;

    status = rewind_session(session);
    if (status != TUNDISH_OK) {
        free(standing);
        return status;
    }
    session->control.restored = false;
    start_barrier_reclose(session);
    tnd_log(TND_LOG_NOTICE, "stream", "%s begins again: it had failed, and a trainer has opened it",
            session->plan->stream->name);
    status = standing != NULL ? session_state_start(session, standing, count)
                              : session_state_restore(session);
    free(standing);
    if (status == TUNDISH_OK && session->plan->stream->distribute.groups <= 1)
        start_barrier_open(session);
    return status;
}

/* Not a queue: its readers are not known, and may all belong to the job that has the failure. */
static bool
may_begin_again(struct session *session, const char *group, uint32_t replica)
{
    /* Places that several nodes keep are looked at together, when all servers start. */
    bool is_kept_together =
        session->options.state != NULL && session->plan->options.worker_count > 1;

    must_hold(&session->control.lock);
    return !session->control.barrier.closed && !is_kept_together &&
           session->plan->stream->distribute.delivery != DELIVER_QUEUE &&
           ring_has_failed(session) && feed_is_spent(session->feed, group, replica);
}

static tundish_status
admit_trainer(void *user, struct feed *feed, const char *group, uint32_t replica,
              const struct feed_start *start)
{
    struct session *session = user;
    tundish_status status = TUNDISH_OK;

    (void)feed;
    tnd_lock_take(&session->control.lock);
    if (session->control.stopping)
        status = tnd_fail(TUNDISH_E_SERVER_GONE, "the server is stopping");
    else if (session->options.shards != NULL && start->survivor)
        status = tnd_fail(TUNDISH_E_PLACE,
                          "the server of the evaluation '%s' has restarted and does not know which "
                          "shards are finished: open again, and count anew",
                          session->plan->stream->name);
    else if (start->place_bytes == 0 && session->options.shards == NULL &&
             may_begin_again(session, group, replica))
        status = begin_again(session);
    else if (start->place == NULL || start->place_bytes == 0)
        admit_without_place(session, group, replica);
    else if (session->options.shards != NULL)
        status = tnd_fail(
            TUNDISH_E_PLACE,
            "an evaluation has no places: open stream '%s' again, and count only finished shards",
            session->plan->stream->name);
    else if (session->plan->stream->distribute.delivery == DELIVER_QUEUE)
        status = admit_to_queue(session, group, start);
    else
        status = take_place(session, group, replica, start);
    tnd_lock_release(&session->control.lock);
    if (status == TUNDISH_OK)
        session_state_note_server(session);
    return status;
}

static void
trainer_joined(void *user, struct feed *feed, const char *group, uint32_t replica, uint32_t present,
               uint32_t full_group_count)
{
    struct session *session = user;

    (void)feed;
    (void)replica;
    (void)present;
    session_ahead_tell(session, group);
    tnd_lock_take(&session->control.lock);
    session->kept.abandoned = false;
    session_link_mute(session, false); /* earlier deaths have been handled */
    if (!session->control.stopping)
        start_barrier_joined(session, full_group_count);
    if (!session->control.barrier.closed) {
        session_cut_tell_read(session, true);
        session_replay_tell(session, NULL);
    }
    tnd_lock_release(&session->control.lock);
}

static int64_t
tick_session(void *user, struct feed *feed, int64_t now_ns)
{
    struct session *session = user;
    int64_t next_ns = TND_CLOCK_NEVER;

    (void)feed;
    tnd_lock_take(&session->control.lock);
    if (!session->control.stopping)
        next_ns = start_barrier_tick(session, now_ns);
    tnd_lock_release(&session->control.lock);
    return next_ns;
}

/* Note whether any trainer is attached or may still come back. */
static void
note_abandoned(struct session *session, struct feed *feed)
{
    bool abandoned;

    tnd_lock_take(&session->control.lock);
    abandoned = session->kept.abandoned = feed_is_unused(feed);
    if (abandoned) {
        session_split_tell(session, false);
        session_seeds_withdraw(session);
        session_cut_tell_read(session, false);
    }
    tnd_lock_release(&session->control.lock);
    /* Without the lock: named_sessions takes it while it holds its own, so a callback under it
     * could deadlock. */
    if (abandoned && session->options.abandoned != NULL)
        session->options.abandoned(session->options.user);
}

/* An evaluation's reader has left. Its unfinished shards go to others, and this session deals no
 * more. */
static void
give_shards_back(struct session *session)
{
    tnd_lock_take(&session->control.lock);
    session->control.stopping = true;
    session_halt(session);
    /* After the threads have stopped, so that nothing is published any more: shards that were
     * returned in full count as done. */
    session_shards_settle(session);
    if (session->dealing.shard_share.reader != 0)
        shards_leave(session->options.shards, session->dealing.shard_share.reader);
    session->dealing.shard_share.reader = 0;
    tnd_lock_release(&session->control.lock);
}

static void
trainer_left(void *user, struct feed *feed, const char *group, uint32_t replica,
             const struct departure *departure)
{
    struct session *session = user;
    uint32_t number = session->plan->options.worker * session->plan->replicas + replica;

    char until[64] = "";

    if (departure->tells_of_rejoin)
        snprintf(until, sizeof until, "%.0f s (deliver.rejoin)",
                 (double)session->plan->stream->deliver.rejoin_ns / 1e9);
    if (!departure->in_order)
        session_link_tell_death(session, group, replica);
    if (departure->warning != NULL)
        tnd_log(TND_LOG_WARNING, TND_LOG_TRAINER, "stream %s: replica %u of group \"%s\" %s%s",
                session->plan->stream->name, number, group, departure->warning, until);
    if (session->options.shards != NULL)
        give_shards_back(session);
    session_ahead_tell(session, group);
    note_abandoned(session, feed);
}

/* The session may have been made for this trainer alone. */
static void
trainer_refused(void *user, struct feed *feed)
{
    note_abandoned(user, feed);
}

static void
group_ended(void *user, struct feed *feed, const char *group, bool lost)
{
    struct session *session = user;

    tnd_log(lost ? TND_LOG_WARNING : TND_LOG_NOTICE, "groups", "stream %s: group \"%s\" has ended",
            session->plan->stream->name, group);
    if (lost)
        session_link_tell_group_end(session, group);
    note_abandoned(session, feed);
}

static void
request_restart(void *user, struct feed *feed, uint64_t epoch)
{
    struct session *session = user;

    (void)feed;
    /* The dealing thread reads it between steps and ends the epoch there. */
    atomic_store(&session->restart_epoch, epoch);
}

static bool
find_standing(void *user, struct feed *feed, const char *group, uint64_t *number,
              struct feed_standing *ret_standing)
{
    (void)feed;
    return session_standing_find(user, group, number, ret_standing);
}

const struct feed_ops session_feed_ops = {
    .admit = admit_trainer,
    .joined = trainer_joined,
    .left = trainer_left,
    .refused = trainer_refused,
    .group_ended = group_ended,
    .restart = request_restart,
    .tick = tick_session,
    .find_standing = find_standing,
};
