/* feed_closed.c - groups that are gone: how their trainers left, and where the next of them begin.
 */
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/memory.h"
#include "deliver/feed_begin.h"

static void
forget_closed(struct feed *feed, uint32_t index)
{
    must_in_debug(index < feed->closed_count);
    free(feed->closed[index].name);
    feed->closed_count--;
    memmove(feed->closed + index, feed->closed + index + 1,
            (feed->closed_count - index) * sizeof *feed->closed);
}

uint64_t
feed_begin_take_closed(struct feed *feed, const char *name)
{
    uint64_t epoch = 0;

    must_hold(&feed->lock);
    for (uint32_t i = 0; i < feed->closed_count && epoch == 0; i++)
        if (strcmp(feed->closed[i].name, name) == 0) {
            epoch = feed->closed[i].epoch;
            forget_closed(feed, i);
        }
    return epoch;
}

bool
feed_begin_may_return(const struct feed *feed, const char *but)
{
    bool found = false;

    for (uint32_t i = 0; i < feed->closed_count; i++)
        found |=
            feed->closed[i].until_ns > tnd_clock_ns() && strcmp(feed->closed[i].name, but) != 0;
    return found;
}

void
feed_begin_ended(struct feed *feed, const struct group *group)
{
    bool had_any = false;

    must_hold(&feed->lock);
    for (uint32_t i = 0; i < group->member_count; i++)
        had_any |= group->members[i].leaving != MEMBER_NEW;
    if (!had_any)
        return;
    feed->was_closed = feed_begin_is_closed(group);
    if (!feed->was_closed || group->begin_epoch == 0)
        return;
    if (feed->closed_count == FEED_CLOSED_MAX)
        forget_closed(feed, 0);
    feed->closed[feed->closed_count++] = (struct closed_group){
        .name = tnd_strdup(group->name),
        .epoch = group->begin_epoch,
        .until_ns = feed_begin_is_over(group) ? tnd_clock_deadline_ns(feed->config.rejoin_ns) : 0,
    };
}

void
feed_begin_forget(struct feed *feed)
{
    while (feed->closed_count > 0)
        forget_closed(feed, 0);
    feed->was_closed = false;
    for (struct group *group = feed->groups; group != NULL; group = group->next)
        for (uint32_t i = 0; i < group->member_count; i++) {
            struct member *member = &group->members[i];

            member->leaving = MEMBER_NEW;
            member->begins = BEGINS_THERE;
            member->attached_at = member->closed_at = 0;
            member->is_between_epochs = false;
        }
}
