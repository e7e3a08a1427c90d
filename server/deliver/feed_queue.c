/* feed_queue.c - the feed of a queue: each trainer is a group by itself, which ends with it. */
#include <string.h>

#include "deliver/feed_delivery.h"

static tundish_status
accept_any(struct feed *feed, const struct feed_request *request)
{
    (void)feed, (void)request;
    return TUNDISH_OK;
}

static struct group *
find_none(struct feed *feed, const char *name)
{
    (void)feed, (void)name;
    return NULL;
}

static struct group *
take_none(struct feed *feed, const struct feed_request *request)
{
    (void)feed, (void)request;
    return NULL;
}

/* Trainers take no steps together. */
static void
align_none(struct group *group)
{
    (void)group;
}

static void
tell_nothing(struct feed *feed, const struct group *group, const struct tnd_welcome *welcome)
{
    (void)feed, (void)group, (void)welcome;
}

/* No batch is its last one: what another holds may still be offered to it. */
static bool
has_never_read_all(struct feed *feed, const struct member *member)
{
    (void)feed, (void)member;
    return false;
}

/* The position up to which all slots are released: all trainers take from the same lane. */
static uint64_t
position_of_all(const struct lane_stats *lane, const struct lane_reader_stats *reader)
{
    (void)reader;
    return lane->released;
}

static int
wakeup_of(const struct member *member)
{
    return lane_reader_wakeup(member->reader);
}

static bool
find_queue_standing(struct feed *feed, uint64_t *ret_epoch, uint64_t *ret_step,
                    struct lane_queue_state *ret_queue)
{
    bool found = lane_queue_state(feed->lanes[0], ret_queue);

    *ret_epoch = ret_queue->epoch;
    *ret_step = ret_queue->step;
    return found;
}

void
feed_answer_queue(struct feed *feed, struct member *member)
{
    struct lane_queue_state state = { 0 };
    struct tnd_queue queue = { 0 };
    struct tnd_message_head head = { .type = TND_QUEUE, .bytes = sizeof queue };

    if (!lane_queue_state(feed->lanes[0], &state))
        head.status = TUNDISH_E_TIMEOUT;
    queue.epoch = state.epoch;
    queue.step = state.step;
    queue.bit_count = state.bit_count;
    memcpy(queue.bits, state.bits, sizeof queue.bits);
    connection_post(member->connection, head, &queue, NULL, 0);
    lane_reader_notify(member->reader);
}

int
feed_queue_wakeup(const struct feed *feed, const struct member *member)
{
    return feed->delivery->wakeup(member);
}

void
feed_queue_signalled(struct feed *feed)
{
    lane_grant(feed->lanes[0]);
}

const struct feed_delivery feed_queue = {
    .departures = departures_of_queue,
    .check = accept_any,
    .find_group = find_none,
    .take_group = take_none,
    .align = align_none,
    .tell_new_group = tell_nothing,
    .has_read_all = has_never_read_all,
    .position = position_of_all,
    .wakeup = wakeup_of,
    .find_standing = find_queue_standing,
};
