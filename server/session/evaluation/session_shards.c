/* session_shards.c - an evaluation's reader: shard after shard, as the board gives them.
 *
 * No more than two at a time, one being read and one made ready, so that a slow reader does not
 * keep what a fast one could have. Every shard is cut from an iterator of the same number, whoever
 * deals it: so all shards of an epoch together are the whole, however it is shuffled.
 */
#include "session/session_private.h"

#include <time.h>

#include "core/clock.h"
#include "core/memory.h"

#include <stdlib.h>

static const int64_t LOOK_AGAIN_NS = 5000000;

/* A shard is done when what is published up to its end has been given back. */
void
session_shards_settle(struct session *session)
{
    struct shard_share *share = &session->shard_share;
    struct lane_stats stats;
    uint32_t kept = 0;

    lane_stats(feed_lane(session->feed, 0), &stats);
    for (uint32_t i = 0; i < share->count; i++) {
        if (share->taken[i].end <= stats.released)
            shards_finish(session->options.shards, share->reader, share->taken[i].epoch,
                          share->taken[i].shard);
        else
            share->taken[kept++] = share->taken[i];
    }
    share->count = kept;
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

/* It is done once the reader has given back its last batch; of an empty one there is nothing to
 * give back, and what comes before it, the end of an epoch perhaps, is not its own. */
static void
note_taken(struct session *session, uint64_t epoch, uint32_t shard, bool is_empty)
{
    struct shard_share *share = &session->shard_share;

    if (is_empty)
        shards_finish(session->options.shards, share->reader, epoch, shard);
    else
        share->taken[share->count++] = (struct taken_shard){ epoch, session->next_position, shard };
}

/* Deal a shard, one step behind the dealer: the last has to be known as such. */
static bool
deal_shard(struct session *session, uint64_t epoch, uint32_t shard, uint64_t *number)
{
    struct deal_round round = { 0 }, next = { 0 };
    bool is_empty = true;
    tundish_status status = start_shard(session, epoch, shard);

    session->shard = shard;
    session->flags = 0;
    if (status == TUNDISH_OK)
        status = dealer_next(session->dealer, &round);
    while (status == TUNDISH_OK && round.present_count > 0) {
        is_empty = false;
        status = dealer_next(session->dealer, &next);
        if (status == TUNDISH_OK && next.present_count == 0)
            session->flags = TUNDISH_BATCH_SHARD_END;
        if (!session_push(session, TND_SLOT_BATCH, epoch, (*number)++, &round, TUNDISH_OK)) {
            deal_round_release(&next);
            return false;
        }
        round = next;
        next = (struct deal_round){ 0 };
    }
    deal_round_release(&round);
    session->shard = -1;
    session->flags = 0;
    if (status != TUNDISH_OK) {
        session_push(session, TND_SLOT_ERROR, epoch, *number, NULL, status);
        return false;
    }
    note_taken(session, epoch, shard, is_empty);
    return true;
}

/* False: the session is being stopped. */
static bool
look_again(struct session *session)
{
    nanosleep(&(struct timespec){ .tv_nsec = LOOK_AGAIN_NS }, NULL);
    return atomic_load(&session->stop) == 0;
}

static bool
deal_epoch_of_shards(struct session *session, uint64_t epoch)
{
    struct shard_share *share = &session->shard_share;
    enum shards_next next = SHARDS_WAIT;
    uint64_t number = 0;
    uint32_t shard;

    while (next != SHARDS_OVER) {
        session_shards_settle(session);
        next = SHARDS_WAIT;
        if (share->count < SHARDS_AT_A_TIME)
            next =
                shards_take(session->options.shards, share->reader, epoch, tnd_clock_ns(), &shard);
        if (next == SHARDS_TAKEN && !deal_shard(session, epoch, shard, &number))
            return false;
        if (next == SHARDS_WAIT && !look_again(session))
            return false;
        if (next == SHARDS_LOST) {
            session_push(session, TND_SLOT_ERROR, epoch, number, NULL, TUNDISH_E_PEER_LOST);
            return false;
        }
    }
    return session_push(session, TND_SLOT_END, epoch, number, NULL, TUNDISH_OK);
}

void
session_deal_shards(struct session *session)
{
    uint64_t epochs = session->plan->stream->deliver.epochs;

    for (uint64_t epoch = session->shard_share.epoch; epochs == 0 || epoch < epochs; epoch++)
        if (!deal_epoch_of_shards(session, epoch))
            return;
    session_push(session, TND_SLOT_END_OF_STREAM, epochs, 0, NULL, TUNDISH_OK);
}
