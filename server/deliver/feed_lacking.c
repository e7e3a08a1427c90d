/* feed_lacking.c - groups of which some replica has not come to this server.
 *
 * At a start they come one after the other. Later one may never come: it had read all that was left
 * in the memory of the server before, or all before that died, and nobody is left who knows.
 */
#include <stdio.h>

#include "core/clock.h"
#include "core/log.h"
#include "deliver/feed_delivery.h"

static const int64_t PATIENCE_NS = 30000000000;

/* The first replica that has not come, or NULL. */
static const struct member *
find_lacking(const struct group *group)
{
    for (uint32_t i = 0; i < group->member_count; i++)
        if (!group->members[i].was_taken)
            return &group->members[i];
    return NULL;
}

static void
tell_of(const struct feed *feed, const struct group *group, const struct member *lacking)
{
    char limit[64] = "";

    if (lacking->gone_since_ns >= 0 && feed->config.rejoin_ns >= 0)
        snprintf(limit, sizeof limit, ", and the group ends after %.0f s (deliver.rejoin)",
                 (double)feed->config.rejoin_ns / 1e9);
    tnd_log(TND_LOG_WARNING, "groups",
            "stream %s: replica %u of group \"%.100s\" has not come; until it does the others can "
            "take only as many batches as there are slots%s. If it had read all before this server "
            "was started, start it again at the place of another",
            feed->stream, feed->config.first_replica + lacking->replica, group->name, limit);
}

int64_t
feed_tell_lacking(struct feed *feed, int64_t now_ns)
{
    int64_t next_ns = TND_CLOCK_NEVER;

    must_hold(&feed->lock);
    if (!feed->delivery->outlives_trainers)
        return next_ns;
    for (struct group *group = feed->groups; group != NULL; group = group->next) {
        const struct member *lacking = find_lacking(group);
        int64_t due_ns = group->met_at_ns + PATIENCE_NS;

        if (lacking == NULL || group->ended || group->is_told || group->awaited != AWAITED_NOT ||
            feed_count_present(group) == 0)
            continue;
        if (now_ns < due_ns) {
            next_ns = due_ns < next_ns ? due_ns : next_ns;
            continue;
        }
        tell_of(feed, group, lacking);
        group->is_told = true;
    }
    return next_ns;
}
