/* feed_ahead.c - replicas that open at a place, beside others of their group that have none.
 *
 * A place may lie beyond all that the replica was given here: another server gave it what is
 * between. A replica without a place has not come along, unless it had taken as much here before.
 */
#include <inttypes.h>
#include <stdio.h>

#include "core/status.h"
#include "deliver/feed_private.h"

enum { TEXT_BYTES = 512 };

static struct member *
find_member(struct feed *feed, const char *name, uint32_t replica)
{
    struct group *group = feed_find_group(feed, name);

    return group != NULL && replica < group->member_count ? &group->members[replica] : NULL;
}

bool
feed_was_taken(struct feed *feed, const char *name, uint32_t replica)
{
    const struct member *member;
    bool was_taken;

    tnd_lock_take(&feed->lock);
    member = find_member(feed, name, replica);
    was_taken = member != NULL && member->was_taken;
    tnd_lock_release(&feed->lock);
    return was_taken;
}

/* The step after all that the replica was given. A replica that has had all steps of an epoch may
 * stand at the next one, told of the end or not. False: nothing was published yet. */
static bool
look_behind(struct feed *feed, const struct member *member, uint32_t replica,
            struct lane_look *ret_look)
{
    struct lane_reader_stats stats;
    uint64_t position = feed_lowest_position(feed);

    must_hold(&feed->lock);
    if (member != NULL) {
        lane_reader_stats(member->reader, &stats);
        position = member->connection != NULL ? stats.taken
                   : member->is_refused       ? 0
                                              : stats.released;
        position = position > member->reached ? position : member->reached;
    }
    if (!lane_look(feed->lanes[replica], position, ret_look))
        return false;
    if (ret_look->published && ret_look->kind == TND_SLOT_END) {
        ret_look->epoch++;
        ret_look->step = 0;
    }
    return true;
}

static bool
is_after(uint64_t epoch, uint64_t step, const struct lane_look *look)
{
    return epoch > look->epoch || (epoch == look->epoch && step > look->step);
}

bool
feed_is_beyond(struct feed *feed, const char *name, uint32_t replica,
               const struct feed_start *start, bool *ret_known)
{
    struct lane_look look = { 0 };

    tnd_lock_take(&feed->lock);
    *ret_known = replica < feed->lane_count &&
                 look_behind(feed, find_member(feed, name, replica), replica, &look);
    tnd_lock_release(&feed->lock);
    return *ret_known && is_after(start->epoch, start->step, &look);
}

/* Has the one opened at a place that is beyond all that the other was given? */
static bool
is_ahead_of(struct feed *feed, const struct member *ahead, const struct member *member)
{
    struct lane_look look;

    must_hold(&feed->lock);
    return ahead->is_ahead && (!look_behind(feed, member, member->replica, &look) ||
                               is_after(ahead->ahead_epoch, ahead->ahead_step, &look));
}

static struct feed_ahead
ahead_of(const struct feed *feed, const struct member *member)
{
    return (struct feed_ahead){ feed->config.first_replica + member->replica, member->ahead_epoch,
                                member->ahead_step };
}

bool
feed_has_ahead(const struct group *group)
{
    bool found = false;

    for (uint32_t i = 0; group != NULL && i < group->member_count; i++)
        found |= group->members[i].connection != NULL && group->members[i].is_ahead;
    return found;
}

bool
feed_find_ahead(struct feed *feed, const char *name, uint32_t replica, struct feed_ahead *ret_ahead)
{
    const struct member *member, *found = NULL;

    tnd_lock_take(&feed->lock);
    member = find_member(feed, name, replica);
    for (uint32_t i = 0; member != NULL && i < member->group->member_count; i++) {
        const struct member *other = &member->group->members[i];

        if (other != member && other->connection != NULL && is_ahead_of(feed, other, member))
            found = other;
    }
    if (found != NULL)
        *ret_ahead = ahead_of(feed, found);
    tnd_lock_release(&feed->lock);
    return found != NULL;
}

void
feed_admit_ahead(struct feed *feed)
{
    tnd_lock_take(&feed->lock);
    feed->admits_ahead = true;
    tnd_lock_release(&feed->lock);
}

void
feed_admit_unplaced(struct feed *feed, const struct feed_elsewhere *ahead)
{
    tnd_lock_take(&feed->lock);
    feed->admits_unplaced = true;
    feed->unplaced_by = *ahead;
    tnd_lock_release(&feed->lock);
}

static void
describe(const struct feed *feed, const struct feed_elsewhere *ahead, uint32_t replica,
         char text[TEXT_BYTES])
{
    bool is_here = ahead->node[0] == '\0';

    snprintf(text, TEXT_BYTES,
             "replica %u of group \"%.100s\"%s%.100s opened at its place, epoch %" PRIu64
             ", step %" PRIu64 ", and replica %u has none and may lack what was before: they would "
             "train steps apart. Open all replicas at places of the same step, or all without a "
             "place",
             ahead->ahead.replica, ahead->group, is_here ? "" : " on ", ahead->node,
             ahead->ahead.epoch, ahead->ahead.step, feed->config.first_replica + replica);
}

static void
tell_unplaced(const struct feed *feed, const struct feed_elsewhere *ahead, struct member *member)
{
    char text[TEXT_BYTES];

    must_in_debug(member->connection != NULL);
    member->is_refused = true;
    describe(feed, ahead, member->replica, text);
    connection_post_text(member->connection, TND_LOST, TUNDISH_E_PLACE, text);
    lane_reader_notify(member->reader);
}

/* They are not cut off: a program that loads its checkpoint late, and opens again at the place, is
 * not disturbed. */
static void
note_ahead(const struct feed *feed, struct member *member, const struct feed_start *start)
{
    struct group *group = member->group;
    struct feed_elsewhere here = { .group = group->name };

    must_hold(&feed->lock);
    member->is_ahead = true;
    member->ahead_epoch = start->epoch;
    member->ahead_step = start->step;
    here.ahead = ahead_of(feed, member);
    for (uint32_t i = 0; i < group->member_count; i++)
        if (group->members[i].connection != NULL && !group->members[i].has_place)
            tell_unplaced(feed, &here, &group->members[i]);
}

/* The group goes on from where this replica is. Should another come back at its place, that is
 * beyond all again. */
static void
forget_ahead(struct feed *feed, const struct member *member)
{
    struct group *group = member->group;

    must_hold(&feed->lock);
    for (uint32_t i = 0; i < group->member_count; i++) {
        struct member *other = &group->members[i];

        if (other->connection == NULL && is_ahead_of(feed, other, member)) {
            other->is_ahead = false;
            other->reached = 0;
        }
    }
}

static void
note_come(struct feed *feed, struct member *member)
{
    struct lane_look look = { 0 };

    (void)look_behind(feed, member, member->replica, &look);
    member->came_epoch = look.epoch;
    member->came_step = look.step;
}

void
feed_note_start(struct feed *feed, struct member *member, const struct feed_start *start)
{
    must_hold(&feed->lock);
    note_come(feed, member);
    member->is_refused = feed->admits_unplaced;
    if (feed->admits_ahead)
        note_ahead(feed, member, start);
    else if (!start->has_place && !member->is_refused)
        forget_ahead(feed, member);
}

void
feed_tell_refused(struct feed *feed, struct member *member)
{
    must_hold(&feed->lock);
    if (!feed->admits_unplaced)
        return;
    feed->unplaced_by.group = member->group->name;
    tell_unplaced(feed, &feed->unplaced_by, member);
}

bool
feed_first_ahead(struct feed *feed, const char *name, struct feed_ahead *ret_ahead)
{
    const struct group *group;
    bool found = false;

    tnd_lock_take(&feed->lock);
    group = feed_find_group(feed, name);
    for (uint32_t i = 0; group != NULL && i < group->member_count && !found; i++) {
        const struct member *member = &group->members[i];

        found = member->connection != NULL && member->is_ahead;
        if (found)
            *ret_ahead = ahead_of(feed, member);
    }
    tnd_lock_release(&feed->lock);
    return found;
}

/* It may have read on before the word came, so what it was given since it opened does not count. */
void
feed_tell_elsewhere(struct feed *feed, const struct feed_elsewhere *elsewhere)
{
    const struct feed_ahead *ahead = &elsewhere->ahead;
    struct group *group;

    tnd_lock_take(&feed->lock);
    group = feed_find_group(feed, elsewhere->group);
    for (uint32_t i = 0; group != NULL && i < group->member_count; i++) {
        struct member *member = &group->members[i];
        const struct lane_look come = { .epoch = member->came_epoch, .step = member->came_step };

        if (member->connection != NULL && !member->has_place &&
            is_after(ahead->epoch, ahead->step, &come))
            tell_unplaced(feed, elsewhere, member);
    }
    tnd_lock_release(&feed->lock);
}

bool
feed_is_elsewhere(struct feed *feed, const struct feed_elsewhere *elsewhere, uint32_t replica)
{
    struct lane_look look;
    bool is_far;

    tnd_lock_take(&feed->lock);
    is_far = replica < feed->lane_count &&
             (!look_behind(feed, find_member(feed, elsewhere->group, replica), replica, &look) ||
              is_after(elsewhere->ahead.epoch, elsewhere->ahead.step, &look));
    tnd_lock_release(&feed->lock);
    return is_far;
}

/* The trainer may have saved a place behind what it took. But one that was refused has read steps
 * apart from its group. */
void
feed_note_reached(struct member *member)
{
    struct lane_reader_stats stats;

    lane_reader_stats(member->reader, &stats);
    if (stats.taken > member->reached && !member->is_refused)
        member->reached = stats.taken;
}
