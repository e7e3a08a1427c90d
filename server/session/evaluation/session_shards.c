/* session_shards.c - an evaluation's reader: shard after shard, as the tracker gives them.
 *
 * No more than two at a time, one being read and one made ready, so that a slow reader does not
 * keep what a fast one could have. None before the reader asks for a batch: it may never do. One
 * that lies ready, and that the reader does not begin, is taken back if others want it. Every shard
 * of an epoch is cut from the same iterator, whichever session deals it. So all shards together are
 * the whole, however it is shuffled.
 */
#include "session/session_private.h"

#include <time.h>

#include "core/clock.h"
#include "core/log.h"
#include "core/memory.h"
#include "core/must.h"

#include <stdlib.h>

enum { EARLY_WITH = 8 }; /* shards that are left */

static const int64_t LOOK_AGAIN_NS = 5000000;
/* A worker tells at once that the reader has asked, but for rare cases. */
static const int64_t LOOK_FOR_READER_NS = 50000000;
/* A reader that waits begins a shard as soon as it wakes. One that does not within this time works
 * on the shard before, is stopped, or does something else. */
static const int64_t BEGINS_WITHIN_NS = 1000000000;

/* The trainer is told how much of the epoch is done, since its tundish_restart depends on that. */
tundish_status
session_shards_start(struct session *session)
{
    struct shards_membership membership;
    tundish_status status = shards_join(session->options.shards, tnd_clock_ns(), &membership);

    must_hold(&session->control.lock);
    if (status != TUNDISH_OK)
        return status;
    /* Nothing is left of this epoch. */
    if (membership.done > 0 && membership.done == shards_count(session->options.shards) &&
        (session->plan->stream->deliver.epochs == 0 ||
         membership.epoch + 1 < session->plan->stream->deliver.epochs)) {
        membership.epoch++;
        membership.done = 0;
    }
    session->dealing.shard_share.reader = membership.reader;
    session->dealing.shard_share.epoch = membership.epoch;
    feed_set_first(session->feed, membership.epoch, membership.done);
    return session_run(session);
}

/* Has the reader been given the whole shard? Batches that it skipped by leaving the epoch do not
 * count. */
static bool
was_returned(const struct taken_shard *taken, const struct lane_stats *stats)
{
    bool is_passed_over =
        taken->epoch_begin <= stats->passed_from && taken->end > stats->passed_from;

    return taken->end <= stats->taken && !is_passed_over;
}

/* Has the reader taken all that is published, and does it wait for more? */
static bool
has_all(const struct lane_stats *stats)
{
    return stats->trainer_waits && stats->taken == stats->published;
}

/* A shard is done when all its batches have been given back. If the reader has left the epoch,
 * others get the shards that it was not given in full. A reader that waits for more may hold its
 * last batch, so neither it nor others wait for that shard. */
static void
settle_shards(struct session *session, uint64_t left_epoch)
{
    struct shard_share *share = &session->dealing.shard_share;
    struct lane_stats stats;
    uint32_t kept = 0;

    lane_stats(feed_lane(session->feed, 0), &stats);
    for (uint32_t i = 0; i < share->count; i++) {
        struct taken_shard *taken = &share->taken[i];

        if (was_returned(taken, &stats) && taken->end <= stats.released)
            shards_finish(session->options.shards, share->reader, taken->epoch, taken->shard);
        else if (taken->epoch == left_epoch && !was_returned(taken, &stats))
            shards_give_back(session->options.shards, share->reader, taken->epoch, taken->shard);
        else {
            if (!taken->is_held && was_returned(taken, &stats) && has_all(&stats)) {
                taken->is_held = true;
                shards_wait_beside(session->options.shards, share->reader, taken->epoch,
                                   taken->shard);
            }
            share->taken[kept++] = *taken;
        }
    }
    share->count = kept;
}

void
session_shards_settle(struct session *session)
{
    settle_shards(session, UINT64_MAX);
}

/* Has the reader asked for the next epoch? */
static bool
is_left(struct session *session, uint64_t epoch)
{
    return atomic_load(&session->restart_epoch) == epoch;
}

static tundish_status
start_shard(struct session *session, uint64_t epoch, uint32_t shard)
{
    size_t count = dealer_state_words(session->dealer);
    uint64_t *words = tnd_zalloc(count + 1, sizeof *words);
    tundish_status status;

    for (size_t i = 0; i < count; i += 2)
        words[i] = epoch;
    dealer_set_shard(session->dealer, shard, shards_count(session->options.shards));
    status = dealer_resume(session->dealer, epoch, 0, words, count);
    free(words);
    return status;
}

static struct taken_shard *
note_begin(struct session *session, uint64_t epoch, uint32_t shard, uint64_t number)
{
    struct shard_share *share = &session->dealing.shard_share;

    must_in_debug(share->reader != 0);
    share->taken = tnd_realloc(share->taken, share->count + 1, sizeof *share->taken);
    share->taken[share->count] = (struct taken_shard){
        .epoch = epoch,
        .begin = ring_next_position(session),
        .end = UINT64_MAX,
        .number = number,
        .epoch_begin = share->epoch_begin,
        .shard = shard,
    };
    return &share->taken[share->count++];
}

/* The shard is done once the reader has given back its last batch. An empty shard has no batch: it
 * is done at once, since the slot before it may be the end of an epoch, not its own. A shard that
 * was cut off is never done. */
static void
note_end(struct session *session, bool is_empty, bool is_cut)
{
    struct shard_share *share = &session->dealing.shard_share;
    struct taken_shard *taken = &share->taken[share->count - 1];

    must_in_debug(taken->end == UINT64_MAX && taken->begin <= ring_next_position(session));
    if (is_cut)
        return;
    taken->end = ring_next_position(session);
    if (is_empty) {
        share->count--;
        shards_finish(session->options.shards, share->reader, taken->epoch, taken->shard);
    }
}

/* The shard that the reader is to begin next: it has begun all before that. NULL: none. */
static const struct taken_shard *
find_not_begun(const struct shard_share *share, const struct lane_stats *stats)
{
    for (uint32_t i = 0; i < share->count; i++)
        if (share->taken[i].begin == stats->taken && stats->taken < stats->published &&
            share->taken[i].end > stats->taken)
            return &share->taken[i];
    return NULL;
}

/* For how long has this shard been ready? */
static int64_t
count_ready_ns(struct shard_share *share, const struct taken_shard *taken)
{
    int64_t now_ns = tnd_clock_ns();

    if (taken == NULL)
        share->ready_since_ns = 0;
    else if (share->ready_since_ns == 0 || share->ready_from != taken->begin)
        share->ready_since_ns = now_ns;
    if (taken != NULL)
        share->ready_from = taken->begin;
    return share->ready_since_ns == 0 ? 0 : now_ns - share->ready_since_ns;
}

/* Once an epoch: a reader that stands still may lose some in each. */
static void
tell_taken_back(struct session *session, const struct taken_shard *first, uint32_t count)
{
    struct shard_share *share = &session->dealing.shard_share;
    struct feed_reader_stats reader = { 0 };

    tnd_stats_add(&session->counters.stream->shards_taken_back, count);
    if (share->told_of_epoch == first->epoch + 1)
        return;
    share->told_of_epoch = first->epoch + 1;
    (void)feed_stats(session->feed, &reader, 1);
    tnd_log(TND_LOG_WARNING, "evaluation",
            "stream %s: process %d has begun nothing of shard %u of epoch %llu for %.0f s: it goes "
            "to a reader that waits for one. Does the process stand still, or do something else?",
            session->plan->stream->name, reader.pid, first->shard, (unsigned long long)first->epoch,
            (double)BEGINS_WITHIN_NS / 1e9);
}

/* Take back what lies ready, or is being made so, if the reader has begun nothing of it for a while
 * and others want it. True: so it was done, and *number is what the reader's next step will be. */
static bool
take_back_if_wanted(struct session *session, uint64_t *number)
{
    struct shard_share *share = &session->dealing.shard_share;
    struct lane *lane = feed_lane(session->feed, 0);
    struct lane_stats stats;
    const struct taken_shard *first;
    uint32_t kept = 0, count = share->count;

    lane_stats(lane, &stats);
    first = find_not_begun(share, &stats);
    if (count_ready_ns(share, first) < BEGINS_WITHIN_NS ||
        !shards_are_wanted(session->options.shards, share->reader, tnd_clock_ns()) ||
        !lane_take_back(lane, first->begin, ring_next_position(session)))
        return false;
    *number = first->number;
    for (uint32_t i = 0; i < count; i++)
        kept += share->taken[i].begin < share->ready_from;
    tell_taken_back(session, first, count - kept);
    kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct taken_shard *taken = &share->taken[i];

        if (taken->begin >= share->ready_from)
            shards_take_back(session->options.shards, share->reader, taken->epoch, taken->shard,
                             *number == 0);
        else
            share->taken[kept++] = *taken;
    }
    share->count = kept;
    share->ready_since_ns = 0;
    return true;
}

/* Wait for room for another step. False: what was dealt of the shard is taken back meanwhile. */
static bool
await_room(struct session *session, uint64_t *number)
{
    uint32_t at_most = 0;

    while (!ring_look_for_room(session, &at_most, LOOK_FOR_READER_NS))
        if (take_back_if_wanted(session, number))
            return false;
    return true;
}

/* Deal the steps of a shard. Push each step only after the next one is dealt: the last step must
 * carry the flag of the shard's end. False: stop dealing. */
static bool
deal_shard_steps(struct session *session, uint64_t epoch, struct deal_round *round,
                 uint64_t *number, bool *ret_is_back)
{
    struct deal_round next = { 0 };
    tundish_status status = TUNDISH_OK;

    *ret_is_back = false;
    while (status == TUNDISH_OK && round->present_count > 0 && !is_left(session, epoch)) {
        status = dealer_next(session->dealer, &next);
        if (status == TUNDISH_OK && next.present_count == 0)
            session->dealing.flags = TUNDISH_BATCH_SHARD_END;
        if (!await_room(session, number)) {
            dealer_release_round(&next);
            *ret_is_back = true;
            return true;
        }
        if (!ring_push(session, TND_SLOT_BATCH, epoch, (*number)++, round, TUNDISH_OK)) {
            *round = (struct deal_round){ 0 };
            dealer_release_round(&next);
            return false;
        }
        *round = next;
        next = (struct deal_round){ 0 };
    }
    if (status != TUNDISH_OK)
        ring_push(session, TND_SLOT_ERROR, epoch, *number, NULL, status);
    return status == TUNDISH_OK;
}

static bool
deal_shard(struct session *session, uint64_t epoch, uint32_t shard, uint64_t *number)
{
    struct deal_round round = { 0 };
    bool is_empty, is_back, goes_on;
    tundish_status status = start_shard(session, epoch, shard);

    note_begin(session, epoch, shard, *number);
    session->dealing.shard = shard;
    session->dealing.flags = 0;
    if (status == TUNDISH_OK)
        status = dealer_next(session->dealer, &round);
    if (status != TUNDISH_OK) {
        session->dealing.shard = -1;
        ring_push(session, TND_SLOT_ERROR, epoch, *number, NULL, status);
        return false;
    }
    is_empty = round.present_count == 0;
    goes_on = deal_shard_steps(session, epoch, &round, number, &is_back);
    if (goes_on && !is_back)
        note_end(session, is_empty, round.present_count > 0);
    dealer_release_round(&round);
    session->dealing.shard = -1;
    session->dealing.flags = 0;
    return goes_on;
}

static uint32_t
count_in_hand(const struct shard_share *share)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < share->count; i++)
        count += !share->taken[i].is_held;
    must_in_debug(count <= SHARDS_AT_A_TIME);
    return count;
}

/* A reader that has nothing left gets a shard when it asks, so that no shard lies with a reader
 * that has stopped. Dealt steps may still be unpublished, such as the end of the epoch before. */
static bool
has_asked(struct session *session)
{
    struct lane_stats stats;

    lane_stats(feed_lane(session->feed, 0), &stats);
    return has_all(&stats) && stats.taken == ring_count_dealt(session);
}

/* The next shard is made ready while the reader is at the last batch of this one. Earlier only
 * where many are left: a reader that is slow, or hangs, would keep one that others could have. */
static bool
may_take_ahead(struct session *session)
{
    const struct shard_share *share = &session->dealing.shard_share;
    struct lane_stats stats;

    if (share->last_shard + EARLY_WITH < shards_count(session->options.shards))
        return true;
    lane_stats(feed_lane(session->feed, 0), &stats);
    return stats.taken == ring_count_dealt(session);
}

static void
look_for_reader(struct session *session)
{
    uint32_t reader = session->dealing.shard_share.reader;

    if (shards_are_wanted(session->options.shards, reader, tnd_clock_ns()))
        shards_ask_no_more(session->options.shards, reader);
    ring_wait_briefly(session, LOOK_FOR_READER_NS);
}

/* The reader's next shard, if it is due. A reader from which one was taken back is due for another
 * once it has heard of that, and asks. */
static enum shards_next
take_shard(struct session *session, uint64_t epoch, struct shards_given *ret_given)
{
    struct shard_share *share = &session->dealing.shard_share;
    uint32_t in_hand = count_in_hand(share);

    if (lane_is_taken_back(feed_lane(session->feed, 0)) || (in_hand == 0 && !has_asked(session))) {
        look_for_reader(session);
        return SHARDS_WAIT;
    }
    if (in_hand == 0 || (in_hand < SHARDS_AT_A_TIME && may_take_ahead(session))) {
        enum shards_next next =
            shards_take(session->options.shards, share->reader, epoch, tnd_clock_ns(), ret_given);

        atomic_store(&session->dealing.awaits_shards, in_hand == 0 && next == SHARDS_WAIT);
        if (next == SHARDS_TAKEN)
            share->last_shard = ret_given->shard;
        if (next != SHARDS_WAIT)
            return next;
    }
    nanosleep(&(struct timespec){ .tv_nsec = LOOK_AGAIN_NS }, NULL);
    return SHARDS_WAIT;
}

/* Others ended more epochs than one without this reader. It cannot be in step with them, and goes
 * on as one that comes now. */
static bool
is_far_behind(struct session *session, uint64_t epoch, uint64_t begin)
{
    return begin > epoch + 1 && lane_is_claimed(feed_lane(session->feed, 0));
}

/* Deal the reader's shards of an epoch, and its end, and set *epoch to the next. */
static bool
deal_epoch_of_shards(struct session *session, uint64_t *epoch)
{
    struct shard_share *share = &session->dealing.shard_share;
    enum shards_next next = SHARDS_WAIT;
    struct shards_given given = { 0 };
    uint64_t ended = (*epoch)++, number = 0;

    share->epoch_begin = ring_next_position(session);
    while (next != SHARDS_OVER && !is_left(session, ended)) {
        session_shards_settle(session);
        take_back_if_wanted(session, &number);
        next = take_shard(session, ended, &given);
        if (next == SHARDS_TAKEN && !deal_shard(session, ended, given.shard, &number))
            return false;
        if (next == SHARDS_WAIT && atomic_load(&session->stop) != 0)
            return false;
        if (next == SHARDS_LOST) {
            ring_push(session, TND_SLOT_ERROR, ended, number, NULL, TUNDISH_E_PEER_LOST);
            return false;
        }
    }
    if (next != SHARDS_OVER)
        settle_shards(session, ended);
    else if (number == 0 && is_far_behind(session, ended, given.epoch)) {
        *epoch = given.epoch;
        return true;
    }
    return ring_push(session, TND_SLOT_END, ended, number, NULL, TUNDISH_OK);
}

void
session_deal_shards(struct session *session)
{
    uint64_t epochs = session->plan->stream->deliver.epochs;
    uint64_t epoch = session->dealing.shard_share.epoch;

    while (epochs == 0 || epoch < epochs)
        if (!deal_epoch_of_shards(session, &epoch))
            return;
    ring_push(session, TND_SLOT_END_OF_STREAM, epochs, 0, NULL, TUNDISH_OK);
}
