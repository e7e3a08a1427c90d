/* lane_back.c - take batches back that lie ready and that the lane's trainer has not begun.
 *
 * The trainer may be about to begin them, on another processor: the one word `claim` of its page
 * decides (layout.h). A wrong word there can only cost it its own batches: the server goes by its
 * own book, and frees only slots from the position on up to which the trainer has claimed.
 */
#include "deliver/lane_private.h"

/* The only trainer that reads here, or NULL. */
static struct lane_reader *
only_reader(const struct lane *lane)
{
    struct lane_reader *found = NULL;

    must_hold(&lane->lock);
    for (uint32_t i = 0; i < lane->reader_limit; i++) {
        struct lane_reader *reader = lane->readers[i];

        if (reader == NULL)
            continue;
        if (found != NULL)
            return NULL;
        found = reader;
    }
    return found != NULL && found->connection != NULL && !found->cut_off ? found : NULL;
}

/* The trainer takes the former gap into account before it leaves another one. */
static bool
take_back(struct lane *lane, uint64_t from, uint64_t until)
{
    struct lane_reader *reader = only_reader(lane);
    uint64_t claim = TND_CLAIM(from);

    must_hold(&lane->lock);
    if (reader == NULL || !lane->config.takes_back || reader->taken != from ||
        reader->released < reader->back_until || lane->published <= from)
        return false;
    /* Before the exchange, which releases it. */
    atomic_store(&lane_line(lane, reader->line)->back_until, until);
    if (!atomic_compare_exchange_strong(&lane_reader_page(reader)->claim, &claim,
                                        claim | TND_CLAIM_TAKEN_BACK))
        return false;
    reader->back_from = from;
    reader->back_until = until;
    lane->progress++;
    lane_collect(lane);
    return true;
}

bool
lane_take_back(struct lane *lane, uint64_t from, uint64_t until)
{
    bool is_back;

    tnd_lock_take(&lane->lock);
    lane_collect(lane);
    is_back = take_back(lane, from, until);
    tnd_lock_release(&lane->lock);
    if (is_back && lane->config.wakeup != NULL)
        wakeup_signal(lane->config.wakeup);
    return is_back;
}

static uint64_t
claim_of(struct lane *lane)
{
    const struct lane_reader *reader;
    uint64_t claim = 0;

    tnd_lock_take(&lane->lock);
    reader = only_reader(lane);
    if (reader != NULL)
        claim = atomic_load(&lane_reader_page(reader)->claim);
    tnd_lock_release(&lane->lock);
    return claim;
}

bool
lane_is_taken_back(struct lane *lane)
{
    return (claim_of(lane) & TND_CLAIM_TAKEN_BACK) != 0;
}

bool
lane_is_claimed(struct lane *lane)
{
    return claim_of(lane) != 0;
}
