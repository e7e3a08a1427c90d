/* feed_stats.c - figures of each trainer: where it is, how long it waits, and its usual step. */
#include "deliver/feed.h"

#include <stdio.h>
#include <string.h>

#include "core/clock.h"
#include "deliver/feed_delivery.h"

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
    int64_t waited_ns = (int64_t)stats->waited_ns;

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

    must_hold(&feed->lock);
    lane_reader_stats(member->reader, &stats);
    lane_stats(feed->lanes[member->replica % feed->lane_count], &lane);
    observe_member(member, &stats, now_ns);
    *line = (struct feed_reader_stats){
        .replica = member->replica,
        .attached = stats.attached,
        .died = member->connection == NULL && member->gone_since_ns >= 0 && !member->has_closed &&
                member->was_taken,
        .pid = member->connection == NULL ? 0 : member->connection->pid,
        .released = stats.released,
        .taken = stats.taken,
        .taken_in_all = stats.taken_in_all,
        .published = stats.published,
        .waits = stats.waits_ns >= 0,
        .usual_step_ns = member->usual_step_ns,
        .pace = member->pace,
        .waits_ns = stats.waits_ns,
        .waited_ns = (int64_t)stats.waited_ns,
        .silent_ns = now_ns - member->seen_at_ns,
        .device = stats.device,
    };
    memcpy(line->wait_counts, stats.waits, sizeof line->wait_counts);
    find_next(feed->lanes[member->replica % feed->lane_count],
              feed->delivery->position(&lane, &stats), lane.published, line);
    snprintf(line->group, sizeof line->group, "%s", member->group->name);
}

void
feed_losses(struct feed *feed, struct feed_losses *ret_losses)
{
    tnd_lock_take(&feed->lock);
    *ret_losses = feed->losses;
    tnd_lock_release(&feed->lock);
}

uint32_t
feed_stats(struct feed *feed, struct feed_reader_stats *lines, uint32_t capacity)
{
    uint32_t count = 0;

    tnd_lock_take(&feed->lock);
    for (struct group *group = feed->groups; group != NULL; group = group->next)
        for (uint32_t i = 0; i < group->member_count; i++) {
            if (group->members[i].reader == NULL)
                continue;
            if (count < capacity)
                fill_stats(feed, &group->members[i], &lines[count]);
            count++;
        }
    tnd_lock_release(&feed->lock);
    return count;
}
