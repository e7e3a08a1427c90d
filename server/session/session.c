/* session.c - steps on their way from the order to the lanes. */
#include "session/session.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/clock.h"
#include "core/log.h"
#include "core/memory.h"
#include "core/must.h"
#include "deliver/bell.h"
#include "session/fill.h"
#include "session/place.h"
#include "session/session_spec.h"
#include "session/stats_page.h"

enum { THREADS_MAX = 256, LOOKAHEAD_EXTRA = 2, EPOCH_PLACES = 4 };

/* A worker that has nothing to do looks this long before it sleeps: what a hand-over costs. */
static const int64_t SPIN_NS = 20000;
static const int64_t RETRY_NS = 100000;
static const int64_t DRAIN_RETRY_NS = 5000000;

enum step_state {
    STEP_EMPTY,
    STEP_WAITS, /* for free slots in every lane */
    STEP_OPEN,  /* its slices are being made */
    STEP_DONE
};

/* One replica's part of a step. */
struct share {
    struct slot slot;
    bool reserved; /* or, for an end, published */
    int64_t rows, next_row;
};

struct step {
    enum step_state state;
    enum tnd_slot_kind kind;
    uint64_t position, epoch, number;
    struct deal_round round;
    struct share *shares;
    uint32_t next_share; /* the first whose rows are not all taken */
    uint32_t unfinished; /* parts taken but not finished, and one while any is left */
    tundish_status status;
    char text[1024];
};

struct worker {
    struct session *session;
    struct evaluation evaluation;
    struct tnd_codec_context *context;
    pthread_t thread;
    bool started;
    int64_t work_ns, wait_ns; /* under the session's lock, as is skipped */
    uint64_t skipped;         /* of evaluation.skipped, those accounted for */
};

/* Where to begin. */
struct start {
    bool given;           /* else at the first step of epoch 0 */
    uint64_t place_epoch; /* whose state this is: `epoch` or an earlier one */
    uint64_t epoch, step;
    size_t state_count;
    uint64_t state[PLACE_STATE_MAX];
};

struct epoch_place {
    bool known;
    uint64_t epoch;
    struct place place;
};

struct session {
    struct start start; /* the dealing thread's while it runs */
    struct plan *plan;
    struct session_options options;
    struct fill fill;
    struct source_files *files;
    struct dealer *dealer;
    struct feed *feed;
    struct bell *bell;
    tundish_spec spec;
    _Atomic int stop;

    pthread_t dealing;
    bool dealing_started;

    /* Everything below is under the lock. */
    pthread_mutex_t lock;
    pthread_cond_t work;  /* a step has come, or room */
    pthread_cond_t place; /* a step has gone: the dealer may go on */
    struct step *steps;   /* a ring: first .. first + count */
    uint32_t capacity, first, count;
    bool somebody_at_bell;
    uint64_t next_position;
    bool draining, failed, ended;
    struct epoch_place epoch_places[EPOCH_PLACES]; /* by epoch, the last few */
    uint64_t skipped;                              /* bad rows left out */
    struct stats_stream *figures;                  /* for others to read, or NULL */
    uint64_t restart_epoch;                        /* end this epoch early; UINT64_MAX: none */
    struct session_stats stats;

    uint32_t worker_count;
    struct worker *workers;
};

/* --- taking work --------------------------------------------------------------------------------
 */

static struct step *
step_at(struct session *session, uint32_t index)
{
    return &session->steps[(session->first + index) % session->capacity];
}

/* Wake whoever can take work: one of the sleepers, or the one at the bell. */
static void
wake(struct session *session)
{
    pthread_cond_signal(&session->work);
    if (session->somebody_at_bell)
        bell_ring(session->bell);
}

static void
fail_step(struct step *step, tundish_status status)
{
    if (step->status != TUNDISH_OK)
        return;
    step->status = status;
    snprintf(step->text, sizeof step->text, "epoch %llu, step %llu: %.900s",
             (unsigned long long)step->epoch, (unsigned long long)step->number, tnd_error_text());
}

static bool
lane_has_slot(struct session *session, uint32_t replica, uint64_t position)
{
    struct lane_stats stats;

    lane_stats(feed_lane(session->feed, replica), &stats);
    return position < stats.released + session->plan->stream->deliver.slots;
}

/* Find room for a share. True: it is there (or never will be, and the step has failed). */
static bool
open_share(struct session *session, struct step *step, uint32_t replica)
{
    struct share *share = &step->shares[replica];
    struct lane *lane = feed_lane(session->feed, replica);
    tundish_status status;

    if (share->reserved)
        return true;
    if (step->kind != TND_SLOT_BATCH) {
        status = lane_publish_end(lane, step->position, step->kind, step->epoch, step->number,
                                  step->status, step->text);
        share->reserved = status == TUNDISH_OK;
        return share->reserved;
    }
    if (!session->fill.in_place)
        return lane_has_slot(session, replica, step->position);
    share->slot.position = step->position;
    share->slot.epoch = step->epoch;
    share->slot.step = step->number;
    share->slot.kind = TND_SLOT_BATCH;
    share->slot.shard = -1;
    share->rows = fill_rows(&session->fill, &step->round.slices[replica]);
    fill_describe(&session->fill, share->rows, &share->slot);
    status = lane_reserve(lane, &share->slot);
    if (status == TUNDISH_E_TIMEOUT)
        return false;
    if (status != TUNDISH_OK)
        fail_step(step, status);
    share->reserved = status == TUNDISH_OK;
    return true;
}

static void finish_step(struct session *session, struct step *step);

/* Try to open the step. */
static void
open_step(struct session *session, struct step *step)
{
    bool all = true;

    for (uint32_t r = 0; r < session->plan->replicas; r++)
        all &= open_share(session, step, r);
    if (!all)
        return;
    step->state = STEP_OPEN;
    step->unfinished = 1;
    step->next_share = step->kind == TND_SLOT_BATCH ? 0 : session->plan->replicas;
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

    while (session->fill.in_place && step->status == TUNDISH_OK && step->next_share < replicas &&
           step->shares[step->next_share].next_row == step->shares[step->next_share].rows)
        step->next_share++;
    if (step->next_share >= replicas || step->status != TUNDISH_OK)
        return false;
    *ret_part = (struct part){ .step = step, .replica = step->next_share };
    if (session->fill.in_place) {
        struct share *share = &step->shares[step->next_share];

        ret_part->begin = share->next_row;
        ret_part->end = share->rows - share->next_row > session->fill.rows_of_part
                            ? share->next_row + session->fill.rows_of_part
                            : share->rows;
        share->next_row = ret_part->end;
    } else {
        step->next_share++;
    }
    step->unfinished++;
    return true;
}

/* All parts have been taken: the count that stood for those to come goes. */
static void
settle_taken(struct session *session, struct step *step)
{
    step->next_share = UINT32_MAX;
    if (--step->unfinished == 0)
        finish_step(session, step);
}

static bool
take(struct session *session, struct part *ret_part)
{
    for (uint32_t i = 0; i < session->count; i++) {
        struct step *step = step_at(session, i);

        if (step->state == STEP_WAITS)
            open_step(session, step);
        if (step->state == STEP_WAITS)
            return false; /* later ones need the same lanes */
        if (step->state != STEP_OPEN || step->next_share == UINT32_MAX)
            continue;
        if (take_of_step(session, step, ret_part))
            return true;
        settle_taken(session, step);
        i = UINT32_MAX; /* steps may have gone: from the first again */
    }
    return false;
}

/* --- finishing ----------------------------------------------------------------------------------
 */

static void
drop_finished(struct session *session)
{
    while (session->count > 0 && step_at(session, 0)->state == STEP_DONE) {
        struct step *step = step_at(session, 0);

        deal_round_release(&step->round);
        step->state = STEP_EMPTY;
        session->first = (session->first + 1) % session->capacity;
        session->count--;
        pthread_cond_signal(&session->place);
    }
}

/* A step that failed becomes an error in every lane, for good. */
static void
turn_to_error(struct session *session, struct step *step)
{
    for (uint32_t r = 0; r < session->plan->replicas; r++) {
        struct share *share = &step->shares[r];

        if (share->reserved)
            lane_cancel(feed_lane(session->feed, r), &share->slot);
        share->reserved = false;
    }
    step->kind = TND_SLOT_ERROR;
    step->state = STEP_WAITS;
    session->failed = true;
    memcpy(session->stats.text, step->text, sizeof session->stats.text);
    tnd_log(TND_LOG_ERROR, "stream", "%s: %s", session->plan->stream->name, step->text);
}

static void
show_figure(_Atomic uint64_t *figure, uint64_t value)
{
    atomic_store_explicit(figure, value, memory_order_relaxed);
}

static void
show_figures(struct session *session)
{
    struct stats_stream *figures = session->figures;
    struct source_files_stats files;
    uint64_t work_ns = 0, wait_ns = 0;

    if (figures == NULL)
        return;
    source_files_stats(session->files, &files);
    for (uint32_t i = 0; i < session->worker_count; i++) {
        work_ns += (uint64_t)session->workers[i].work_ns;
        wait_ns += (uint64_t)session->workers[i].wait_ns;
    }
    show_figure(&figures->epoch, session->stats.epoch);
    show_figure(&figures->step, session->stats.step);
    show_figure(&figures->steps, session->stats.steps_published);
    show_figure(&figures->rows_read, files.rows_read);
    show_figure(&figures->bytes_read, files.bytes_read);
    show_figure(&figures->rows_skipped, session->skipped);
    show_figure(&figures->work_ns, work_ns);
    show_figure(&figures->wait_ns, wait_ns);
    show_figure(&figures->failed, session->failed);
    for (uint32_t r = 0; r < figures->lane_count; r++) {
        struct lane_stats lane;

        lane_stats(feed_lane(session->feed, r), &lane);
        show_figure(&figures->lanes[r].published, lane.published);
        show_figure(&figures->lanes[r].released, lane.released);
        show_figure(&figures->lanes[r].trainer_waits, lane.trainer_waits);
    }
}

void
session_show(struct session *session, struct stats_stream *figures)
{
    pthread_mutex_lock(&session->lock);
    if (figures != NULL) {
        snprintf(figures->name, sizeof figures->name, "%s", session->plan->stream->name);
        figures->thread_count = session->worker_count;
        figures->lane_count =
            session->plan->replicas < STATS_LANES ? session->plan->replicas : STATS_LANES;
    }
    session->figures = figures;
    show_figures(session);
    pthread_mutex_unlock(&session->lock);
}

static void
finish_step(struct session *session, struct step *step)
{
    if (step->kind == TND_SLOT_BATCH && step->status != TUNDISH_OK) {
        turn_to_error(session, step);
        return;
    }
    if (step->kind == TND_SLOT_BATCH) {
        for (uint32_t r = 0; r < session->plan->replicas; r++)
            lane_publish(feed_lane(session->feed, r), &step->shares[r].slot);
        session->stats.steps_published++;
        session->stats.epoch = step->epoch;
        session->stats.step = step->number;
    }
    if (step->kind == TND_SLOT_END_OF_STREAM)
        session->ended = true;
    step->state = STEP_DONE;
    drop_finished(session);
    show_figures(session);
}

static void
finish_part(struct session *session, struct step *step, tundish_status status)
{
    if (status != TUNDISH_OK)
        fail_step(step, status);
    if (--step->unfinished == 0)
        finish_step(session, step);
}

/* --- making content -----------------------------------------------------------------------------
 */

/* Wait for room in the arena. The lowest step always finds it, so this ends. */
static tundish_status
reserve_whole(struct session *session, struct share *share, uint32_t replica)
{
    for (;;) {
        tundish_status status = lane_reserve(feed_lane(session->feed, replica), &share->slot);

        if (status != TUNDISH_E_TIMEOUT)
            return status;
        if (atomic_load_explicit(&session->stop, memory_order_relaxed))
            return tnd_fail(TUNDISH_E_TIMEOUT, "the server is stopping");
        nanosleep(&(struct timespec){ .tv_nsec = RETRY_NS }, NULL);
    }
}

static tundish_status
make_whole(struct worker *worker, const struct part *part)
{
    struct session *session = worker->session;
    struct step *step = part->step;
    struct share *share = &step->shares[part->replica];
    struct filled filled;
    tundish_status status;

    share->slot.position = step->position;
    share->slot.epoch = step->epoch;
    share->slot.step = step->number;
    share->slot.kind = TND_SLOT_BATCH;
    share->slot.shard = -1;
    status = fill_make(&session->fill, &worker->evaluation, worker->context,
                       &step->round.slices[part->replica], &share->slot, &filled);
    if (status == TUNDISH_OK)
        status = reserve_whole(session, share, part->replica);
    if (status != TUNDISH_OK)
        return status;
    share->reserved = true;
    fill_copy(&session->fill, &filled, &share->slot);
    return TUNDISH_OK;
}

static tundish_status
make_part(struct worker *worker, const struct part *part)
{
    struct session *session = worker->session;
    struct step *step = part->step;

    scratch_reset(worker->evaluation.scratch);
    if (!session->fill.in_place)
        return make_whole(worker, part);
    return fill_part(&session->fill, &worker->evaluation, &step->round.slices[part->replica],
                     part->begin, part->end, &step->shares[part->replica].slot);
}

/* Nothing can be taken. One worker waits at the bell for trainers' releases, the others for it. */
static void
wait_for_work(struct session *session, struct worker *worker)
{
    int64_t began = tnd_clock_ns();

    if (session->somebody_at_bell) {
        pthread_cond_wait(&session->work, &session->lock);
    } else {
        session->somebody_at_bell = true;
        pthread_mutex_unlock(&session->lock);
        bell_wait(session->bell, SPIN_NS, -1);
        pthread_mutex_lock(&session->lock);
        session->somebody_at_bell = false;
    }
    worker->wait_ns += tnd_clock_ns() - began;
}

/* Bad rows that were left out are counted and named; more than the limit is an error. */
static tundish_status
note_skipped(struct session *session, struct worker *worker)
{
    uint64_t limit = session->plan->stream->deliver.skip_limit;

    if (worker->evaluation.skipped == worker->skipped)
        return TUNDISH_OK;
    session->skipped += worker->evaluation.skipped - worker->skipped;
    worker->skipped = worker->evaluation.skipped;
    tnd_log(TND_LOG_WARNING, "skip", "%llu rows skipped so far; the last: %s",
            (unsigned long long)session->skipped, worker->evaluation.skipped_text);
    if (session->skipped > limit)
        return tnd_fail(TUNDISH_E_DATA, "%llu bad rows, more than on_error: skip:%llu allows: %s",
                        (unsigned long long)session->skipped, (unsigned long long)limit,
                        worker->evaluation.skipped_text);
    return TUNDISH_OK;
}

static void *
work(void *argument)
{
    struct worker *worker = argument;
    struct session *session = worker->session;

    pthread_mutex_lock(&session->lock);
    while (!atomic_load_explicit(&session->stop, memory_order_relaxed)) {
        struct part part;
        tundish_status status;
        int64_t began;

        if (!take(session, &part)) {
            wait_for_work(session, worker);
            continue;
        }
        /* There may be more: another worker takes over the watch. */
        pthread_cond_signal(&session->work);
        pthread_mutex_unlock(&session->lock);
        began = tnd_clock_ns();
        status = make_part(worker, &part);
        pthread_mutex_lock(&session->lock);
        worker->work_ns += tnd_clock_ns() - began;
        if (status == TUNDISH_OK)
            status = note_skipped(session, worker);
        finish_part(session, part.step, status);
    }
    pthread_cond_broadcast(&session->work);
    pthread_mutex_unlock(&session->lock);
    return NULL;
}

/* --- dealing ------------------------------------------------------------------------------------
 */

/* A free place in the ring of steps, the lock held; NULL when stopping. */
static struct step *
next_step(struct session *session)
{
    struct step *step;

    while (session->count == session->capacity && !session->draining && !session->failed)
        pthread_cond_wait(&session->place, &session->lock);
    if (session->count == session->capacity || session->draining || session->failed)
        return NULL;
    step = step_at(session, session->count);
    step->position = session->next_position;
    step->status = TUNDISH_OK;
    step->text[0] = '\0';
    for (uint32_t r = 0; r < session->plan->replicas; r++) {
        step->shares[r].reserved = false;
        step->shares[r].next_row = step->shares[r].rows = 0;
    }
    return step;
}

static bool
push(struct session *session, enum tnd_slot_kind kind, uint64_t epoch, uint64_t number,
     struct deal_round *round, tundish_status status)
{
    struct step *step;

    pthread_mutex_lock(&session->lock);
    step = next_step(session);
    if (step == NULL) {
        pthread_mutex_unlock(&session->lock);
        if (round != NULL)
            deal_round_release(round);
        return false;
    }
    step->kind = kind;
    step->epoch = epoch;
    step->number = number;
    if (round != NULL)
        step->round = *round;
    if (status != TUNDISH_OK) {
        fail_step(step, status);
        session->failed = true;
        memcpy(session->stats.text, step->text, sizeof session->stats.text);
        tnd_log(TND_LOG_ERROR, "stream", "%s: %s", session->plan->stream->name, step->text);
    }
    step->state = STEP_WAITS;
    session->next_position++;
    session->count++;
    wake(session);
    pthread_mutex_unlock(&session->lock);
    return true;
}

/* Must this epoch end here, because every trainer asked for the next? */
static bool
is_cut_short(struct session *session, uint64_t epoch)
{
    bool cut;

    pthread_mutex_lock(&session->lock);
    cut = session->restart_epoch == epoch;
    pthread_mutex_unlock(&session->lock);
    return cut;
}

/* Deal one epoch from `number` on. False: no more, for whatever reason. */
static bool
deal_epoch(struct session *session, uint64_t epoch, uint64_t number)
{
    bool drop_partial = session->plan->stream->distribute.drop_remainder_step;

    for (;; number++) {
        struct deal_round round;
        tundish_status status;

        if (is_cut_short(session, epoch))
            return push(session, TND_SLOT_END, epoch, number, NULL, TUNDISH_OK);
        status = dealer_next(session->dealer, &round);
        if (status != TUNDISH_OK) {
            push(session, TND_SLOT_ERROR, epoch, number, NULL, status);
            return false;
        }
        if (round.present_count == 0 ||
            (drop_partial && round.present_count < session->plan->replicas)) {
            deal_round_release(&round);
            return push(session, TND_SLOT_END, epoch, number, NULL, TUNDISH_OK);
        }
        if (!push(session, TND_SLOT_BATCH, epoch, number, &round, TUNDISH_OK))
            return false;
    }
}

/* What a place taken in this epoch carries. */
static tundish_status
publish_place(struct session *session, uint64_t epoch)
{
    struct place place = {
        .fingerprint = place_fingerprint(session->plan),
        .root_seed = session->plan->options.root_seed,
        .worker_count = place_worker_count(session->plan),
    };
    const uint64_t *words;
    uint8_t bytes[sizeof place];
    size_t count = dealer_epoch_state(session->dealer, &words);

    if (count > PLACE_STATE_MAX)
        return tnd_fail(TUNDISH_E_PIPELINE, "a place holds the state of %d random stages at most",
                        PLACE_STATE_MAX / 2);
    place.state_count = (uint32_t)count;
    memcpy(place.state, words, count * sizeof *words);
    place_write(&place, bytes);
    pthread_mutex_lock(&session->lock);
    session->epoch_places[epoch % EPOCH_PLACES] =
        (struct epoch_place){ .known = true, .epoch = epoch, .place = place };
    pthread_mutex_unlock(&session->lock);
    return feed_set_place(session->feed, epoch, bytes, place_bytes(&place));
}

/* Stand where the session was told to: epochs between the place's and the one wanted are passed
 * over whole. */
static tundish_status
go_to_start(struct session *session)
{
    struct start *start = &session->start;
    bool whole = start->place_epoch == start->epoch;
    tundish_status status =
        dealer_resume(session->dealer, start->place_epoch, whole ? start->step : 0, start->state,
                      start->state_count);

    for (uint64_t epoch = start->place_epoch; status == TUNDISH_OK && epoch < start->epoch; epoch++)
        status = dealer_next_epoch(session->dealer);
    start->given = false;
    return status;
}

static tundish_status
start_epoch(struct session *session, uint64_t epoch, uint64_t *ret_number)
{
    tundish_status status;

    *ret_number = session->start.given && session->start.place_epoch == session->start.epoch
                      ? session->start.step
                      : 0;
    status = session->start.given ? go_to_start(session) : dealer_start_epoch(session->dealer);
    return status == TUNDISH_OK ? publish_place(session, epoch) : status;
}

static void *
deal(void *argument)
{
    struct session *session = argument;
    uint64_t epochs = session->plan->stream->deliver.epochs;

    for (uint64_t epoch = session->start.given ? session->start.epoch : 0;
         epochs == 0 || epoch < epochs; epoch++) {
        uint64_t number = 0;
        tundish_status status = start_epoch(session, epoch, &number);

        if (status != TUNDISH_OK) {
            push(session, TND_SLOT_ERROR, epoch, number, NULL, status);
            return NULL;
        }
        if (!deal_epoch(session, epoch, number))
            return NULL;
    }
    push(session, TND_SLOT_END_OF_STREAM, epochs, 0, NULL, TUNDISH_OK);
    return NULL;
}

/* --- what trainers do ---------------------------------------------------------------------------
 */

/* Threads stop where they are; steps that are not published go. */
static void
halt(struct session *session)
{
    pthread_mutex_lock(&session->lock);
    session->draining = true;
    atomic_store(&session->stop, 1);
    pthread_cond_broadcast(&session->place);
    pthread_cond_broadcast(&session->work);
    pthread_mutex_unlock(&session->lock);
    bell_ring(session->bell);
    if (session->dealing_started)
        pthread_join(session->dealing, NULL);
    session->dealing_started = false;
    for (uint32_t i = 0; i < session->worker_count; i++) {
        if (session->workers[i].started)
            pthread_join(session->workers[i].thread, NULL);
        session->workers[i].started = false;
    }
    for (; session->count > 0; session->count--) {
        struct step *step = step_at(session, 0);

        for (uint32_t r = 0; r < session->plan->replicas; r++)
            if (step->kind == TND_SLOT_BATCH && step->state != STEP_DONE &&
                step->shares[r].reserved)
                lane_cancel(feed_lane(session->feed, r), &step->shares[r].slot);
        deal_round_release(&step->round);
        step->state = STEP_EMPTY;
        session->first = (session->first + 1) % session->capacity;
    }
}

static tundish_status
run(struct session *session)
{
    session->draining = session->failed = session->ended = false;
    session->restart_epoch = UINT64_MAX;
    atomic_store(&session->stop, 0);
    if (pthread_create(&session->dealing, NULL, deal, session) != 0)
        return tnd_fail(TUNDISH_E_SYSTEM, "the kernel gives no thread");
    session->dealing_started = true;
    for (uint32_t i = 0; i < session->worker_count; i++) {
        if (pthread_create(&session->workers[i].thread, NULL, work, &session->workers[i]) != 0)
            return tnd_fail(TUNDISH_E_SYSTEM, "the kernel gives no thread");
        session->workers[i].started = true;
    }
    return TUNDISH_OK;
}

static tundish_status open_dealer(struct session *session);

/* A place of a job whose root seed was another: its unseeded stages want that one. */
static tundish_status
take_root_seed(struct session *session, uint64_t root_seed)
{
    struct spec_errors errors = { 0 };
    struct plan *plan;
    tundish_status status;

    if (session->plan->options.root_seed == root_seed)
        return TUNDISH_OK;
    session->options.plan.root_seed = root_seed;
    status = plan_open(session->options.file, session->options.stream, &session->options.plan,
                       &errors, &plan);
    spec_errors_close(&errors);
    if (status != TUNDISH_OK)
        return status;
    dealer_close(session->dealer);
    session->dealer = NULL;
    plan_close(session->plan);
    session->plan = plan;
    session->fill.plan = plan;
    return open_dealer(session);
}

/* Begin again at a place, which was published with `place_epoch`: the lanes are emptied. */
static tundish_status
seek(struct session *session, const struct place *place, uint64_t place_epoch, uint64_t epoch,
     uint64_t step)
{
    tundish_status status;

    halt(session);
    status = feed_rewind(session->feed);
    if (status == TUNDISH_OK)
        status = take_root_seed(session, place->root_seed);
    if (status == TUNDISH_OK) {
        session->next_position = 0;
        session->start = (struct start){
            .given = true,
            .place_epoch = place_epoch,
            .epoch = epoch,
            .step = step,
            .state_count = place->state_count,
        };
        memcpy(session->start.state, place->state, sizeof place->state);
        tnd_log(TND_LOG_NOTICE, "resume", "stream %s goes on at epoch %llu, step %llu",
                session->plan->stream->name, (unsigned long long)epoch, (unsigned long long)step);
    }
    return status == TUNDISH_OK ? run(session) : status;
}

/* The place that epoch `epoch` was published with, if it is one of the last few. */
static const struct place *
place_of_epoch(const struct session *session, uint64_t epoch)
{
    const struct epoch_place *kept = &session->epoch_places[epoch % EPOCH_PLACES];

    return kept->known && kept->epoch == epoch ? &kept->place : NULL;
}

/* A group that comes back without a place goes on where its slowest replica stood. */
static tundish_status
admit_anywhere(struct session *session, struct feed *feed, const char *group)
{
    uint64_t epoch, step;
    const struct place *place;
    struct place copy;
    bool level;

    if (!feed_group_next(feed, group, &epoch, &step, &level) || level)
        return TUNDISH_OK;
    pthread_mutex_lock(&session->lock);
    place = place_of_epoch(session, epoch);
    if (place != NULL)
        copy = *place;
    pthread_mutex_unlock(&session->lock);
    return place != NULL ? seek(session, &copy, epoch, epoch, step) : TUNDISH_OK;
}

/* A trainer wants to start somewhere. The first of a group with a place moves the session there;
 * the others of the group bring the same one. A trainer that outlived its server may have been a
 * few steps ahead of its siblings: the session begins that much earlier, and the SDK passes over
 * what its replica already had. */
static tundish_status
admit(void *user, struct feed *feed, const char *group, uint32_t replica,
      const struct feed_start *start)
{
    struct session *session = user;
    uint64_t slots = session->plan->stream->deliver.slots;
    uint64_t step = start->step, epoch, next;
    struct place place;
    bool level;
    tundish_status status;

    (void)replica;
    if (start->place == NULL || start->place_bytes == 0)
        return admit_anywhere(session, feed, group);
    status = place_read(start->place, start->place_bytes, &place);
    if (status == TUNDISH_OK)
        status = place_check(&place, session->plan);
    if (status != TUNDISH_OK)
        return status;
    if (feed_group_next(feed, group, &epoch, &next, &level) && epoch == start->epoch &&
        (next == step || (start->survivor && next < step)) &&
        place.root_seed == session->plan->options.root_seed)
        return TUNDISH_OK;
    if (start->survivor)
        step = step > slots ? step - slots : 0;
    return seek(session, &place, start->place_epoch, start->epoch, step);
}

static void
joined(void *user, struct feed *feed, const char *group, uint32_t replica, uint32_t present,
       uint32_t full_group_count)
{
    (void)user;
    (void)feed;
    (void)group;
    (void)replica;
    (void)present;
    (void)full_group_count;
}

static void
left(void *user, struct feed *feed, const char *group, uint32_t replica, bool died)
{
    (void)user;
    (void)feed;
    (void)group;
    (void)replica;
    (void)died;
}

static void
group_ended(void *user, struct feed *feed, const char *group)
{
    (void)user;
    (void)feed;
    (void)group;
}

static void
restart(void *user, struct feed *feed, const char *group, uint64_t epoch)
{
    struct session *session = user;

    (void)feed;
    (void)group;
    pthread_mutex_lock(&session->lock);
    session->restart_epoch = epoch;
    pthread_mutex_unlock(&session->lock);
}

static const struct feed_ops feed_ops = {
    .admit = admit,
    .joined = joined,
    .left = left,
    .group_ended = group_ended,
    .restart = restart,
};

/* --- opening and closing ------------------------------------------------------------------------
 */

static uint32_t
processor_count(void)
{
    cpu_set_t set;

    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return 1;
    return (uint32_t)CPU_COUNT(&set);
}

static tundish_status
open_dealer(struct session *session)
{
    struct dealer_options options = {
        .files = session->files,
        .stop = &session->stop,
        .skip_bad = session->plan->stream->deliver.skip_errors,
    };

    return dealer_open(session->plan, &options, &session->dealer);
}

static tundish_status
open_workers(struct session *session, uint32_t thread_count)
{
    session->worker_count = thread_count != 0 ? thread_count : processor_count();
    if (session->worker_count > THREADS_MAX)
        session->worker_count = THREADS_MAX;
    session->workers = tnd_zalloc(session->worker_count, sizeof *session->workers);
    for (uint32_t i = 0; i < session->worker_count; i++) {
        struct worker *worker = &session->workers[i];
        tundish_status status;

        worker->session = session;
        worker->evaluation = (struct evaluation){
            .files = session->files,
            .scratch = scratch_open(),
            .skip_bad = session->plan->stream->deliver.skip_errors,
        };
        status = tnd_codec_context_open(true, &worker->context);
        if (status != TUNDISH_OK)
            return status;
    }
    return TUNDISH_OK;
}

/* Bytes of the largest slice of the first step: what the lanes are sized by where shapes do not
 * say. A first step that fails does so again under way, where it can be told. */
static uint64_t
measure_first_step(struct session *session)
{
    struct worker *worker = &session->workers[0];
    struct deal_round round = { 0 };
    uint64_t largest = 0;

    if (dealer_start_epoch(session->dealer) == TUNDISH_OK)
        (void)dealer_next(session->dealer, &round);
    for (uint32_t r = 0; r < round.present_count; r++) {
        uint64_t bytes = 0;

        scratch_reset(worker->evaluation.scratch);
        if (fill_measure(&session->fill, &worker->evaluation, &round.slices[r], &bytes) ==
                TUNDISH_OK &&
            bytes > largest)
            largest = bytes;
    }
    deal_round_release(&round);
    dealer_close(session->dealer);
    session->dealer = NULL;
    return largest;
}

static tundish_status
arena_bytes(struct session *session, uint64_t *ret_bytes)
{
    const struct spec_deliver *deliver = &session->plan->stream->deliver;
    uint64_t slice = measure_first_step(session);
    tundish_status status = open_dealer(session);

    if (deliver->lane_bytes != 0)
        *ret_bytes = deliver->lane_bytes;
    else if (session->fill.in_place)
        *ret_bytes = slice * deliver->slots + 4096;
    else /* batches differ: room for some that are larger */
        *ret_bytes = (slice + slice / 4) * deliver->slots + (UINT64_C(1) << 20);
    if (status == TUNDISH_OK && deliver->memory_limit != 0 &&
        *ret_bytes * session->plan->replicas > deliver->memory_limit)
        return tnd_fail(
            TUNDISH_E_MEMORY,
            "%u lanes of %u slots need %llu bytes (the first batch has %llu), more than "
            "memory_limit %llu: fewer slots, smaller batches or compression",
            session->plan->replicas, deliver->slots,
            (unsigned long long)(*ret_bytes * session->plan->replicas), (unsigned long long)slice,
            (unsigned long long)deliver->memory_limit);
    return status;
}

static tundish_status
open_feed(struct session *session, uint64_t server_generation)
{
    const struct spec_stream *stream = session->plan->stream;
    struct feed_config config = {
        .stream = stream->name,
        .session = stream->name,
        .replica_count = session->plan->replicas,
        .first_replica = session->plan->options.worker * session->plan->replicas,
        .total_replica_count = session->plan->options.worker_count * session->plan->replicas,
        .lane = {
            .slots = stream->deliver.slots,
            .max_batch_bytes = stream->deliver.max_batch_bytes,
            .memory = stream->deliver.memory_memfd ? LANE_MEMFD : LANE_SHM,
            .huge_pages = stream->deliver.huge_pages,
            .checksums = stream->deliver.checksums,
            .server_generation = server_generation,
            .spec = &session->spec,
            .bell = session->bell,
        },
        .rejoin_ns = stream->deliver.rejoin_ns,
        .detach = stream->deliver.detach_slow_group,
        .ops = &feed_ops,
        .user = session,
    };
    tundish_status status = arena_bytes(session, &config.lane.arena_bytes);

    return status == TUNDISH_OK ? feed_open(&config, &session->feed) : status;
}

static void
open_steps(struct session *session)
{
    session->capacity = session->plan->stream->deliver.slots + LOOKAHEAD_EXTRA;
    session->steps = tnd_zalloc(session->capacity, sizeof *session->steps);
    for (uint32_t i = 0; i < session->capacity; i++) {
        session->steps[i].shares =
            tnd_zalloc(session->plan->replicas, sizeof *session->steps[i].shares);
        for (uint32_t r = 0; r < session->plan->replicas; r++)
            slot_init(feed_lane(session->feed, r), &session->steps[i].shares[r].slot);
    }
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
    };
    tundish_status status;

    session->options = *options;
    session->bell = options->bell;
    pthread_mutex_init(&session->lock, NULL);
    pthread_cond_init(&session->work, NULL);
    pthread_cond_init(&session->place, NULL);
    status = plan_open(options->file, options->stream, &options->plan, errors, &session->plan);
    if (status == TUNDISH_OK) {
        fill_open(session->plan, &session->fill);
        status = source_files_open(&files_options, &session->files);
    }
    if (status == TUNDISH_OK)
        status = session_spec_open(&session->plan->element_spec, &session->spec);
    if (status == TUNDISH_OK)
        status = open_workers(session, options->thread_count);
    if (status == TUNDISH_OK)
        status = open_dealer(session);
    if (status == TUNDISH_OK)
        status = open_feed(session, options->server_generation);
    if (status != TUNDISH_OK) {
        session_close(session);
        return status;
    }
    open_steps(session);
    *ret_session = session;
    return TUNDISH_OK;
}

tundish_status
session_start(struct session *session)
{
    return run(session);
}

/* The last thing in a lane. A trainer that is there but has no room yet is waited for; a second
 * signal ends that. */
static void
publish_stopped(struct session *session, uint32_t replica)
{
    struct lane *lane = feed_lane(session->feed, replica);
    struct feed_reader_stats readers[64];

    for (;;) {
        struct lane_stats stats;
        bool attached = false;
        uint32_t count = feed_stats(session->feed, readers, 64);

        lane_stats(lane, &stats);
        if (lane_publish_end(lane, stats.published, TND_SLOT_STOPPED, 0, 0, TUNDISH_STOPPED,
                             "the server was stopped") != TUNDISH_E_TIMEOUT)
            return;
        for (uint32_t i = 0; i < count && i < 64; i++)
            attached |= readers[i].attached && readers[i].replica == replica;
        if (!attached)
            return;
        nanosleep(&(struct timespec){ .tv_nsec = DRAIN_RETRY_NS }, NULL);
    }
}

void
session_stop(struct session *session)
{
    if (session->steps == NULL)
        return;
    halt(session);
    for (uint32_t r = 0; r < session->plan->replicas; r++)
        publish_stopped(session, r);
}

static void
close_steps(struct session *session)
{
    for (uint32_t i = 0; session->steps != NULL && i < session->capacity; i++) {
        for (uint32_t r = 0; r < session->plan->replicas; r++)
            slot_fini(&session->steps[i].shares[r].slot);
        free(session->steps[i].shares);
    }
    free(session->steps);
}

void
session_close(struct session *session)
{
    if (session == NULL)
        return;
    if (session->steps != NULL && session->dealing_started)
        halt(session);
    close_steps(session);
    feed_close(session->feed);
    for (uint32_t i = 0; session->workers != NULL && i < session->worker_count; i++) {
        scratch_close(session->workers[i].evaluation.scratch);
        tnd_codec_context_close(session->workers[i].context);
    }
    free(session->workers);
    dealer_close(session->dealer);
    source_files_close(session->files);
    if (session->fill.columns != NULL)
        fill_close(&session->fill);
    session_spec_close(&session->spec);
    plan_close(session->plan);
    pthread_cond_destroy(&session->place);
    pthread_cond_destroy(&session->work);
    pthread_mutex_destroy(&session->lock);
    free(session);
}

struct feed *
session_feed(struct session *session)
{
    return session->feed;
}

void
session_stats(struct session *session, struct session_stats *ret_stats)
{
    struct source_files_stats files;

    source_files_stats(session->files, &files);
    pthread_mutex_lock(&session->lock);
    *ret_stats = session->stats;
    ret_stats->failed = session->failed;
    ret_stats->rows_skipped = session->skipped;
    ret_stats->ended = session->ended;
    ret_stats->thread_count = session->worker_count;
    for (uint32_t i = 0; i < session->worker_count; i++) {
        ret_stats->work_ns += session->workers[i].work_ns;
        ret_stats->wait_room_ns += session->workers[i].wait_ns;
    }
    pthread_mutex_unlock(&session->lock);
    ret_stats->rows_made = files.rows_read;
    ret_stats->bytes_read = files.bytes_read;
}
