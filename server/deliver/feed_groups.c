/* feed_groups.c - trainers attach to and leave groups, and the others are told. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/log.h"
#include "core/memory.h"
#include "core/must.h"
#include "core/status.h"
#include "deliver/feed_begin.h"
#include "deliver/feed_delivery.h"

enum { TEXT_BYTES = 512 };

/* Its readers are closed already, by the lanes or by feed_unlink_group: they look at `released`. */
void
feed_free_group(struct group *group)
{
    free(group->released);
    free(group->name);
    free(group);
}

uint32_t
feed_count_present(const struct group *group)
{
    uint32_t present = 0;

    for (uint32_t i = 0; i < group->member_count; i++)
        present += group->members[i].connection != NULL;
    return present;
}

static uint32_t
count_full_groups(const struct feed *feed)
{
    uint32_t full = 0;

    for (const struct group *group = feed->groups; group != NULL; group = group->next)
        full += !group->ended && feed_count_present(group) == group->member_count;
    return full;
}

void
feed_unlink_group(struct feed *feed, struct group *group)
{
    struct group **link = &feed->groups;

    must_hold(&feed->lock);
    while (*link != group)
        link = &(*link)->next;
    *link = group->next;
    for (uint32_t i = 0; i < group->member_count; i++)
        lane_reader_close(group->members[i].reader);
    feed_free_group(group);
}

uint64_t
feed_lowest_position(struct feed *feed)
{
    uint64_t position = 0;

    must_hold(&feed->lock);
    for (uint32_t i = 0; i < feed->lane_count; i++) {
        uint64_t lowest = lane_lowest(feed->lanes[i]);

        if (lowest > position)
            position = lowest;
    }
    return position;
}

/* No trainer of the group is attached. All replicas continue at the lowest step that one of them
 * has not released, so that they stay in step. */
static void
level_group(struct group *group)
{
    uint64_t lowest = UINT64_MAX;
    struct lane_reader_stats stats;

    must_in_debug(feed_count_present(group) == 0);
    for (uint32_t i = 0; i < group->member_count; i++) {
        lane_reader_stats(group->members[i].reader, &stats);
        lowest = stats.released < lowest ? stats.released : lowest;
    }
    for (uint32_t i = 0; i < group->member_count; i++)
        lane_reader_move(group->members[i].reader, lowest);
}

tundish_status
feed_make_group(struct feed *feed, const char *name, struct group **ret_group)
{
    uint32_t member_count = feed->config.replica_count;
    struct group *group = tnd_alloc(sizeof *group + member_count * sizeof group->members[0]);

    must_hold(&feed->lock);
    memset(group, 0, sizeof *group + member_count * sizeof group->members[0]);
    group->name = tnd_strdup(name);
    group->member_count = member_count;
    group->next = feed->groups;
    feed->groups = group;
    for (uint32_t i = 0; i < member_count; i++) {
        struct member *member = &group->members[i];
        tundish_status status = lane_reader_open(feed->lanes[i], 0, &member->reader);

        if (status != TUNDISH_OK) {
            feed_unlink_group(feed, group);
            return status;
        }
        member->group = group;
        member->replica = i;
        member->gone_since_ns = -1;
        member->seen_at_ns = tnd_clock_ns();
    }
    feed->delivery->align(group);
    *ret_group = group;
    return TUNDISH_OK;
}

/* The session decides where a start may be moved or a missing place matters. A successor without a
 * place simply continues at its predecessor's cursor. */
static bool
must_be_admitted(struct feed *feed, const struct feed_request *request)
{
    struct group *group = feed->delivery->find_group(feed, request->group);

    must_hold(&feed->lock);
    return request->start.has_place || request->start.survivor || group == NULL ||
           feed_count_present(group) == 0 || feed_has_ahead(group) ||
           !group->members[request->replica].was_taken;
}

/* Start the time to rejoin of every replica without a trainer. */
static void
expect_back(struct group *group)
{
    for (uint32_t i = 0; i < group->member_count; i++)
        if (group->members[i].connection == NULL && group->members[i].gone_since_ns < 0)
            group->members[i].gone_since_ns = tnd_clock_ns();
}

static tundish_status
join_member(struct feed *feed, const struct feed_request *request, struct connection *connection,
            struct member **ret_member)
{
    struct group *group = feed->delivery->take_group(feed, request);
    struct tnd_welcome welcome = {
        .protocol = TND_PROTOCOL_MAX,
        .flags = (uint16_t)(TND_WELCOME_STANDING | (feed->has_begin ? TND_WELCOME_BEGIN : 0)),
        .replica = request->replica,
        .replica_count = feed->config.replica_count,
        .first_replica = feed->config.first_replica,
        .total_replica_count = feed->config.total_replica_count,
        .first_epoch = feed->first_epoch,
        .first_step = feed->first_step,
        .epoch_steps = feed->config.epoch_steps,
    };
    struct member *member;
    bool is_new = false;
    tundish_status status = TUNDISH_OK;

    must_hold(&feed->lock);
    snprintf(welcome.stream, sizeof welcome.stream, "%s", feed->stream);
    if (group == NULL) {
        is_new = true;
        status = feed_make_group(feed, request->group, &group);
    } else if (feed_count_present(group) == 0) {
        level_group(group);
    }
    if (status != TUNDISH_OK)
        return status;
    if (feed_count_present(group) == 0) {
        group->met_at_ns = tnd_clock_ns();
        group->is_told = false;
    }
    /* A group of one takes trainers whatever their number. */
    member = &group->members[request->replica % group->member_count];
    feed_note_start(feed, member, &request->start);
    feed_begin_attach(feed, member, request, is_new, &welcome);
    /* Without trainers there were no beats: the one that comes would find a dead server. */
    lane_beat(feed->lanes[member->replica % feed->lane_count], tnd_clock_ns());
    status = lane_reader_attach(member->reader, connection, &welcome);
    if (status != TUNDISH_OK) {
        if (is_new) /* the group was made for this trainer alone */
            feed_unlink_group(feed, group);
        else if (feed_count_present(group) == 0)
            expect_back(group);
        return status;
    }
    if (is_new)
        feed->delivery->tell_new_group(feed, group, &welcome);
    member->connection = connection;
    feed_begin_attached(member, &welcome);
    member->was_taken |= !member->is_refused;
    member->has_place = request->start.has_place;
    member->has_kept = request->start.has_kept;
    member->gone_since_ns = -1;
    member->seen_at_ns = tnd_clock_ns();
    group->is_back |= request->start.has_kept;
    if (request->start.survivor)
        expect_back(group);
    feed_send_places(feed, connection);
    feed_tell_refused(feed, member);
    lane_reader_notify(member->reader);
    *ret_member = member;
    return TUNDISH_OK;
}

static void
drop_group(struct feed *feed, struct group *group)
{
    must_in_debug(feed_count_present(group) == 0);
    must_hold(&feed->lock);
    feed_begin_ended(feed, group);
    feed_unlink_group(feed, group);
}

/* Nothing is kept for a group that has closed at an epoch's end: it holds up no other. At the
 * stream's end nothing is to come, and a trainer may return at its last place. */
static bool
is_to_drop(struct feed *feed, const struct group *group)
{
    return feed_begin_is_over(group) && !feed_group_has_finished(feed, group);
}

/* Neither for one that has left, of which a replica was told that the stream has failed. */
static bool
has_left_failed(const struct feed *feed, const struct group *group)
{
    bool was_told = false;

    must_hold(&feed->lock);
    if (!feed->delivery->outlives_trainers || feed_count_present(group) > 0)
        return false;
    for (uint32_t i = 0; i < group->member_count; i++) {
        const struct member *member = &group->members[i];
        struct lane_reader_stats stats;
        struct lane_look look;

        lane_reader_stats(member->reader, &stats);
        was_told |=
            lane_look(feed->lanes[member->replica % feed->lane_count], stats.taken, &look) &&
            look.published && look.kind == TND_SLOT_ERROR;
    }
    return was_told;
}

/* Nor for those that have closed in mid-epoch, if nobody reads: the one that comes begins another
 * epoch. */
static void
drop_closed(struct feed *feed, const struct feed_request *request)
{
    bool begins_anew = !request->start.has_place && !feed_begin_is_shared(feed, NULL);
    struct group *next;

    must_hold(&feed->lock);
    for (struct group *group = feed->groups; group != NULL; group = next) {
        next = group->next;
        if (strcmp(group->name, request->group) != 0 &&
            (is_to_drop(feed, group) || has_left_failed(feed, group) ||
             (begins_anew && feed_begin_is_closed(group))))
            drop_group(feed, group);
    }
}

tundish_status
feed_attach(struct feed *feed, const struct feed_request *request, struct connection *connection,
            struct member **ret_member)
{
    const struct feed_ops *ops = feed->config.ops;
    struct feed_request only = { request->group, 0, request->start, request->knows_from };
    tundish_status status;
    struct member *member = NULL;
    uint32_t present = 0, full = 0;
    bool ask;

    if (feed->config.forgets)
        request = &only; /* the lane is this trainer's, whatever its number */
    tnd_lock_take(&feed->lock);
    status = feed->delivery->check(feed, request);
    /* A survivor is refused what others have passed, also where these have finished. */
    if (status == TUNDISH_OK && !request->start.survivor)
        drop_closed(feed, request);
    ask = status == TUNDISH_OK && must_be_admitted(feed, request);
    /* Callbacks run without the lock, and they call back into the feed. Only the hub's thread
     * attaches and detaches, so the check above still holds afterwards. */
    feed->admitting = request->group;
    feed->admits_ahead = feed->admits_unplaced = false;
    tnd_lock_release(&feed->lock);
    if (ask)
        status =
            ops->admit(feed->config.user, feed, request->group, request->replica, &request->start);
    if (status == TUNDISH_OK)
        feed_make_room(feed, request->group);
    tnd_lock_take(&feed->lock);
    feed->admitting = NULL;
    if (status == TUNDISH_OK)
        drop_closed(feed, request);
    if (status == TUNDISH_OK)
        status = join_member(feed, request, connection, &member);
    if (status == TUNDISH_OK) {
        present = feed_count_present(member->group);
        full = count_full_groups(feed);
        feed_tell_groups(feed);
    }
    tnd_lock_release(&feed->lock);
    if (status != TUNDISH_OK) {
        ops->refused(feed->config.user, feed);
        return status;
    }
    ops->joined(feed->config.user, feed, request->group, request->replica, present, full);
    *ret_member = member;
    return TUNDISH_OK;
}

/* Tell every other trainer of the group. */
static void
tell_others(struct group *group, const struct member *but, tundish_status status, const char *text)
{
    for (uint32_t i = 0; i < group->member_count; i++) {
        struct member *member = &group->members[i];

        if (member == but || member->connection == NULL)
            continue;
        connection_post_text(member->connection, TND_LOST, status, text);
        lane_reader_notify(member->reader);
    }
}

bool
feed_group_has_finished(struct feed *feed, const struct group *group)
{
    bool finished = true;

    must_hold(&feed->lock);
    for (uint32_t i = 0; i < group->member_count; i++)
        finished &= feed->delivery->has_read_all(feed, &group->members[i]);
    return finished;
}

/* How the trainer, which is still counted, leaves. */
static const struct departure *
departure_of(struct feed *feed, const struct member *member, bool died)
{
    const struct feed_delivery *delivery = feed->delivery;
    const struct group *group = member->group;
    enum departed how = DEPARTED_EARLY;

    must_hold(&feed->lock);
    if (delivery->outlives_trainers && delivery->has_read_all(feed, member))
        how = DEPARTED_FINISHED;
    else if (died)
        how = DEPARTED_KILLED;
    else if (feed_begin_is_between(member) || group->ended || feed_count_present(group) == 1)
        how = DEPARTED_CLOSED;
    return &delivery->departures[how];
}

static void
tell_of_death(struct feed *feed, const struct member *member)
{
    char text[TEXT_BYTES];

    snprintf(text, sizeof text,
             "replica %u of group \"%.100s\" (process %d) has died; batches continue if a "
             "replacement attaches within %.0f s",
             feed->config.first_replica + member->replica, member->group->name,
             member->connection->pid, (double)feed->config.rejoin_ns / 1e9);
    tell_others(member->group, member, TUNDISH_OK, text);
}

static bool
is_read_by_others(const struct feed *feed, const struct group *but)
{
    bool found = false;

    for (const struct group *group = feed->groups; group != NULL; group = group->next)
        found |= group != but && feed_count_present(group) > 0;
    return found;
}

static void
leave_group(struct feed *feed, struct member *member, const struct departure *departure)
{
    struct group *group = member->group;

    must_in_debug(member->connection != NULL);
    must_hold(&feed->lock);
    if (departure->warns_group && !group->ended)
        tell_of_death(feed, member);
    feed_note_reached(member);
    /* Told first: the message names the process, whose connection goes here. */
    lane_reader_detach(member->reader);
    member->connection = NULL;
    member->gone_since_ns = departure->awaits ? tnd_clock_ns() : -1;
    member->has_closed = departure->in_order;
    feed->losses.trainers += !departure->in_order;
    feed_begin_left(feed, member);
    if (feed_count_present(group) == 0)
        expect_back(group);
    if (feed_count_present(group) == 0 && (group->ended || !feed->delivery->outlives_trainers))
        feed_unlink_group(feed, group);
    else if (is_to_drop(feed, group) && is_read_by_others(feed, group))
        drop_group(feed, group);
}

void
feed_detach(struct feed *feed, struct member *member, bool died)
{
    const struct departure *departure;
    char *name;
    uint32_t replica = member->replica;

    tnd_lock_take(&feed->lock);
    /* leave_group may free the group, and the callback needs its name. */
    name = tnd_strdup(member->group->name);
    feed_begin_note(feed, member, died);
    departure = departure_of(feed, member, died);
    leave_group(feed, member, departure);
    feed_tell_groups(feed);
    tnd_lock_release(&feed->lock);
    feed->config.ops->left(feed->config.user, feed, name, replica, departure);
    free(name);
}

void
feed_tell_lost(struct feed *feed, const char *name, const char *text)
{
    tnd_lock_take(&feed->lock);
    /* A queue's readers are groups of one name. */
    for (struct group *group = feed->groups; group != NULL; group = group->next)
        if (!group->ended && (name == NULL || strcmp(group->name, name) == 0))
            tell_others(group, NULL, TUNDISH_OK, text);
    tnd_lock_release(&feed->lock);
}

bool
feed_beat(struct feed *feed, int64_t now_ns)
{
    bool somebody = false;

    tnd_lock_take(&feed->lock);
    for (struct group *group = feed->groups; group != NULL; group = group->next)
        somebody |= feed_count_present(group) > 0;
    tnd_lock_release(&feed->lock);
    for (uint32_t i = 0; somebody && i < feed->lane_count; i++)
        lane_beat(feed->lanes[i], now_ns);
    return somebody;
}
