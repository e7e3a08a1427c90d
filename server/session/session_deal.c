/* session_deal.c - the thread that asks the order for steps and puts them into the ring. */
#include "session/session_private.h"

#include <string.h>

#include "core/clock.h"
#include "core/log.h"
#include "core/must.h"
#include "session/checkpoint/place_landmarks.h"
#include "session/checkpoint/session_state.h"
#include "source/files/ask_ahead.h"
#include "source/files/listed.h"

/* The limit on other nodes' rows that are asked for ahead, for steps that are dealt and not
 * made. */
static const uint64_t ASKED_BYTES_MAX = 64 << 20;

/* Read the clock, and count what was done since it was read last. */
static void
count_dealing(struct session *session, uint64_t number)
{
    dealing_count(&session->dealing, session->counters.stream, number);
}

static bool
is_too_much_asked(const struct session *session)
{
    return ask_ahead_bytes(session->files) > ASKED_BYTES_MAX;
}

/* Steps beyond the near ones are dealt only for what they tell. The ring's lock is held. */
static bool
is_too_far(const struct session *session)
{
    return ring_count_steps(session) >= session->dealing.near_steps &&
           !ask_ahead_wants_rows(session->files);
}

/* Ask for the step's rows on other nodes, once the earlier steps hold few enough such bytes. */
static void
ask_ahead(struct session *session, struct deal_round *round)
{
    if (is_too_much_asked(session)) {
        count_dealing(session, round->step);
        ring_await_while(session, is_too_much_asked);
    }
    dealer_ask_round(session->plan, session->files, round);
    if (session->dealing.near_steps > 0) {
        count_dealing(session, round->step);
        ring_await_while(session, is_too_far);
    }
}

static tundish_status
deal_step(struct session *session, struct deal_round *ret_round)
{
    tundish_status status = dealer_next(session->dealer, ret_round);
    const char *text;
    uint64_t skipped = dealer_skipped(session->dealer, &text);

    source_files_end_begun(session->files);
    listed_end(session->options.plan.listed);
    if (status == TUNDISH_OK && skipped != session->dealing.skipped) {
        status = ring_add_skips(session, skipped - session->dealing.skipped, text);
        session->dealing.skipped = skipped;
    }
    return status;
}

/* Deal the steps of an epoch from `number` on. False: stop dealing, for whatever reason. */
static bool
deal_steps(struct session *session, uint64_t epoch, uint64_t number)
{
    for (;; number++) {
        struct deal_round round = { 0 };
        enum job_step step = JOB_STEP_END;
        bool cut = false;
        tundish_status status = TUNDISH_OK;

        session->dealing.number = number;
        session->nodes->tell_seed(session);
        if (atomic_load(&session->restart_epoch) == epoch) { /* all trainers asked for the next */
            status = session->nodes->leave_epoch(session, number, &cut);
            session->dealing.deals_since_ns = tnd_clock_ns();
        }
        if (status == TUNDISH_OK && !cut)
            status = deal_step(session, &round);
        must_in_debug(round.present_count <= session->plan->replicas);
        place_landmarks_keep(session->landmarks);
        if (status == TUNDISH_OK && !cut)
            status = session->nodes->step(session, number, round.present_count, &step);
        if (status != TUNDISH_OK || step == JOB_STEP_END)
            dealer_release_round(&round);
        else
            ask_ahead(session, &round);
        if (status == TUNDISH_OK && step == JOB_STEP_END) {
            count_dealing(session, number);
            session->dealing.deals_since_ns = 0;
            status = session->nodes->end_epoch(session, number);
        }
        if (status != TUNDISH_OK) {
            ring_push(session, TND_SLOT_ERROR, epoch, number, NULL, status);
            return false;
        }
        if (step == JOB_STEP_END)
            return ring_push(session, TND_SLOT_END, epoch, number, NULL, TUNDISH_OK);
        if (!ring_push(session, TND_SLOT_BATCH, epoch, number, &round, TUNDISH_OK))
            return false;
        place_files_keep(&session->place_files);
    }
}

/* One reading of the clock for each step: what is between two of them is dealing, but for waits,
 * after which it is read again. */
static bool
deal_epoch(struct session *session, uint64_t epoch, uint64_t number)
{
    bool goes_on;

    session->dealing.deals_since_ns = tnd_clock_ns();
    goes_on = deal_steps(session, epoch, number);
    session->dealing.deals_since_ns = 0;
    return goes_on;
}

tundish_status
session_epoch_place(struct session *session, uint64_t epoch, struct place *ret_place)
{
    const uint64_t *words;
    size_t count = dealer_epoch_state(session->dealer, &words);

    if (count > PLACE_STATE_MAX)
        return tnd_fail(TUNDISH_E_PIPELINE, "a place stores the state of at most %d random stages",
                        PLACE_STATE_MAX / 2);
    place_ready(session->plan, &session->place_files, ret_place);
    ret_place->split = session->dealing.start.split;
    ret_place->state_count = (uint32_t)count;
    memcpy(ret_place->state, words, count * sizeof *words);
    return session->nodes->gather(session, epoch, ret_place);
}

/* Give the lanes the content of places in this epoch. Before its first step: a trainer may save a
 * place as soon as it has that. */
static tundish_status
publish_place(struct session *session, uint64_t epoch)
{
    uint8_t bytes[PLACE_BYTES_MAX];
    struct place place;
    tundish_status status = session_epoch_place(session, epoch, &place);

    if (status != TUNDISH_OK)
        return status;
    must_in_debug(place_bytes(&place) <= sizeof bytes);
    place_write(&place, bytes);
    count_dealing(session, 0);
    /* The lanes remember a limited number of places. With fewer steps in the ring, the next one
     * overwrites none that is still needed. */
    ring_await_few(session);
    return feed_set_place(session->feed, epoch, bytes, place_bytes(&place));
}

static void
tell_leap(struct session *session)
{
    struct order_landmarks *landmarks = place_landmarks_all(session->landmarks);

    if (landmarks == NULL || landmarks->leapt == 0)
        return;
    tnd_log(
        TND_LOG_NOTICE, "resume",
        "stream %s: of %llu elements the cache folder says how many pass, so they are not decided "
        "again",
        session->plan->stream->name, (unsigned long long)landmarks->leapt);
    landmarks->leapt = 0;
}

/* Go to the start that the session was given. The place's state is of its own epoch, so run through
 * the epochs after it whole. */
static tundish_status
go_to_start(struct session *session)
{
    struct start *start = &session->dealing.start;
    bool whole = start->place_epoch == start->epoch;
    struct dealer_standing standing = {
        .from = start->place_epoch,
        .epoch = start->epoch,
        .step = whole ? start->step : 0,
        .words = start->state,
        .word_count = start->state_count,
    };
    tundish_status status;

    must_in_debug(start->given && start->place_epoch <= start->epoch);
    place_own_state(session->plan, dealer_state_words(session->dealer), &standing.words,
                    &standing.word_count);
    status = dealer_go_to(session->dealer, &standing);
    tell_leap(session);
    start->given = false;
    return status;
}

static tundish_status
start_next_epoch(struct session *session, uint64_t epoch)
{
    tundish_status status = dealer_start_epoch(session->dealer);

    return status == TUNDISH_OK ? session->nodes->follow(session, epoch) : status;
}

static tundish_status
start_epoch(struct session *session, uint64_t epoch, uint64_t *ret_number)
{
    tundish_status status;

    *ret_number = session->dealing.start.given &&
                          session->dealing.start.place_epoch == session->dealing.start.epoch
                      ? session->dealing.start.step
                      : 0;
    if (session->dealing.start.given)
        status = go_to_start(session);
    else
        status = start_next_epoch(session, epoch);
    if (status == TUNDISH_OK)
        status = session->nodes->begin_epoch(session, epoch, *ret_number);
    return status == TUNDISH_OK ? publish_place(session, epoch) : status;
}

void *
session_deal(void *argument)
{
    struct session *session = argument;
    uint64_t epochs = session->plan->stream->deliver.epochs, first;
    tundish_status status;

    pthread_setname_np(pthread_self(), "deal");
    if (session->options.shards != NULL) {
        session_deal_shards(session);
        return NULL;
    }
    if (session->dealing.start.after_end &&
        !ring_push(session, TND_SLOT_END, session->dealing.start.epoch - 1,
                   session->dealing.start.end_steps, NULL, TUNDISH_OK))
        return NULL;
    first = session->dealing.start.given ? session->dealing.start.epoch : 0;
    status = session->nodes->begin(session, first);
    if (status != TUNDISH_OK) {
        ring_push(session, TND_SLOT_ERROR, first, session->dealing.start.step, NULL, status);
        return NULL;
    }
    for (uint64_t epoch = first; epochs == 0 || epoch < epochs; epoch++) {
        uint64_t number = 0;

        status = start_epoch(session, epoch, &number);
        if (status != TUNDISH_OK) {
            ring_push(session, TND_SLOT_ERROR, epoch, number, NULL, status);
            return NULL;
        }
        if (epoch == first) {
            session->nodes->tell_state(session, epoch);
            /* Trainers that know where the lanes begin have a place of this run. So has the next
             * server, before that. */
            session_state_begin(session, epoch, number);
            feed_tell_begin(session->feed, epoch, number);
        }
        if (!deal_epoch(session, epoch, number))
            return NULL;
    }
    ring_push(session, TND_SLOT_END_OF_STREAM, epochs, 0, NULL, TUNDISH_OK);
    return NULL;
}
