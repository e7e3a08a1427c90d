/* session.c - a session opened, stopped and closed. */
#include "session/session.h"
#include "session/checkpoint/place_landmarks.h"
#include "session/checkpoint/place_words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "batch/content_budget.h"
#include "batch/inputs.h"
#include "batch/kept_rows.h"
#include "core/clock.h"
#include "core/cpu_room.h"
#include "core/memory.h"
#include "core/must.h"
#include "order/planning.h"
#include "plan/batch_rows.h"
#include "plan/memory_cost.h"
#include "session/deliverable.h"
#include "session/lane_size.h"
#include "session/patience.h"
#include "session/session_lanes.h"
#include "session/session_private.h"
#include "session/session_spec.h"
#include "session/session_split.h"
#include "source/files/ask_ahead.h"
#include "source/files/listed.h"

enum { THREADS_MAX = 256 };

/* Two steps are dealt ahead of the slots. Where batches are small, it is as many as make
 * LOOKAHEAD_BYTES, so that the dealer wakes once for many of them. */
enum { LOOKAHEAD_MIN = 2, LOOKAHEAD_MAX = 512, LOOKAHEAD_BYTES = 4 << 20 };

static const int64_t DRAIN_RETRY_NS = 5000000;
/* For slow_group: detach. Longer than any pause of a healthy job between two steps. */
static const int64_t DETACH_NS = 1000000000;

/* A cache file must hold a whole pass over real data. So a stage that writes one is not run on
 * samples, even to measure. */
static bool
leaves_files(const struct plan_graph *graph)
{
    for (uint32_t i = 0; i < graph->node_count; i++) {
        const struct plan_node *node = graph->nodes[i];

        if (plan_is_cache_in_file(node) || (node->body != NULL && leaves_files(node->body)))
            return true;
    }
    return false;
}

void
session_replace_plan(struct session *session, struct plan *plan)
{
    must_in_debug(plan != session->plan && !session->dealing.started);
    session->old_plans =
        tnd_realloc(session->old_plans, session->old_plan_count + 1, sizeof(struct plan *));
    session->old_plans[session->old_plan_count++] = session->plan;
    session->plan = plan;
}

/* For the plan as it is now. No worker runs. */
static void
give_kept_rows(struct session *session)
{
    kept_rows_close(session->kept_rows);
    session->kept_rows = kept_rows_open(session->plan);
    for (uint32_t i = 0; i < session->worker_count; i++)
        session->workers[i].evaluation.kept = session->kept_rows;
}

tundish_status
session_open_dealer(struct session *session)
{
    struct dealer_options options = {
        .files = session->files,
        .stop = session->is_measured || session->options.stop == NULL ? &session->stop
                                                                      : session->options.stop,
        .samples = !session->is_measured && !leaves_files(session->plan->graph),
        .skip_bad = session->plan->stream->deliver.skip_errors,
        .digest_steps = session->nodes->mark_steps,
        .counters = session->is_measured ? &session->dealing.counters.evaluation : NULL,
        .looks = session->is_measured ? &session->looks : NULL,
    };

    must_in_debug(session->dealer == NULL && !session->dealing.started);
    session->dealing.skipped = 0;
    if (session->is_measured) {
        give_kept_rows(session);
        place_landmarks_close(session->landmarks);
        session->landmarks = place_landmarks_open(session->plan, &session->place_files);
        options.landmarks = place_landmarks_all(session->landmarks);
    }
    return dealer_open(session->plan, &options, &session->dealer);
}

static tundish_status
open_workers(struct session *session, uint32_t thread_count)
{
    must_in_debug(session->workers == NULL && session->budget == NULL);
    session->worker_count = thread_count != 0 ? thread_count : tnd_cpu_count();
    if (session->worker_count > THREADS_MAX)
        session->worker_count = THREADS_MAX;
    ring_give_looks(session);
    session->workers = tnd_zalloc(session->worker_count, sizeof *session->workers);
    session->budget = content_budget_open(session->plan, session->worker_count);
    for (uint32_t i = 0; i < session->worker_count; i++) {
        struct worker *worker = &session->workers[i];
        char name[24];
        tundish_status status;

        worker->session = session;
        worker->evaluation = (struct evaluation){
            .files = session->files,
            .scratch = scratch_open(),
            .stop = &session->stop,
            .skip_bad = session->plan->stream->deliver.skip_errors,
            .counters = &worker->counters.evaluation,
        };
        /* One budget for all workers: the parts made at a time share the memory that content may
         * take. */
        worker->memory.budget = session->budget;
        scratch_share(worker->evaluation.scratch, &worker->memory);
        snprintf(name, sizeof name, "content %u", i);
        session_worker_stats_open(&worker->counters, session, name);
        status = tnd_codec_context_open(true, &worker->context);
        if (status != TUNDISH_OK)
            return status;
    }
    return TUNDISH_OK;
}

static tundish_status
open_feed(struct session *session, uint64_t server_generation)
{
    const struct spec_stream *stream = session->plan->stream;
    struct feed_config config = {
        .stream = stream->name,
        .session = session->options.name != NULL ? session->options.name : stream->name,
        .replica_count = session->plan->replicas,
        .first_replica = session->plan->options.worker * session->plan->replicas,
        .total_replica_count = session->plan->options.worker_count * session->plan->replicas,
        .epoch_steps = plan_epoch_steps(session->plan),
        .rejoin_ns = stream->deliver.rejoin_ns,
        .detach = stream->deliver.detach_slow_group,
        .detach_ns = DETACH_NS,
        .broadcast = stream->distribute.delivery == DELIVER_BROADCAST,
        .is_endless = order_is_endless(session->plan->graph->root),
        .forgets = session->options.shards != NULL,
        .ops = &session_feed_ops,
        .user = session,
    };
    tundish_status status;

    lane_describe(session->plan, &session->spec, &config.lane);
    config.lane.server_generation = server_generation;
    config.lane.wakeup = session->wakeup;
    status = session_size_lanes(session, &config.lane);
    return status == TUNDISH_OK ? feed_open(&config, &session->feed) : status;
}

static uint32_t
steps_of(const struct session *session, uint64_t total_bytes)
{
    uint64_t bytes = session->step_bytes, steps = total_bytes / (bytes > 0 ? bytes : 1);

    return steps < LOOKAHEAD_MIN   ? LOOKAHEAD_MIN
           : steps > LOOKAHEAD_MAX ? LOOKAHEAD_MAX
                                   : (uint32_t)steps;
}

/* Where the rows to come have no room, those of more steps are looked at: of as many as have
 * room. */
static uint32_t
far_lookahead(const struct session *session)
{
    uint32_t near = steps_of(session, LOOKAHEAD_BYTES);
    uint32_t far = steps_of(session, session->plan->stream->deliver.memory_limit);

    return ask_ahead_keeps_rows(session->files) && far > near ? far : near;
}

static void
size_ring(struct session *session)
{
    uint32_t few = session->plan->stream->deliver.slots + LOOKAHEAD_MIN;
    uint32_t near = steps_of(session, LOOKAHEAD_BYTES), far = far_lookahead(session);

    session->dealing.near_steps = far > near ? few + near - LOOKAHEAD_MIN : 0;
    ring_size(&session->ring, few, far - LOOKAHEAD_MIN, session->worker_count,
              session->plan->replicas);
}

tundish_status
session_open(const struct session_options *options, struct spec_errors *errors,
             struct session **ret_session)
{
    struct session *session = tnd_zalloc(1, sizeof *session);
    struct source_files_options files_options = {
        .root = options->file->root,
        .cache_folder = options->plan.cache_folder,
        .reader_count = options->reader_count,
        .row_group_bytes = options->stream->deliver.memory_limit,
        .skip_damage = options->stream->deliver.skip_errors,
        .remote = &options->file->remote,
        .seen = options->plan.seen,
        .listed = listed_open(),
        .are_local = options->stream->distribute.files_local,
    };
    tundish_status status;

    session->options = *options;
    session->options.plan.listed = files_options.listed;
    session->dealing.shard = -1;
    session->wakeup = options->wakeup;
    pthread_mutex_init(&session->control.lock.mutex, NULL);
    pthread_mutex_init(&session->kept.lock.mutex, NULL);
    ring_open(&session->ring, options->stream->name, options->stream->deliver.skip_limit);
    session_link_open(session, options);
    status =
        plan_open(options->file, options->stream, &session->options.plan, errors, &session->plan);
    if (status == TUNDISH_OK)
        status = deliverable_check(session->plan, errors);
    if (status == TUNDISH_OK)
        status = plan_memory_check(session->plan);
    if (status == TUNDISH_OK) {
        fill_open(session->plan, &session->fill);
        files_options.peers = plan_has_owners(session->plan) ? options->peers : NULL;
        status = source_files_open(&files_options, &session->files);
    }
    if (status == TUNDISH_OK)
        status = place_files_open(session->plan, &session->place_files);
    if (status == TUNDISH_OK)
        place_words_keep(session->plan, place_fingerprint(session->plan));
    if (status == TUNDISH_OK)
        status = session_spec_open(session->plan, &session->spec);
    if (status == TUNDISH_OK) {
        session_stats_open(session, options->stats);
        session_worker_stats_open(&session->dealing.counters, session, "order");
    }
    if (status == TUNDISH_OK)
        status = open_workers(session, options->thread_count);
    /* A session that a trainer asked for reads the same inputs, which were checked at the server's
     * start. */
    if (status == TUNDISH_OK && options->name == NULL)
        status = inputs_check(session->plan, &files_options, options->stop);
    if (status == TUNDISH_OK)
        status = session_open_dealer(session);
    if (status == TUNDISH_OK)
        status = open_feed(session, options->server_generation);
    if (status == TUNDISH_OK && options->helpers != NULL)
        status = helpers_open(session, options->helpers, &session->helpers);
    if (status != TUNDISH_OK) {
        session_close(session);
        return status;
    }
    size_ring(session);
    session->dealing.start.split = session_split_from(session, 0, 0);
    *ret_session = session;
    return TUNDISH_OK;
}

static void
wait_for_groups(struct session *session)
{
    must_hold(&session->control.lock);
    if (!session->control.barrier.closed)
        start_barrier_close(session);
    session->control.barrier.deadline_ns = TND_CLOCK_NEVER;
}

tundish_status
session_start(struct session *session)
{
    tundish_status status = TUNDISH_OK;

    tnd_lock_take(&session->control.lock);
    if (session->options.shards != NULL)
        status = session_shards_start(session);
    else if (session->plan->stream->distribute.groups > 1)
        wait_for_groups(session);
    else if (session->control.barrier.closed)
        start_barrier_open(session); /* session_state_restore has set a kept place */
    else if (session->options.sleeps)
        session->control.sleeps = true;
    else
        status = session_run(session);
    tnd_lock_release(&session->control.lock);
    return status;
}

enum { UNFINISHED_MAX = 16 }; /* trainers that are named */

void
session_tell_unfinished(struct session *session)
{
    struct feed_reader_stats lines[UNFINISHED_MAX];
    uint32_t count =
        session->control.told_unfinished ? 0 : feed_stats(session->feed, lines, UNFINISHED_MAX);

    session->control.told_unfinished = true;
    for (uint32_t i = 0; i < count && i < UNFINISHED_MAX; i++)
        if (lines[i].attached && lines[i].released < lines[i].published)
            tnd_log(
                TND_LOG_WARNING, "stop",
                "stream %s: stopping without process %d (replica %u of group \"%s\"): it has "
                "taken %u batches that it has not given back, has %u more to take, and has done "
                "neither for %.0f s",
                session->plan->stream->name, lines[i].pid,
                session->plan->options.worker * session->plan->replicas + lines[i].replica,
                lines[i].group, (unsigned)(lines[i].taken - lines[i].released),
                (unsigned)(lines[i].published - lines[i].taken), (double)lines[i].silent_ns / 1e9);
}

/* How much trainers have taken and given back. */
static uint64_t
count_moves(struct session *session)
{
    uint64_t moves = 0;

    for (uint32_t r = 0; r < session->plan->replicas; r++) {
        struct lane_stats stats;

        lane_stats(feed_lane(session->feed, r), &stats);
        moves += stats.taken + stats.released;
    }
    return moves;
}

/* False: no trainer has moved for too long. */
static bool
await_move(struct session *session, uint64_t *moves)
{
    uint64_t now = count_moves(session);

    if (now != *moves)
        patience_renew(session->options.patience);
    *moves = now;
    if (!patience_lasts(session->options.patience))
        return false;
    nanosleep(&(struct timespec){ .tv_nsec = DRAIN_RETRY_NS }, NULL);
    return true;
}

/* Publish the lane's last slot, which stands for the step that is not made any more: a place there
 * is where the next server begins. If attached trainers leave no slot free, wait until they release
 * one. A second signal ends the wait, and so does a trainer that hangs. If all slots are kept for
 * trainers that are gone, leave them: the next server begins with the oldest of them. The others
 * are then told E_SERVER_GONE. */
static void
publish_stopped(struct session *session, uint32_t replica)
{
    struct lane *lane = feed_lane(session->feed, replica);
    uint64_t moves = count_moves(session);

    for (;;) {
        /* If nothing is published. */
        struct lane_look next = { .epoch = session->dealing.start.epoch,
                                  .step = session->dealing.start.step };
        bool may_release = feed_is_owed(session->feed);
        struct lane_stats stats;

        lane_stats(lane, &stats);
        lane_look(lane, stats.published, &next);
        if (lane_publish_end(lane, stats.published, TND_SLOT_STOPPED, next.epoch, next.step,
                             TUNDISH_STOPPED, "the server was stopped") != TUNDISH_E_TIMEOUT)
            return;
        if (!may_release || !feed_has_reader(session->feed, replica))
            return;
        if (!await_move(session, &moves)) {
            session_tell_unfinished(session);
            return;
        }
    }
}

void
session_stop(struct session *session)
{
    if (!ring_is_open(&session->ring))
        return;
    tnd_lock_take(&session->control.lock);
    session->control.stopping = true;
    session_halt(session);
    tnd_lock_release(&session->control.lock);
    patience_begin(session->options.patience);
    for (uint32_t r = 0; r < session->plan->replicas; r++)
        publish_stopped(session, r);
}

void
session_close(struct session *session)
{
    if (session == NULL)
        return;
    if (session->dealing.started)
        session_halt(session);
    if (session->dealing.shard_share.reader != 0)
        shards_leave(session->options.shards, session->dealing.shard_share.reader);
    helpers_close(session->helpers);
    if (session->plan != NULL)
        ring_close_steps(&session->ring, session->plan->replicas);
    /* After the threads, which write into its lanes, and after the steps' slots. */
    feed_close(session->feed);
    for (uint32_t i = 0; session->workers != NULL && i < session->worker_count; i++) {
        scratch_close(session->workers[i].evaluation.scratch);
        tnd_codec_context_close(session->workers[i].context);
        free(session->workers[i].expected_bytes);
        session_worker_stats_close(&session->workers[i].counters, session);
    }
    session_worker_stats_close(&session->dealing.counters, session);
    session_stats_close(session);
    free(session->dealing.shard_share.taken);
    free(session->workers);
    kept_rows_close(session->kept_rows);
    budget_close(session->budget);
    free(session->kept.place);
    dealer_close(session->dealer);
    place_landmarks_close(session->landmarks);
    source_files_close(session->files);
    place_files_close(&session->place_files);
    if (session->fill.columns != NULL)
        fill_close(&session->fill);
    fill_close(&session->packed);
    session_spec_close(&session->spec);
    for (uint32_t i = 0; i < session->old_plan_count; i++)
        plan_close(session->old_plans[i]);
    free(session->old_plans);
    plan_close(session->plan);
    listed_close(session->options.plan.listed);
    session_link_close(session);
    ring_close(&session->ring);
    pthread_mutex_destroy(&session->control.lock.mutex);
    pthread_mutex_destroy(&session->kept.lock.mutex);
    free(session);
}

bool
session_is_abandoned(struct session *session)
{
    bool abandoned;

    tnd_lock_take(&session->control.lock);
    abandoned = session->kept.abandoned;
    tnd_lock_release(&session->control.lock);
    return abandoned;
}

int64_t
session_left_since_ns(struct session *session)
{
    return session_is_abandoned(session) ? -1 : feed_left_since_ns(session->feed);
}

void
session_abandon(struct session *session)
{
    tnd_lock_take(&session->control.lock);
    session->kept.abandoned = true;
    tnd_lock_release(&session->control.lock);
}

struct feed *
session_feed(struct session *session)
{
    return session->feed;
}
