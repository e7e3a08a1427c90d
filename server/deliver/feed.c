/* feed.c - the lanes of a session, and which of their positions trainers hold.
 *
 * Lock order: the feed's lock, then a lane's, then a connection's. No lock is held in a callback.
 */
#include "deliver/feed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/log.h"
#include "core/memory.h"
#include "core/must.h"
#include "core/status.h"
#include "deliver/feed_begin.h"
#include "deliver/feed_delivery.h"

static tundish_status
open_lanes(struct feed *feed)
{
    for (uint32_t i = 0; i < feed->config.replica_count; i++) {
        struct lane_config lane = feed->config.lane;
        char *name = tnd_sprintf("%s/%u", feed->session, i);
        tundish_status status;

        lane.name = name;
        status = lane_open(&lane, &feed->lanes[i]);
        free(name);
        if (status != TUNDISH_OK)
            return status;
        feed->lane_count++;
    }
    /* The lanes of a feed want the same memory: one sentence does for all of them. */
    for (uint32_t i = 0; i < feed->lane_count; i++)
        if (lane_note(feed->lanes[i])[0] != '\0') {
            tnd_log(TND_LOG_WARNING, "memory", "%s: %s", feed->session, lane_note(feed->lanes[i]));
            break;
        }
    return TUNDISH_OK;
}

tundish_status
feed_open(const struct feed_config *config, struct feed **ret_feed)
{
    struct feed *feed;
    tundish_status status;

    must(config->replica_count > 0 && config->ops != NULL);
    must(config->replica_count == 1 || (!config->lane.queue && !config->broadcast));
    feed = tnd_zalloc(1, sizeof *feed);
    feed->first_epoch = feed->first_step = UINT64_MAX;
    pthread_mutex_init(&feed->lock.mutex, NULL);
    feed->config = *config;
    feed->delivery = config->lane.queue ? &feed_queue
                     : config->forgets  ? &feed_evaluation
                                        : &feed_replicas;
    feed->config.stream = feed->stream = tnd_strdup(config->stream);
    feed->config.session = feed->session = tnd_strdup(config->session);
    feed->lanes = tnd_zalloc(config->replica_count, sizeof(struct lane *));
    feed->place_count = config->lane.slots + 2;
    feed->places = tnd_zalloc(feed->place_count, sizeof *feed->places);
    status = open_lanes(feed);
    if (status != TUNDISH_OK) {
        feed_close(feed);
        return status;
    }
    *ret_feed = feed;
    return TUNDISH_OK;
}

void
feed_close(struct feed *feed)
{
    if (feed == NULL)
        return;
    /* Lanes first: their readers look at what groups have released. */
    for (uint32_t i = 0; i < feed->lane_count; i++)
        lane_close(feed->lanes[i]);
    while (feed->groups != NULL) {
        struct group *group = feed->groups;

        feed->groups = group->next;
        feed_free_group(group);
    }
    feed_begin_forget(feed);
    for (uint32_t i = 0; i < feed->place_count; i++)
        free(feed->places[i].bytes);
    pthread_mutex_destroy(&feed->lock.mutex);
    free(feed->places);
    free(feed->lanes);
    free(feed->stream);
    free(feed->session);
    free(feed);
}

const char *
feed_stream(const struct feed *feed)
{
    return feed->stream;
}

const char *
feed_session(const struct feed *feed)
{
    return feed->session;
}

struct lane *
feed_lane(struct feed *feed, uint32_t replica)
{
    must(replica < feed->lane_count);
    return feed->lanes[replica];
}

void
feed_set_first(struct feed *feed, uint64_t epoch, uint64_t step)
{
    tnd_lock_take(&feed->lock);
    feed->first_epoch = epoch;
    feed->first_step = step;
    tnd_lock_release(&feed->lock);
}

tundish_status
feed_reserve(struct feed *feed, uint32_t replica, struct slot *slot)
{
    struct lane *lane = feed_lane(feed, replica);
    tundish_status status;

    slot->is_awaited = false;
    status = lane_reserve(lane, slot);
    if (status != TUNDISH_E_TIMEOUT || !slot->lacks_room)
        return status;
    /* Only now: most reservations succeed at once, and looking at every lane takes every lane's
     * lock. */
    for (uint32_t i = 0; i < feed->lane_count && !slot->is_awaited; i++)
        slot->is_awaited = lane_is_awaited(feed->lanes[i]);
    return slot->is_awaited ? lane_reserve(lane, slot) : status;
}

struct group *
feed_find_group(struct feed *feed, const char *name)
{
    must_hold(&feed->lock);
    for (struct group *group = feed->groups; group != NULL; group = group->next)
        if (!group->ended && group->awaited == AWAITED_NOT && strcmp(group->name, name) == 0)
            return group;
    return NULL;
}

/* Is the group here, or may it be one of the awaited? */
static bool
knows_group(struct feed *feed, const char *name)
{
    return feed_find_group(feed, name) != NULL || feed_find_awaited(feed) != NULL;
}

bool
feed_knows(struct feed *feed, const char *name)
{
    bool known;

    tnd_lock_take(&feed->lock);
    known = knows_group(feed, name);
    tnd_lock_release(&feed->lock);
    return known;
}

bool
feed_lacks(struct feed *feed, const char *name, uint32_t replica)
{
    const struct group *group;
    bool lacks;

    tnd_lock_take(&feed->lock);
    group = feed_find_group(feed, name);
    lacks = group != NULL && replica < group->member_count && !group->members[replica].was_taken;
    tnd_lock_release(&feed->lock);
    return lacks;
}

/* Is some trainer of the group attached that was opened at a place, or at none? */
static bool
has_one(struct feed *feed, const char *name, bool is_placed)
{
    const struct group *group;
    bool found = false;

    tnd_lock_take(&feed->lock);
    group = feed_find_group(feed, name);
    for (uint32_t i = 0; group != NULL && i < group->member_count; i++)
        found |= group->members[i].connection != NULL && group->members[i].has_place == is_placed;
    tnd_lock_release(&feed->lock);
    return found;
}

bool
feed_has_unplaced(struct feed *feed, const char *name)
{
    return has_one(feed, name, false);
}

bool
feed_has_placed(struct feed *feed, const char *name)
{
    return has_one(feed, name, true);
}

bool
feed_are_all_placed(struct feed *feed)
{
    bool all = true;

    tnd_lock_take(&feed->lock);
    for (const struct group *group = feed->groups; group != NULL; group = group->next)
        for (uint32_t i = 0; i < group->member_count; i++)
            all &= group->members[i].connection != NULL && group->members[i].has_place;
    tnd_lock_release(&feed->lock);
    return all;
}

static uint64_t
start_position(struct feed *feed, const char *name, uint32_t replica)
{
    const struct group *group = feed_find_group(feed, name);
    struct lane_reader_stats stats;

    if (group == NULL)
        return feed_lowest_position(feed);
    lane_reader_stats(group->members[replica].reader, &stats);
    return stats.released;
}

/* Where a replica of the group is, or would begin. That moves on meanwhile, and the slot may be
 * gone when it is looked at. */
static bool
look_at_start(struct feed *feed, const char *name, uint32_t replica, struct lane_look *ret_look)
{
    uint64_t position, before;
    bool found;

    must_hold(&feed->lock);
    position = start_position(feed, name, replica);
    do {
        before = position;
        found = lane_look(feed->lanes[replica], position, ret_look);
        position = start_position(feed, name, replica);
    } while (!found && position != before);
    return found;
}

bool
feed_reaches(struct feed *feed, const char *name, uint32_t replica, uint64_t epoch, uint64_t step,
             bool *ret_near)
{
    struct lane_look look = { 0 };
    uint64_t distance = 0;
    bool found;

    tnd_lock_take(&feed->lock);
    found = replica < feed->lane_count && look_at_start(feed, name, replica, &look);
    /* A successor gets the batches that its predecessor had not given back. Some of them may come
     * before its place. */
    if (knows_group(feed, name))
        distance = feed->config.lane.slots;
    tnd_lock_release(&feed->lock);
    if (!found)
        return false;
    /* The END slot comes after all steps of its epoch, so it suits only a trainer that has had all
     * of them. */
    if (look.published && look.kind == TND_SLOT_END)
        *ret_near = (look.epoch + 1 == epoch && step <= distance) ||
                    (look.epoch == epoch && look.step == step);
    else
        *ret_near = look.epoch == epoch && look.step <= step && step - look.step <= distance;
    return look.epoch < epoch || (look.epoch == epoch && look.step <= step);
}

static bool
is_unused(const struct feed *feed)
{
    must_hold(&feed->lock);
    for (const struct group *group = feed->groups; group != NULL; group = group->next) {
        if (group->awaited != AWAITED_NOT)
            continue;
        /* The group whose trainer is being admitted may move the start: no other group reads. */
        if (feed->admitting == NULL || strcmp(group->name, feed->admitting) != 0)
            return false;
        for (uint32_t i = 0; i < group->member_count; i++)
            if (group->members[i].connection != NULL)
                return false;
    }
    /* Nor one that may come back soon. A session that nobody is to be admitted to keeps nothing. */
    return feed->admitting == NULL || !feed_begin_may_return(feed, feed->admitting);
}

bool
feed_is_unused(struct feed *feed)
{
    bool unused;

    tnd_lock_take(&feed->lock);
    unused = is_unused(feed);
    tnd_lock_release(&feed->lock);
    return unused;
}

/* Its group has been here since the stream's start, and it has not: what the others had is still
 * there for it. */
static bool
is_awaited(struct feed *feed, const char *name, uint32_t replica)
{
    const struct group *group = feed->delivery->find_group(feed, name);
    bool found = false;

    must_hold(&feed->lock);
    for (uint32_t i = 0; group != NULL && i < group->member_count; i++)
        found |= group->members[i].replica == replica && !group->members[i].was_taken;
    return found;
}

bool
feed_is_spent(struct feed *feed, const char *name, uint32_t replica)
{
    bool unused, has_ended = false, has_closed, has_died = false;

    tnd_lock_take(&feed->lock);
    unused = is_unused(feed) && !is_awaited(feed, name, replica);
    has_closed = feed->was_closed;
    for (const struct group *group = feed->groups; group != NULL; group = group->next)
        for (uint32_t i = 0; i < group->member_count; i++) {
            const struct member *member = &group->members[i];

            has_ended |= feed->delivery->has_read_all(feed, member);
            has_closed |= member->leaving == MEMBER_CLOSED;
            has_died |= member->leaving == MEMBER_DIED;
        }
    tnd_lock_release(&feed->lock);
    return unused && (has_ended || (has_closed && !has_died));
}

static bool
feed_is_untouched(struct feed *feed)
{
    for (uint32_t i = 0; i < feed->lane_count; i++) {
        struct lane_stats stats;

        lane_stats(feed->lanes[i], &stats);
        if (stats.published != 0)
            return false;
    }
    return true;
}

static void
forget_places_and_votes(struct feed *feed)
{
    must_hold(&feed->lock);
    for (uint32_t i = 0; i < feed->place_count; i++) {
        free(feed->places[i].bytes);
        feed->places[i] = (struct epoch_place){ 0 };
    }
    feed->has_begin = false;
    feed->restarts_done = 0;
    feed_begin_forget(feed);
    for (struct group *group = feed->groups; group != NULL; group = group->next)
        for (uint32_t i = 0; i < group->member_count; i++) {
            struct member *member = &group->members[i];

            member->restart_votes = 0;
            member->is_ahead = false;
            member->reached = 0;
            /* Its cursor does not say any more where a trainer before has been. */
            member->was_taken = member->connection != NULL;
        }
}

static bool
has_trainers(const struct feed *feed)
{
    for (const struct group *group = feed->groups; group != NULL; group = group->next)
        if (feed_count_present(group) > 0)
            return true;
    return false;
}

bool
feed_has_trainers(struct feed *feed)
{
    bool found;

    tnd_lock_take(&feed->lock);
    found = has_trainers(feed);
    tnd_lock_release(&feed->lock);
    return found;
}

static tundish_status
rewind_if(struct feed *feed, bool unused)
{
    bool untouched = feed_is_untouched(feed);

    must_hold(&feed->lock);
    if (!unused && !untouched)
        return tnd_fail(
            TUNDISH_E_ARGUMENT,
            "session %s has readers and cannot start at another place now; use another session",
            feed->session);
    /* Their cursors were for positions that the new start counts differently. */
    feed_forget_awaited(feed);
    for (uint32_t i = 0; !untouched && i < feed->lane_count; i++)
        lane_reset(feed->lanes[i]);
    forget_places_and_votes(feed);
    return TUNDISH_OK;
}

tundish_status
feed_rewind(struct feed *feed)
{
    tundish_status status;

    tnd_lock_take(&feed->lock);
    status = rewind_if(feed, is_unused(feed));
    tnd_lock_release(&feed->lock);
    return status;
}

tundish_status
feed_rewind_groups(struct feed *feed)
{
    tundish_status status;

    tnd_lock_take(&feed->lock);
    status = rewind_if(feed, !has_trainers(feed));
    tnd_lock_release(&feed->lock);
    return status;
}

bool
feed_has_reader(struct feed *feed, uint32_t replica)
{
    bool found = false;

    tnd_lock_take(&feed->lock);
    for (struct group *group = feed->groups; group != NULL && !found; group = group->next)
        for (uint32_t i = 0; i < group->member_count; i++)
            found |= group->members[i].connection != NULL && group->members[i].replica == replica;
    tnd_lock_release(&feed->lock);
    return found;
}

bool
feed_is_owed(struct feed *feed)
{
    bool found = false;

    for (uint32_t i = 0; i < feed->lane_count && !found; i++)
        found = lane_is_owed(feed->lanes[i]);
    return found;
}

bool
feed_standing(struct feed *feed, uint64_t *ret_epoch, uint64_t *ret_step,
              struct lane_queue_state *ret_queue)
{
    return feed->delivery->find_standing(feed, ret_epoch, ret_step, ret_queue);
}
