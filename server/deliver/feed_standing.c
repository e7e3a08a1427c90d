/* feed_standing.c - tell a trainer where the replicas of its group stand. */
#include "deliver/feed_delivery.h"

/* By what its trainer has taken: of a reader that brings batches to a device ahead of its program,
 * that is not what the program had. */
static bool
look_at(struct feed *feed, const struct member *member, struct lane_look *ret_look)
{
    struct lane_reader_stats stats;

    if (member->reader == NULL || member->connection == NULL)
        return false;
    lane_reader_stats(member->reader, &stats);
    return stats.device.mode == 0 &&
           lane_look(feed->lanes[member->replica % feed->lane_count], stats.taken, ret_look);
}

static bool
is_before(uint64_t epoch, uint64_t step, uint64_t other_epoch, uint64_t other_step)
{
    return epoch < other_epoch || (epoch == other_epoch && step < other_step);
}

static void
widen(struct feed_standing *standing, uint64_t epoch, uint64_t step, bool is_first)
{
    if (is_first || is_before(epoch, step, standing->lowest_epoch, standing->lowest_step)) {
        standing->lowest_epoch = epoch;
        standing->lowest_step = step;
    }
    if (is_first || is_before(standing->highest_epoch, standing->highest_step, epoch, step)) {
        standing->highest_epoch = epoch;
        standing->highest_step = step;
    }
}

void
feed_find_standing(struct feed *feed, const char *name, struct feed_standing *ret_standing)
{
    struct feed_standing standing = { 0 };
    struct lane_look look;
    struct group *group;

    tnd_lock_take(&feed->lock);
    group = feed->delivery->find_group(feed, name);
    standing.is_known = group != NULL;
    for (uint32_t i = 0; standing.is_known && i < group->member_count; i++) {
        standing.is_known = look_at(feed, &group->members[i], &look);
        if (standing.is_known)
            widen(&standing, look.epoch, look.step, i == 0);
    }
    tnd_lock_release(&feed->lock);
    *ret_standing = standing;
}

void
feed_answer_standing(struct feed *feed, struct member *member, uint64_t number)
{
    struct tnd_message_head head = { .type = TND_STANDING, .id = number };
    struct tnd_standing answer = { 0 };
    struct feed_standing standing = { 0 };

    head.bytes = sizeof answer;
    if (feed->config.ops->find_standing(feed->config.user, feed, member->group->name, &head.id,
                                        &standing))
        answer =
            (struct tnd_standing){ standing.is_known, standing.lowest_epoch, standing.lowest_step,
                                   standing.highest_epoch, standing.highest_step };
    else
        head.status = TUNDISH_E_TIMEOUT;
    connection_post(member->connection, head, &answer, NULL, 0);
    lane_reader_notify(member->reader);
}
