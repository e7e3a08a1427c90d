/* start_barrier.c - the condition for dealing the first batch.
 *
 * The barrier is closed at first if several groups are to see the same batches. It is closed again
 * whenever trainers bring a place to start at, since the first of them may not have the lowest
 * place. While it is closed no thread runs and no slot is published, so the start can still be
 * moved, whatever trainers are attached. It opens when enough groups are full, or at its deadline.
 *
 * A survivor may know which batches its dead server still kept for its groups. It opens the barrier
 * at once: no trainer has a lower place, and groups that are not back yet will find what they lack
 * (feed_await). If several servers died, only the survivors of the last one know that. If the place
 * in a file is lower than what the others know of, the start is there, since trainers without
 * places began there at a later server. But if all trainers have places, nobody needs what is
 * before the lowest of them. One thread that reads several replicas in turn would even wait for
 * ever where the file is further behind than a lane has slots: it is in one replica, whose lane
 * gets no more until it passes over the others' steps.
 */
#include "session/session_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/log.h"
#include "core/must.h"
#include "session/checkpoint/identity.h"
#include "session/nodes/session_cut.h"
#include "session/nodes/session_replay.h"
#include "session/session_split.h"
#include "source/rows/spool.h"

/* How long to wait for the other trainers of a group, after one has brought a place. */
static const int64_t GATHER_NS = 500000000;

static void
wait_until(struct start_barrier *barrier, int64_t deadline_ns)
{
    if (deadline_ns < barrier->deadline_ns)
        barrier->deadline_ns = deadline_ns;
}

/* In the metrics, from which `tundish status` says what trainers wait for. */
static void
show_missing(struct session *session)
{
    const struct start_barrier *barrier = &session->control.barrier;
    uint32_t wanted = session->plan->stream->distribute.groups;
    bool waits = barrier->closed && wanted > 1 && barrier->full_group_count < wanted;

    tnd_stats_set(&session->counters.stream->groups_missing,
                  waits ? wanted - barrier->full_group_count : 0);
}

static void
close_barrier(struct session *session)
{
    session->control.barrier.closed = true;
    session->control.barrier.deadline_ns = TND_CLOCK_NEVER;
    session->control.brought = (struct start_barrier){ 0 };
    show_missing(session);
    session_cut_stop(session);
    ring_shut(session);
}

void
start_barrier_close(struct session *session)
{
    session->control.barrier = (struct start_barrier){ 0 };
    close_barrier(session);
}

void
start_barrier_return(struct session *session)
{
    must_hold(&session->control.lock);
    close_barrier(session);
    wait_until(&session->control.barrier,
               tnd_clock_deadline_ns(session->plan->stream->deliver.rejoin_ns));
}

void
start_barrier_reclose(struct session *session)
{
    must_hold(&session->control.lock);
    session->control.barrier = (struct start_barrier){ 0 };
    start_barrier_return(session);
}

/* Columns may come from a file that was replaced meanwhile: lanes are laid out for those before. */
static tundish_status
check_is_alike(const struct session *session, const struct plan *plan)
{
    char *name = identity_difference(session->plan, plan);

    if (name == NULL)
        return TUNDISH_OK;
    (void)tnd_fail(TUNDISH_E_PLACE,
                   "%s is not as it was when the server started, so that it cannot go on at the "
                   "place: a file has changed; start the server again",
                   name);
    free(name);
    return TUNDISH_E_PLACE;
}

static void
close_dealer(struct session *session)
{
    bool has_begun = session->dealer != NULL && dealer_has_begun(session->dealer);

    must_in_debug(!session->dealing.started && session->ring.count == 0);
    dealer_close(session->dealer);
    session->dealer = NULL;
    if (!has_begun)
        return;
    source_files_end_begun(session->files);
    source_files_look_again(session->files); /* somebody may have mended one */
    spool_drop_all(session->files);          /* a cache that it had half made, too */
}

/* The place may come from a job with another root seed. The unseeded stages need that seed to
 * repeat their order. */
tundish_status
start_barrier_take_root_seed(struct session *session, uint64_t root_seed)
{
    struct plan_options options = session->options.plan;
    struct spec_errors errors = { 0 };
    struct plan *plan;
    tundish_status status;

    if (session->plan->options.root_seed == root_seed)
        return TUNDISH_OK;
    must_in_debug(!session->dealing.started);
    options.root_seed = root_seed;
    status = plan_open(session->options.file, session->options.stream, &options, &errors, &plan);
    spec_errors_close(&errors);
    if (status != TUNDISH_OK)
        return status;
    status = check_is_alike(session, plan);
    if (status != TUNDISH_OK) {
        plan_close(plan);
        return status;
    }
    session->options.plan.root_seed = root_seed;
    close_dealer(session);
    session_replace_plan(session, plan);
    session->fill.plan = session->packed.plan = plan;
    return session_open_dealer(session);
}

bool
start_barrier_depends_on_seed(const struct session *session)
{
    return session->plan->draws_from_root || session->plan->tells_root_seed;
}

/* Servers draw root seeds of their own. Where every stage has a seed in the file they do not
 * matter: a trainer that has no place yet may have begun this session while its group's others,
 * with places of the server before, were still reading what that one had published. */
bool
start_barrier_is_same_run(const struct session *session, uint64_t root_seed, uint64_t other)
{
    return root_seed == other || !start_barrier_depends_on_seed(session);
}

static bool
is_before(uint64_t epoch, uint64_t step, const struct start_barrier *barrier)
{
    return epoch < barrier->epoch || (epoch == barrier->epoch && step < barrier->step);
}

/* Survivors may report different counts. Take the highest: awaiting a group too many costs time,
 * one too few loses its batches. */
static void
note_groups(struct start_barrier *barrier, const struct feed_start *start)
{
    barrier->has_kept = true;
    if (start->groups_present > barrier->groups_present)
        barrier->groups_present = start->groups_present;
    if (start->groups_gone > barrier->groups_gone)
        barrier->groups_gone = start->groups_gone;
}

/* Only a place of a cut epoch or a later one records how the cut changed the order. A place saved
 * between the cut and the next batch does not. So the state is that of the latest epoch that is not
 * after the start. */
static void
take_state_of(struct start_barrier *barrier, const struct place *place, uint64_t place_epoch)
{
    if (barrier->has_start && barrier->place_epoch <= barrier->epoch + barrier->is_end &&
        (place_epoch <= barrier->place_epoch || place_epoch > barrier->epoch + barrier->is_end))
        return;
    barrier->place_epoch = place_epoch;
    barrier->place = *place;
}

static void
take_start_of(struct start_barrier *barrier, const struct feed_start *start)
{
    barrier->is_restored = barrier->is_beginning = false;
    barrier->epoch = start->has_kept ? start->kept_epoch : start->epoch;
    barrier->step = start->has_kept ? start->kept_step : start->step;
    barrier->is_end = start->has_kept && start->kept_end;
    barrier->visited_count = start->bit_count < TND_SLOTS_MAX ? start->bit_count : TND_SLOTS_MAX;
    memset(barrier->visited, 0, sizeof barrier->visited);
    if (barrier->visited_count > 0)
        memcpy(barrier->visited, start->bits, (barrier->visited_count + 7) / 8);
}

void
start_barrier_begin(struct session *session)
{
    must_in_debug(session->control.barrier.closed);
    /* From here on places no longer move the start: a replica without a place needs the
     * beginning. */
    session->control.barrier.is_beginning = true;
    session->control.barrier.has_start = false;
    session->control.barrier.brought_by[0] = '\0';
}

/* All trainers that bring places, and those that have none and want the beginning, must have
 * changed to these numbers of workers and replicas at the same step. */
static tundish_status
agree_on_split(struct session *session, const struct place *place, const struct feed_start *start)
{
    struct start_barrier *barrier = &session->control.barrier;
    struct place_split split = session_split_of(session, place, start);
    tundish_status status;

    if (barrier->is_beginning && !start->has_kept) {
        barrier->has_split = true;
        barrier->split = session_split_from(session, 0, 0);
    }
    status =
        barrier->has_split ? session_split_check(session, &barrier->split, &split) : TUNDISH_OK;
    if (status == TUNDISH_OK && (!barrier->has_split || barrier->split.workers == 0)) {
        barrier->has_split = true;
        barrier->split = split;
    }
    return status;
}

/* A replica of the group is attached without a place: it may have outlived its server before the
 * first batch, as this one did after it. Does any survivor or kept place say what it lacks? If not,
 * only the beginning is safe. (Beside the place of a new trainer it is refused: feed_ahead.c.) */
static bool
must_begin(const struct session *session, const char *group, const struct feed_start *start)
{
    return group != NULL && session->plan->replicas > 1 && start->survivor && !start->has_kept &&
           !session->control.barrier.has_kept && !session->control.restored &&
           feed_has_unplaced(session->feed, group);
}

/* The server writes the file from time to time, so its memory, which a survivor has seen, may be
 * newer. */
static bool
is_newer_than_file(const struct session *session, const struct feed_start *start)
{
    uint64_t last = session->control.last_generation;

    return session->control.barrier.is_restored && start->has_kept &&
           !is_before(start->kept_epoch, start->kept_step, &session->control.barrier) &&
           (last == 0 || start->kept_generation == 0 || start->kept_generation == last);
}

/* Memory keeps batches that nobody lacks any more. So a file's place is lowered only by where a
 * survivor stands itself, not by the oldest batch that its server kept. */
static bool
is_lower(const struct session *session, const struct feed_start *start)
{
    const struct start_barrier *barrier = &session->control.barrier;

    if (start->has_kept && !session->control.restored)
        return is_before(start->kept_epoch, start->kept_step, barrier);
    return is_before(start->epoch, start->step, barrier);
}

/* Beside the kept place: the start for the case that all bring places. */
static void
note_brought(struct session *session, const struct place *place, const struct feed_start *start)
{
    struct start_barrier *brought = &session->control.brought;

    if (!brought->has_start || is_before(start->epoch, start->step, brought))
        take_start_of(brought, start);
    take_state_of(brought, place, start->place_epoch);
    if (!brought->has_start || brought->split.workers == 0)
        brought->split = session_split_of(session, place, start);
    brought->has_start = true;
}

tundish_status
start_barrier_lower(struct session *session, const char *group, const struct place *place,
                    const struct feed_start *start)
{
    struct start_barrier *barrier = &session->control.barrier;
    tundish_status status;

    must(barrier->closed);
    if ((barrier->has_start || barrier->is_beginning) &&
        !start_barrier_is_same_run(session, barrier->place.root_seed, place->root_seed))
        return tnd_fail(TUNDISH_E_PLACE,
                        "the place belongs to another run of stream '%s' than the session's first "
                        "place: use its own session",
                        session->plan->stream->name);
    status = start_barrier_take_root_seed(session, place->root_seed);
    if (status != TUNDISH_OK)
        return status;
    if (must_begin(session, group, start))
        start_barrier_begin(session);
    status = agree_on_split(session, place, start);
    if (status != TUNDISH_OK)
        return status;
    if (session->control.restored && group != NULL)
        note_brought(session, place, start);
    if (barrier->is_beginning && !start->has_kept) {
        barrier->place = *place;
        return TUNDISH_OK;
    }
    if (!barrier->has_start || is_newer_than_file(session, start) || is_lower(session, start)) {
        take_start_of(barrier, start);
        snprintf(barrier->brought_by, sizeof barrier->brought_by, "%s",
                 group == NULL || start->has_kept ? "" : group);
    }
    take_state_of(barrier, place, start->place_epoch);
    barrier->has_start = true;
    barrier->is_restored &= group == NULL;
    if (start->has_kept)
        note_groups(barrier, start);
    else if (session->plan->stream->distribute.groups <= 1)
        wait_until(barrier, tnd_clock_deadline_ns(GATHER_NS));
    return TUNDISH_OK;
}

/* The places of survivors do not tell what they know of their server's memory. */
static void
choose_start(struct session *session)
{
    struct start_barrier *barrier = &session->control.barrier;
    const struct start_barrier *brought = &session->control.brought;

    must_in_debug(session->control.barrier.closed);
    must_hold(&session->control.lock);
    if (!session->control.restored || barrier->has_kept || !brought->has_start ||
        !feed_are_all_placed(session->feed))
        return;
    session->control.restored = barrier->is_restored = false;
    barrier->place_epoch = brought->place_epoch;
    barrier->epoch = brought->epoch;
    barrier->step = brought->step;
    barrier->is_end = brought->is_end;
    barrier->place = brought->place;
    barrier->split = brought->split;
    barrier->visited_count = brought->visited_count;
    memcpy(barrier->visited, brought->visited, sizeof barrier->visited);
}

/* One that has dealt does not come back to the beginning. */
static tundish_status
renew_dealer(struct session *session)
{
    if (session->dealer != NULL && !dealer_has_begun(session->dealer))
        return TUNDISH_OK;
    close_dealer(session);
    return session_open_dealer(session);
}

static tundish_status
take_start(struct session *session)
{
    const struct start_barrier *barrier = &session->control.barrier;

    must_in_debug(session->control.barrier.closed);
    must_hold(&session->control.lock);
    session->dealing.start = (struct start){ .split = session_split_from(session, 0, 0) };
    if (!barrier->has_start)
        return renew_dealer(session);
    session->dealing.start = (struct start){
        .given = true,
        .after_end = barrier->is_end,
        .end_steps = barrier->step,
        .place_epoch = barrier->place_epoch,
        .epoch = barrier->epoch + barrier->is_end,
        .step = barrier->is_end ? 0 : barrier->step,
        .split = barrier->split,
        .state_count = barrier->place.state_count,
        .visited_count = barrier->visited_count,
    };
    must_in_debug(session->dealing.start.place_epoch <= session->dealing.start.epoch &&
                  session->dealing.start.state_count <= PLACE_STATE_MAX);
    memcpy(session->dealing.start.state, barrier->place.state, sizeof barrier->place.state);
    memcpy(session->dealing.start.visited, barrier->visited, sizeof barrier->visited);
    tnd_log(TND_LOG_NOTICE, "resume", "stream %s continues at epoch %llu, step %llu",
            session->plan->stream->name, (unsigned long long)session->dealing.start.epoch,
            (unsigned long long)session->dealing.start.step);
    return renew_dealer(session);
}

/* Await the previous server's groups that are not here yet, so that their batches are kept. */
static void
await_groups(struct session *session)
{
    const struct spec_stream *stream = session->plan->stream;
    const struct feed_groups groups = {
        .present = session->control.barrier.groups_present,
        .gone = session->control.barrier.groups_gone,
        .wait_ns = stream->deliver.group_wait_ns,
    };
    uint32_t awaited = session->control.barrier.has_kept ? feed_await(session->feed, &groups) : 0;

    must_in_debug(session->control.barrier.closed);
    must_hold(&session->control.lock);
    if (awaited > 0)
        tnd_log(TND_LOG_WARNING, "groups",
                "stream %s: %u of %u groups of the previous server have not reattached yet; the "
                "server keeps their batches, and the others wait for them%s",
                stream->name, awaited, groups.present + groups.gone,
                stream->deliver.group_wait_ns < 0 && !stream->deliver.detach_slow_group
                    ? ", without a limit (deliver.group_wait, slow_group)"
                    : "");
}

/* No thread will publish, so tell the attached trainers here. Those of other nodes would wait for
 * this one. */
static void
fail_start(struct session *session)
{
    const struct start *start = &session->dealing.start;
    char text[1024];

    must_hold(&session->control.lock);
    snprintf(text, sizeof text, "%s", tnd_error_text());
    tnd_log(TND_LOG_ERROR, "stream", "%s: %s", session->plan->stream->name, text);
    session->nodes->tell_error(session, start->epoch, start->step, TUNDISH_E_SYSTEM, text);
    session_halt(session); /* some may have started */
    ring_note_failure(session);
    for (uint32_t r = 0; r < session->plan->replicas; r++) {
        struct lane *lane = feed_lane(session->feed, r);
        struct lane_stats stats;

        lane_stats(lane, &stats);
        lane_publish_end(lane, stats.published, TND_SLOT_ERROR, start->epoch, start->step,
                         TUNDISH_E_SYSTEM, text);
    }
}

void
start_barrier_go_on(struct session *session)
{
    must_hold(&session->control.lock);
    if (session_run(session) != TUNDISH_OK)
        fail_start(session);
}

void
start_barrier_open(struct session *session)
{
    tundish_status status;

    must_hold(&session->control.lock);
    must(session->control.barrier.closed);
    must_in_debug(!session->dealing.started);
    choose_start(session);
    status = take_start(session);
    session_split_tell(session, true);
    if (session->dealing.start.given || feed_has_trainers(session->feed)) {
        session_cut_tell_read(session, true);
        session_replay_tell(session, &session->dealing.start);
    }
    await_groups(session);
    if (session->plan->stream->distribute.delivery == DELIVER_QUEUE)
        lane_set_visited(feed_lane(session->feed, 0), session->dealing.start.visited,
                         session->dealing.start.visited_count);
    session->control.barrier.closed = false;
    show_missing(session);
    /* Before any thread runs: positions count from the start, wherever in the stream it is. */
    ring_rewind(session);
    if (status == TUNDISH_OK)
        start_barrier_go_on(session);
    else
        fail_start(session);
}

/* Start its threads, if it sleeps. */
static void
session_wake(struct session *session)
{
    must_hold(&session->control.lock);
    if (session->control.sleeps)
        start_barrier_go_on(session);
}

static void
tell_of_waiting(struct session *session)
{
    const struct spec_stream *stream = session->plan->stream;

    must_hold(&session->control.lock);
    show_missing(session);
    if (stream->distribute.groups > 1 && !session->control.barrier.is_told)
        tnd_log(
            TND_LOG_NOTICE, "groups",
            "stream %s: the first batch waits until %u groups are complete (distribute.groups)%s",
            stream->name, stream->distribute.groups,
            stream->deliver.group_wait_ns < 0 ? ", without a limit (deliver.group_wait)" : "");
    session->control.barrier.is_told = true;
}

void
start_barrier_joined(struct session *session, uint32_t full_group_count)
{
    uint32_t wanted = session->plan->stream->distribute.groups;
    int64_t wait_ns = session->plan->stream->deliver.group_wait_ns;

    must_hold(&session->control.lock);
    if (!session->control.barrier.closed) {
        session->control.barrier.is_restored = false;
        session_wake(session);
        return;
    }
    session->control.barrier.full_group_count = full_group_count;
    if (full_group_count >= wanted || session->control.barrier.has_kept) {
        start_barrier_open(session);
        return;
    }
    tell_of_waiting(session);
    if (wait_ns >= 0)
        wait_until(&session->control.barrier, tnd_clock_deadline_ns(wait_ns));
}

/* The hub calls this at the deadline. Without it a group that never comes would hold the others for
 * good. */
int64_t
start_barrier_tick(struct session *session, int64_t now_ns)
{
    const struct spec_stream *stream = session->plan->stream;

    must_hold(&session->control.lock);
    if (!session->control.barrier.closed)
        return TND_CLOCK_NEVER;
    if (now_ns < session->control.barrier.deadline_ns)
        return session->control.barrier.deadline_ns;
    if (stream->distribute.groups > 1)
        tnd_log(TND_LOG_WARNING, "groups",
                "stream %s starts with %u of %u groups (distribute.groups): the others did not "
                "attach in time; they will start at the oldest batch kept",
                stream->name, session->control.barrier.full_group_count, stream->distribute.groups);
    start_barrier_open(session);
    return TND_CLOCK_NEVER;
}
