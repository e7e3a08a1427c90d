/* feed_ends.c - groups that end: no trainer came back in time, or they held up another group. */
#include <stdio.h>
#include <stdlib.h>

#include "core/clock.h"
#include "core/log.h"
#include "core/memory.h"
#include "deliver/feed_begin.h"
#include "deliver/feed_delivery.h"

#define LOOK_FOR_SLOW_GROUPS_NS INT64_C(1000000000)

enum { TEXT_BYTES = 512 };

static int64_t
earlier(int64_t a_ns, int64_t b_ns)
{
    return a_ns < b_ns ? a_ns : b_ns;
}

/* Cut the group off and free its name for a new group. Trainers that are still attached are told,
 * and leave by themselves. */
static void
end_group(struct feed *feed, struct group *group, enum group_end how, const char *text)
{
    must_in_debug(!group->ended);
    must_hold(&feed->lock);
    group->ended = true;
    if (group->awaited != AWAITED_NOT)
        tnd_log(TND_LOG_WARNING, "groups",
                "session %s continues without a group of the previous server, which did not "
                "reattach in time",
                feed->session);
    for (uint32_t i = 0; i < group->member_count; i++) {
        struct member *member = &group->members[i];

        if (member->connection != NULL) {
            connection_post_text(member->connection, group_departures[how].message,
                                 group_departures[how].status, text);
            lane_reader_cut_off(member->reader);
        } else {
            lane_reader_close(member->reader);
            member->reader = NULL;
        }
    }
    if (feed_count_present(group) > 0)
        return;
    feed_begin_ended(feed, group);
    feed_unlink_group(feed, group);
}

/* The replica of the group whose time to rejoin runs out first, or NULL. */
static const struct member *
find_first_gone(const struct group *group)
{
    const struct member *first = NULL;

    for (uint32_t i = 0; i < group->member_count; i++) {
        const struct member *member = &group->members[i];

        if (member->connection == NULL && member->gone_since_ns >= 0 &&
            (first == NULL || member->gone_since_ns < first->gone_since_ns))
            first = member;
    }
    return first;
}

void
feed_end_group(struct feed *feed, const char *name, const char *text)
{
    struct group *group;

    tnd_lock_take(&feed->lock);
    group = feed_find_group(feed, name);
    if (group != NULL)
        end_group(feed, group, GROUP_MOVED, text);
    feed_tell_groups(feed);
    tnd_lock_release(&feed->lock);
}

/* When the group's time to come back is over. */
static int64_t
gone_until_ns(const struct feed *feed, const struct group *group)
{
    const struct member *gone = group->ended ? NULL : find_first_gone(group);

    if (group->awaited != AWAITED_NOT)
        return group->awaited_until_ns;
    return gone == NULL || feed->config.rejoin_ns < 0
               ? TND_CLOCK_NEVER
               : gone->gone_since_ns + feed->config.rejoin_ns;
}

/* The ended group, as the session is told of it. */
struct ending {
    char *name; /* NULL: no group has ended */
    bool lost;  /* some replica has not had all batches */
};

/* No replica of the group is at another server, which would have to be told. */
static bool
is_whole_job(const struct feed *feed)
{
    return feed->config.replica_count == feed->config.total_replica_count;
}

/* End the first group whose time is over, or find the next deadline. One at a time, since the
 * session is told without the lock and the list may change meanwhile. */
static struct ending
end_gone_group(struct feed *feed, int64_t now_ns, int64_t *deadline_ns)
{
    must_hold(&feed->lock);
    for (struct group *group = feed->groups; group != NULL; group = group->next) {
        int64_t until_ns = gone_until_ns(feed, group);
        char text[TEXT_BYTES] = "";
        struct ending ending;

        if (now_ns < until_ns) {
            *deadline_ns = earlier(until_ns, *deadline_ns);
            continue;
        }
        if (group->awaited == AWAITED_NOT)
            snprintf(text, sizeof text,
                     "replica %u of group \"%.100s\" left and no replacement attached within %.0f "
                     "s (deliver.rejoin): the group has ended; open again at a place",
                     feed->config.first_replica + find_first_gone(group)->replica, group->name,
                     (double)feed->config.rejoin_ns / 1e9);
        ending.name = tnd_strdup(group->name);
        ending.lost = group->awaited == AWAITED_NOT && !feed_group_has_finished(feed, group) &&
                      !(feed_begin_is_closed(group) && is_whole_job(feed));
        feed->losses.groups += ending.lost;
        end_group(feed, group, GROUP_GONE, text);
        return ending;
    }
    return (struct ending){ NULL, false };
}

/* The longest that a trainer of another group has waited at a lane that this one fills. */
static int64_t
held_up_for(struct feed *feed, const struct group *slow)
{
    int64_t longest_ns = 0;

    for (uint32_t i = 0; i < slow->member_count; i++) {
        struct lane_stats lane;
        struct lane_reader_stats own, other;

        lane_stats(feed->lanes[i], &lane);
        lane_reader_stats(slow->members[i].reader, &own);
        /* Only a group at the lane's lowest position holds it up, and only while no slot is
         * free. */
        if (!lane.full || own.released != lane.released)
            continue;
        for (struct group *group = feed->groups; group != NULL; group = group->next) {
            if (group == slow || group->ended)
                continue;
            lane_reader_stats(group->members[i].reader, &other);
            if (other.taken == lane.published && other.waits_ns > longest_ns)
                longest_ns = other.waits_ns;
        }
    }
    return longest_ns;
}

static struct ending
detach_slow_group(struct feed *feed)
{
    must_hold(&feed->lock);
    for (struct group *group = feed->groups; group != NULL; group = group->next) {
        int64_t held_up_ns = group->ended ? 0 : held_up_for(feed, group);
        char text[TEXT_BYTES];
        struct ending ending;

        if (held_up_ns == 0 || held_up_ns < feed->config.detach_ns)
            continue;
        snprintf(text, sizeof text,
                 "group \"%.100s\" blocked another group for %.1f s and was detached "
                 "(deliver.slow_group: detach)",
                 group->name, (double)held_up_ns / 1e9);
        ending = (struct ending){ tnd_strdup(group->name), group->awaited == AWAITED_NOT };
        feed->losses.groups++;
        end_group(feed, group, GROUP_SILENT, text);
        return ending;
    }
    return (struct ending){ NULL, false };
}

/* When the last of its trainers closed its reader, or -1: one is attached, is awaited or has died.
 */
static int64_t
left_since_ns(const struct group *group)
{
    int64_t since_ns = -1;

    for (uint32_t i = 0; i < group->member_count; i++) {
        const struct member *member = &group->members[i];

        if (member->connection != NULL || (member->was_taken && !member->has_closed))
            return -1;
        since_ns = member->gone_since_ns > since_ns ? member->gone_since_ns : since_ns;
    }
    return group->awaited == AWAITED_NOT && !group->ended ? since_ns : -1;
}

int64_t
feed_left_since_ns(struct feed *feed)
{
    int64_t latest_ns = -1;

    tnd_lock_take(&feed->lock);
    for (const struct group *group = feed->groups; group != NULL; group = group->next) {
        int64_t since_ns = left_since_ns(group);

        if (since_ns < 0) {
            latest_ns = -1;
            break;
        }
        latest_ns = since_ns > latest_ns ? since_ns : latest_ns;
    }
    tnd_lock_release(&feed->lock);
    return latest_ns;
}

static struct group *
find_left_first(const struct feed *feed)
{
    struct group *first = NULL;
    int64_t first_ns = INT64_MAX;

    must_hold(&feed->lock);
    for (struct group *group = feed->groups; group != NULL; group = group->next) {
        int64_t since_ns = left_since_ns(group);

        if (since_ns >= 0 && since_ns < first_ns) {
            first = group;
            first_ns = since_ns;
        }
    }
    return first;
}

void
feed_make_room(struct feed *feed, const char *name)
{
    struct group *left = NULL;
    char *left_name = NULL;
    uint32_t count = 0;

    tnd_lock_take(&feed->lock);
    for (const struct group *group = feed->groups; group != NULL; group = group->next)
        count++;
    if (count >= TND_CONSUMERS_MAX && feed->delivery->holds_up_others &&
        feed_find_group(feed, name) == NULL)
        left = find_left_first(feed);
    if (left != NULL) {
        left_name = tnd_strdup(left->name);
        end_group(feed, left, GROUP_YIELDS, "");
        feed_tell_groups(feed);
    }
    tnd_lock_release(&feed->lock);
    if (left_name != NULL)
        feed->config.ops->group_ended(feed->config.user, feed, left_name, false);
    free(left_name);
}

int64_t
feed_tick(struct feed *feed, int64_t now_ns)
{
    bool looks_for_slow = feed->config.detach && feed->delivery->holds_up_others;

    feed_count_votes(feed);
    for (;;) {
        int64_t deadline_ns = TND_CLOCK_NEVER;
        bool several;
        struct ending ended;

        tnd_lock_take(&feed->lock);
        ended = end_gone_group(feed, now_ns, &deadline_ns);
        deadline_ns = earlier(deadline_ns, feed_begin_tick(feed, now_ns));
        deadline_ns = earlier(deadline_ns, feed_tell_lacking(feed, now_ns));
        several = feed->groups != NULL && feed->groups->next != NULL;
        if (ended.name == NULL && looks_for_slow && several) {
            ended = detach_slow_group(feed);
            if (deadline_ns > now_ns + LOOK_FOR_SLOW_GROUPS_NS)
                deadline_ns = now_ns + LOOK_FOR_SLOW_GROUPS_NS;
        }
        if (ended.name != NULL)
            feed_tell_groups(feed);
        tnd_lock_release(&feed->lock);
        if (ended.name == NULL)
            return earlier(deadline_ns, feed->config.ops->tick(feed->config.user, feed, now_ns));
        feed->config.ops->group_ended(feed->config.user, feed, ended.name, ended.lost);
        free(ended.name);
    }
}
