/* feed_votes.c - trainers that ask to leave an epoch before its end. */
#include "deliver/feed_private.h"

/* The lowest vote: all have asked to leave this epoch. Ended groups do not count. */
static uint64_t
lowest_vote(const struct feed *feed)
{
    uint64_t lowest = UINT64_MAX;

    for (const struct group *group = feed->groups; group != NULL; group = group->next) {
        if (group->ended)
            continue;
        for (uint32_t i = 0; i < group->member_count; i++)
            if (group->members[i].restart_votes < lowest)
                lowest = group->members[i].restart_votes;
    }
    return lowest;
}

void
feed_count_votes(struct feed *feed)
{
    uint64_t all;
    bool is_new;

    tnd_lock_take(&feed->lock);
    all = lowest_vote(feed);
    is_new = all != UINT64_MAX && all > feed->restarts_done;
    if (is_new)
        feed->restarts_done = all;
    tnd_lock_release(&feed->lock);
    if (is_new)
        feed->config.ops->restart(feed->config.user, feed, all - 1);
}

void
feed_vote_restart(struct feed *feed, struct member *member, uint64_t epoch)
{
    tnd_lock_take(&feed->lock);
    /* The epoch comes from the trainer: UINT64_MAX would wrap, and a vote never goes back. */
    if (epoch < UINT64_MAX && epoch + 1 > member->restart_votes)
        member->restart_votes = epoch + 1;
    tnd_lock_release(&feed->lock);
    feed_count_votes(feed);
}
