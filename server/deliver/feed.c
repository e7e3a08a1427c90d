/* feed.c - the lanes of a session, and the place of each epoch.
 *
 * Lock order: the feed's lock, then a lane's, then a connection's. No lock is held in a callback.
 */
#include "deliver/feed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/log.h"
#include "core/memory.h"
#include "core/must.h"
#include "core/status.h"
#include "deliver/feed_private.h"

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
    pthread_mutex_init(&feed->lock, NULL);
    feed->config = *config;
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
    for (uint32_t i = 0; i < feed->place_count; i++)
        free(feed->places[i].bytes);
    pthread_mutex_destroy(&feed->lock);
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
    pthread_mutex_lock(&feed->lock);
    feed->first_epoch = epoch;
    feed->first_step = step;
    pthread_mutex_unlock(&feed->lock);
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

tundish_status
feed_set_place(struct feed *feed, uint64_t epoch, const void *bytes, uint64_t byte_count)
{
    struct tnd_message_head head = { .type = TND_EPOCH, .id = epoch };
    struct epoch_place *place;

    if (byte_count == 0)
        return TUNDISH_OK;
    /* The other half is for the bits of a queue and the place's own header. */
    if (byte_count > TND_PLACE_BYTES_MAX / 2)
        return tnd_fail(TUNDISH_E_MEMORY, "a place of %llu bytes is larger than %llu",
                        (unsigned long long)byte_count,
                        (unsigned long long)(TND_PLACE_BYTES_MAX / 2));
    pthread_mutex_lock(&feed->lock);
    place = &feed->places[feed->place_next];
    feed->place_next = (feed->place_next + 1) % feed->place_count;
    free(place->bytes);
    *place = (struct epoch_place){ epoch, tnd_alloc(byte_count), byte_count };
    memcpy(place->bytes, bytes, byte_count);
    for (uint32_t i = 0; i < feed->lane_count; i++)
        /* Before the epoch's first slot, so that each slot tells the trainer that a place exists
         * and how long it is. */
        lane_set_place_bytes(feed->lanes[i], epoch, byte_count);
    for (struct group *group = feed->groups; group != NULL; group = group->next)
        for (uint32_t i = 0; i < group->member_count; i++)
            if (group->members[i].connection != NULL) {
                connection_post_parts(group->members[i].connection, head, place->bytes, byte_count);
                lane_reader_notify(group->members[i].reader);
            }
    pthread_mutex_unlock(&feed->lock);
    return TUNDISH_OK;
}

static void
tell_begin(const struct feed *feed, struct connection *connection)
{
    struct tnd_message_head head = { .type = TND_BEGIN,
                                     .id = feed->begin_epoch,
                                     .offset = feed->begin_step };

    if (feed->has_begin)
        connection_post(connection, head, NULL, NULL, 0);
}

/* The order's knowledge so far, for a trainer that has attached. */
void
feed_send_places(struct feed *feed, struct connection *connection)
{
    for (uint32_t i = 0; i < feed->place_count; i++) {
        const struct epoch_place *place = &feed->places[i];
        struct tnd_message_head head = { .type = TND_EPOCH, .id = place->epoch };

        if (place->bytes != NULL)
            connection_post_parts(connection, head, place->bytes, place->byte_count);
    }
    tell_begin(feed, connection);
}

void
feed_tell_begin(struct feed *feed, uint64_t epoch, uint64_t step)
{
    pthread_mutex_lock(&feed->lock);
    feed->has_begin = true;
    feed->begin_epoch = epoch;
    feed->begin_step = step;
    for (struct group *group = feed->groups; group != NULL; group = group->next)
        for (uint32_t i = 0; i < group->member_count; i++)
            if (group->members[i].connection != NULL) {
                tell_begin(feed, group->members[i].connection);
                lane_reader_notify(group->members[i].reader);
            }
    pthread_mutex_unlock(&feed->lock);
}

struct group *
feed_find_group(struct feed *feed, const char *name)
{
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

    pthread_mutex_lock(&feed->lock);
    known = knows_group(feed, name);
    pthread_mutex_unlock(&feed->lock);
    return known;
}

bool
feed_lacks(struct feed *feed, const char *name, uint32_t replica)
{
    const struct group *group;
    bool lacks;

    pthread_mutex_lock(&feed->lock);
    group = feed_find_group(feed, name);
    lacks = group != NULL && replica < group->member_count && !group->members[replica].was_taken;
    pthread_mutex_unlock(&feed->lock);
    return lacks;
}

bool
feed_has_unplaced(struct feed *feed, const char *name)
{
    const struct group *group;
    bool found = false;

    pthread_mutex_lock(&feed->lock);
    group = feed_find_group(feed, name);
    for (uint32_t i = 0; group != NULL && i < group->member_count; i++)
        found |= group->members[i].connection != NULL && !group->members[i].has_place;
    pthread_mutex_unlock(&feed->lock);
    return found;
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

    pthread_mutex_lock(&feed->lock);
    found = replica < feed->lane_count && look_at_start(feed, name, replica, &look);
    /* A successor gets the batches that its predecessor had not given back. Some of them may come
     * before its place. */
    if (knows_group(feed, name))
        distance = feed->config.lane.slots;
    pthread_mutex_unlock(&feed->lock);
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
    return true;
}

bool
feed_is_unused(struct feed *feed)
{
    bool unused;

    pthread_mutex_lock(&feed->lock);
    unused = is_unused(feed);
    pthread_mutex_unlock(&feed->lock);
    return unused;
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
    for (uint32_t i = 0; i < feed->place_count; i++) {
        free(feed->places[i].bytes);
        feed->places[i] = (struct epoch_place){ 0 };
    }
    feed->has_begin = false;
    feed->restarts_done = 0;
    for (struct group *group = feed->groups; group != NULL; group = group->next)
        for (uint32_t i = 0; i < group->member_count; i++)
            group->members[i].restart_votes = 0;
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

    pthread_mutex_lock(&feed->lock);
    found = has_trainers(feed);
    pthread_mutex_unlock(&feed->lock);
    return found;
}

/* The lock is held. */
static tundish_status
rewind_if(struct feed *feed, bool unused)
{
    bool untouched = feed_is_untouched(feed);

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

    pthread_mutex_lock(&feed->lock);
    status = rewind_if(feed, is_unused(feed));
    pthread_mutex_unlock(&feed->lock);
    return status;
}

tundish_status
feed_rewind_groups(struct feed *feed)
{
    tundish_status status;

    pthread_mutex_lock(&feed->lock);
    status = rewind_if(feed, !has_trainers(feed));
    pthread_mutex_unlock(&feed->lock);
    return status;
}

bool
feed_has_reader(struct feed *feed, uint32_t replica)
{
    bool found = false;

    pthread_mutex_lock(&feed->lock);
    for (struct group *group = feed->groups; group != NULL && !found; group = group->next)
        for (uint32_t i = 0; i < group->member_count; i++)
            found |= group->members[i].connection != NULL && group->members[i].replica == replica;
    pthread_mutex_unlock(&feed->lock);
    return found;
}

/* The step it takes next, or the one after the last that was published. */
static void
find_next(struct lane *lane, uint64_t taken, uint64_t published, struct feed_reader_stats *line)
{
    struct lane_look look = { 0 };

    lane_look(lane, taken < published ? taken : published, &look);
    line->epoch = look.epoch;
    line->step = look.step;
}

/* A longer silence counts at once. A shorter one lowers the figure by an eighth at each step. */
static void
note_step(struct member *member, int64_t step_ns)
{
    int64_t faded_ns = member->usual_step_ns - member->usual_step_ns / 8;

    member->usual_step_ns = step_ns > faded_ns ? step_ns : faded_ns;
}

/* Has its trainer taken or given back anything since the last look? */
static void
observe_member(struct member *member, const struct lane_reader_stats *stats, int64_t now_ns)
{
    int64_t waited_ns = (int64_t)stats->waited_ns + (stats->waits_ns >= 0 ? stats->waits_ns : 0);

    if (stats->released == member->seen_released && stats->taken == member->seen_taken)
        return;
    /* The time before its first batch is start-up, not a step. Waiting for batches is not the
     * trainer's own time either. */
    if (member->seen_taken > 0) {
        int64_t step_ns = now_ns - member->seen_at_ns - (waited_ns - member->seen_waited_ns);

        note_step(member, step_ns);
        pace_note(&member->pace, stats->taken, step_ns);
    }
    member->seen_released = stats->released;
    member->seen_taken = stats->taken;
    member->seen_at_ns = now_ns;
    member->seen_waited_ns = waited_ns;
}

static void
fill_stats(struct feed *feed, struct member *member, struct feed_reader_stats *line)
{
    struct lane_reader_stats stats;
    struct lane_stats lane;
    int64_t now_ns = tnd_clock_ns();

    lane_reader_stats(member->reader, &stats);
    lane_stats(feed->lanes[member->replica % feed->lane_count], &lane);
    observe_member(member, &stats, now_ns);
    *line = (struct feed_reader_stats){
        .replica = member->replica,
        .attached = stats.attached,
        .pid = member->connection == NULL ? 0 : member->connection->pid,
        .released = stats.released,
        .taken = stats.taken,
        .taken_in_all = stats.taken_in_all,
        .published = lane.published,
        .waits = stats.waits_ns >= 0,
        .usual_step_ns = member->usual_step_ns,
        .pace = member->pace,
        .waits_ns = stats.waits_ns,
        .waited_ns = (int64_t)stats.waited_ns + (stats.waits_ns >= 0 ? stats.waits_ns : 0),
        .silent_ns = now_ns - member->seen_at_ns,
        .device = stats.device,
    };
    memcpy(line->wait_counts, stats.waits, sizeof line->wait_counts);
    find_next(feed->lanes[member->replica % feed->lane_count],
              feed->config.lane.queue ? lane.released : stats.taken, lane.published, line);
    snprintf(line->group, sizeof line->group, "%s", member->group->name);
}

void
feed_losses(struct feed *feed, struct feed_losses *ret_losses)
{
    pthread_mutex_lock(&feed->lock);
    *ret_losses = feed->losses;
    pthread_mutex_unlock(&feed->lock);
}

uint32_t
feed_stats(struct feed *feed, struct feed_reader_stats *lines, uint32_t capacity)
{
    uint32_t count = 0;

    pthread_mutex_lock(&feed->lock);
    for (struct group *group = feed->groups; group != NULL; group = group->next)
        for (uint32_t i = 0; i < group->member_count; i++) {
            if (group->members[i].reader == NULL)
                continue;
            if (count < capacity)
                fill_stats(feed, &group->members[i], &lines[count]);
            count++;
        }
    pthread_mutex_unlock(&feed->lock);
    return count;
}

bool
feed_queue_state(struct feed *feed, struct lane_queue_state *ret_state)
{
    return lane_queue_state(feed->lanes[0], ret_state);
}

bool
feed_standing(struct feed *feed, uint64_t *ret_epoch, uint64_t *ret_step,
              struct lane_queue_state *ret_queue)
{
    bool found = false;

    if (feed->config.lane.queue) {
        found = feed_queue_state(feed, ret_queue);
        *ret_epoch = ret_queue->epoch;
        *ret_step = ret_queue->step;
        return found;
    }
    for (uint32_t i = 0; i < feed->lane_count; i++) {
        struct lane_look look;

        if (!lane_look(feed->lanes[i], lane_lowest(feed->lanes[i]), &look) ||
            (look.published && look.kind == TND_SLOT_ERROR))
            return false;
        if (!found || look.epoch < *ret_epoch ||
            (look.epoch == *ret_epoch && look.step < *ret_step)) {
            *ret_epoch = look.epoch;
            *ret_step = look.step;
        }
        found = true;
    }
    return found;
}

bool
feed_place_of(struct feed *feed, uint64_t epoch, uint8_t **ret_bytes, uint64_t *ret_count)
{
    bool found = false;

    pthread_mutex_lock(&feed->lock);
    for (uint32_t i = 0; i < feed->place_count && !found; i++) {
        const struct epoch_place *place = &feed->places[i];

        if (place->bytes == NULL || place->epoch != epoch)
            continue;
        found = true;
        *ret_bytes = tnd_alloc(place->byte_count);
        memcpy(*ret_bytes, place->bytes, place->byte_count);
        *ret_count = place->byte_count;
    }
    pthread_mutex_unlock(&feed->lock);
    return found;
}
