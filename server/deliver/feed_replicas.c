/* feed_replicas.c - the feeds whose trainers are replicas of a group, each with a lane of its own.
 */
#include <inttypes.h>

#include "core/log.h"
#include "core/memory.h"
#include "core/status.h"
#include "deliver/feed_delivery.h"

static tundish_status
check_replica(struct feed *feed, const struct feed_request *request)
{
    struct group *group = feed_find_group(feed, request->group);
    struct member *member;

    must_hold(&feed->lock);
    if (request->replica >= feed->config.replica_count)
        return tnd_fail(TUNDISH_E_ARGUMENT,
                        "stream %s has %u replica%s on this server, so there is no replica %u: "
                        "distribute.replicas, or `tundish serve --replicas`, says how many",
                        feed->stream, feed->config.replica_count,
                        feed->config.replica_count == 1 ? "" : "s", request->replica);
    member = group == NULL ? NULL : &group->members[request->replica];
    if (member != NULL && member->connection != NULL)
        return tnd_fail(TUNDISH_E_ARGUMENT,
                        "replica %u of group \"%s\" is already in use by process %d: close its "
                        "reader there, or choose another replica or group",
                        request->replica, request->group, member->connection->pid);
    return TUNDISH_OK;
}

static struct group *
take_group(struct feed *feed, const struct feed_request *request)
{
    struct group *group = feed_find_group(feed, request->group);

    must_hold(&feed->lock);
    return group != NULL ? group : feed_take_awaited(feed, request->group, request->start.survivor);
}

/* All replicas begin at the same step. While one lane was opened, trainers of other groups may have
 * given back what is in the next: now nothing from there on goes any more. */
static void
align_readers(struct group *group)
{
    uint64_t position = 0;

    for (uint32_t i = 0; i < group->member_count; i++) {
        struct lane_reader_stats stats;

        lane_reader_stats(group->members[i].reader, &stats);
        position = stats.released > position ? stats.released : position;
    }
    group->released = tnd_zalloc(group->member_count, sizeof *group->released);
    for (uint32_t i = 0; i < group->member_count; i++)
        atomic_store(&group->released[i], position);
    for (uint32_t i = 0; i < group->member_count; i++) {
        lane_reader_move(group->members[i].reader, position);
        lane_reader_tie(group->members[i].reader,
                        (struct lane_tie){ group->released, group->member_count, i });
    }
}

static void
tell_new_group(struct feed *feed, const struct group *group, const struct tnd_welcome *welcome)
{
    if (group->next != NULL && welcome->first_step != UINT64_MAX &&
        (welcome->first_epoch > 0 || welcome->first_step > 0))
        tnd_log(TND_LOG_NOTICE, "groups",
                "group \"%.100s\" joins the running session %s at epoch %" PRIu64 ", step %" PRIu64,
                group->name, feed->session, welcome->first_epoch, welcome->first_step);
}

/* A trainer that has taken every batch up to the stream's end, or up to the error that ended it,
 * needs no successor. It was told the last epoch's end, or has at least given everything back. */
static bool
has_read_all(struct feed *feed, const struct member *member)
{
    struct lane *lane = feed->lanes[member->replica % feed->lane_count];
    struct lane_reader_stats stats;
    struct lane_look look;
    bool found;

    lane_reader_stats(member->reader, &stats);
    found = lane_look(lane, stats.taken, &look) && look.published;
    if (found && look.kind == TND_SLOT_END && stats.released == stats.taken)
        found = lane_look(lane, stats.taken + 1, &look) && look.published;
    return found && lane_is_last(&look);
}

static uint64_t
position_of_reader(const struct lane_stats *lane, const struct lane_reader_stats *reader)
{
    (void)lane;
    return reader->taken;
}

static int
no_wakeup(const struct member *member)
{
    (void)member;
    return -1;
}

/* The lowest of what the lanes begin with. */
static bool
find_standing(struct feed *feed, uint64_t *ret_epoch, uint64_t *ret_step,
              struct lane_queue_state *ret_queue)
{
    bool found = false;

    (void)ret_queue;
    for (uint32_t i = 0; i < feed->lane_count; i++) {
        struct lane_look look;

        if (!lane_look(feed->lanes[i], lane_lowest(feed->lanes[i]), &look))
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

const struct feed_delivery feed_replicas = {
    .departures = departures_of_replicas,
    .outlives_trainers = true,
    .holds_up_others = true,
    .check = check_replica,
    .find_group = feed_find_group,
    .take_group = take_group,
    .align = align_readers,
    .tell_new_group = tell_new_group,
    .has_read_all = has_read_all,
    .position = position_of_reader,
    .wakeup = no_wakeup,
    .find_standing = find_standing,
};

/* The same, but that a group ends with its last trainer. */
const struct feed_delivery feed_evaluation = {
    .departures = departures_of_evaluation,
    .holds_up_others = true,
    .check = check_replica,
    .find_group = feed_find_group,
    .take_group = take_group,
    .align = align_readers,
    .tell_new_group = tell_new_group,
    .has_read_all = has_read_all,
    .position = position_of_reader,
    .wakeup = no_wakeup,
    .find_standing = find_standing,
};
