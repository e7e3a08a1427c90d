/* session_shards.c - an evaluation's reader: shard after shard, as the tracker gives them.
 *
 * No more than two at a time, one being read and one made ready, so that a slow reader does not
 * keep what a fast one could have. None before the reader asks for a batch: it may never do. Every
 * shard of an epoch is cut from the same iterator, whichever session deals it. So all shards
 * together are the whole, however it is shuffled.
 */
#include "session/session_private.h"

#include <time.h>

#include "core/clock.h"
#include "core/memory.h"

#include <stdlib.h>

enum { EARLY_WITH = 8 }; /* shards that are left */

static const int64_t LOOK_AGAIN_NS = 5000000;
/* A worker tells at once that the reader has asked, but for rare cases. */
static const int64_t LOOK_FOR_READER_NS = 50000000;

/* The trainer is told how much of the epoch is done, since its tundish_restart depends on that. */
tundish_status
session_shards_start(struct session *session)
{
    struct shards_membership membership;
    tundish_status status = shards_join(session->options.shards, tnd_clock_ns(), &membership);

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

/* The shard is done once the reader has given back its last batch. An empty shard has no batch: it
 * is done at once, since the slot before it may be the end of an epoch, not its own. A shard that
 * was cut off is never done. */
static void
note_taken(struct session *session, uint64_t epoch, uint32_t shard, bool is_empty, bool is_cut)
{
    struct shard_share *share = &session->dealing.shard_share;

    if (is_empty && !is_cut)
        shards_finish(session->options.shards, share->reader, epoch, shard);
    else {
        share->taken = tnd_realloc(share->taken, share->count + 1, sizeof *share->taken);
        share->taken[share->count++] = (struct taken_shard){
            .epoch = epoch,
            .end = is_cut ? UINT64_MAX : session->ring.next_position,
            .epoch_begin = share->epoch_begin,
            .shard = shard,
        };
    }
}

/* Deal a shard. Push each step only after the next one is dealt: the last step must carry the flag
 * of the shard's end. */
static bool
deal_shard(struct session *session, uint64_t epoch, uint32_t shard, uint64_t *number)
{
    struct deal_round round = { 0 }, next = { 0 };
    bool is_empty = true, is_cut;
    tundish_status status = start_shard(session, epoch, shard);

    session->dealing.shard = shard;
    session->dealing.flags = 0;
    if (status == TUNDISH_OK)
        status = dealer_next(session->dealer, &round);
    while (status == TUNDISH_OK && round.present_count > 0 && !is_left(session, epoch)) {
        is_empty = false;
        status = dealer_next(session->dealer, &next);
        if (status == TUNDISH_OK && next.present_count == 0)
            session->dealing.flags = TUNDISH_BATCH_SHARD_END;
        if (!session_push(session, TND_SLOT_BATCH, epoch, (*number)++, &round, TUNDISH_OK)) {
            deal_round_release(&next);
            return false;
        }
        round = next;
        next = (struct deal_round){ 0 };
    }
    is_cut = round.present_count > 0;
    deal_round_release(&round);
    session->dealing.shard = -1;
    session->dealing.flags = 0;
    if (status != TUNDISH_OK) {
        session_push(session, TND_SLOT_ERROR, epoch, *number, NULL, status);
        return false;
    }
    note_taken(session, epoch, shard, is_empty, is_cut);
    return true;
}

static uint32_t
count_in_hand(const struct shard_share *share)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < share->count; i++)
        count += !share->taken[i].is_held;
    return count;
}

static uint64_t
count_dealt(struct session *session)
{
    uint64_t dealt;

    pthread_mutex_lock(&session->ring.lock);
    dealt = session->ring.next_position;
    pthread_mutex_unlock(&session->ring.lock);
    return dealt;
}

/* A reader that has nothing left gets a shard when it asks, so that none lies with one that does
 * not read on. What was dealt may be still to be published, as the end of the epoch before. */
static bool
has_asked(struct session *session)
{
    struct lane_stats stats;

    lane_stats(feed_lane(session->feed, 0), &stats);
    return has_all(&stats) && stats.taken == count_dealt(session);
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
    return stats.taken == count_dealt(session);
}

/* Until the reader asks, or has gone on to another epoch, or the session is stopped. */
static void
await_reader(struct session *session)
{
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += LOOK_FOR_READER_NS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&session->ring.lock);
    if (!session->ring.draining)
        pthread_cond_clockwait(&session->ring.space, &session->ring.lock, CLOCK_MONOTONIC, &until);
    pthread_mutex_unlock(&session->ring.lock);
}

/* The reader's next shard, if it is due. */
static enum shards_next
take_shard(struct session *session, uint64_t epoch, uint32_t *ret_shard)
{
    struct shard_share *share = &session->dealing.shard_share;
    uint32_t in_hand = count_in_hand(share);

    if (in_hand == 0 && !has_asked(session)) {
        await_reader(session);
        return SHARDS_WAIT;
    }
    if (in_hand == 0 || (in_hand < SHARDS_AT_A_TIME && may_take_ahead(session))) {
        enum shards_next next =
            shards_take(session->options.shards, share->reader, epoch, tnd_clock_ns(), ret_shard);

        atomic_store(&session->dealing.awaits_shards, in_hand == 0 && next == SHARDS_WAIT);
        if (next == SHARDS_TAKEN)
            share->last_shard = *ret_shard;
        if (next != SHARDS_WAIT)
            return next;
    }
    nanosleep(&(struct timespec){ .tv_nsec = LOOK_AGAIN_NS }, NULL);
    return SHARDS_WAIT;
}

static bool
deal_epoch_of_shards(struct session *session, uint64_t epoch)
{
    struct shard_share *share = &session->dealing.shard_share;
    enum shards_next next = SHARDS_WAIT;
    uint64_t number = 0;
    uint32_t shard;

    share->epoch_begin = session->ring.next_position;
    while (next != SHARDS_OVER && !is_left(session, epoch)) {
        session_shards_settle(session);
        next = take_shard(session, epoch, &shard);
        if (next == SHARDS_TAKEN && !deal_shard(session, epoch, shard, &number))
            return false;
        if (next == SHARDS_WAIT && atomic_load(&session->stop) != 0)
            return false;
        if (next == SHARDS_LOST) {
            session_push(session, TND_SLOT_ERROR, epoch, number, NULL, TUNDISH_E_PEER_LOST);
            return false;
        }
    }
    if (next != SHARDS_OVER)
        settle_shards(session, epoch);
    return session_push(session, TND_SLOT_END, epoch, number, NULL, TUNDISH_OK);
}

void
session_deal_shards(struct session *session)
{
    uint64_t epochs = session->plan->stream->deliver.epochs;

    for (uint64_t epoch = session->dealing.shard_share.epoch; epochs == 0 || epoch < epochs;
         epoch++)
        if (!deal_epoch_of_shards(session, epoch))
            return;
    session_push(session, TND_SLOT_END_OF_STREAM, epochs, 0, NULL, TUNDISH_OK);
}
