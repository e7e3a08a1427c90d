/* feed_awaited.c - groups that read at the previous server and have not come back.
 *
 * A group that is late or slow must still find the batches it lacks. So while it is awaited it has
 * cursors, as if it had been here all the time. The others wait for it as for any slow group.
 */
#include <stdio.h>
#include <stdlib.h>

#include "core/clock.h"
#include "core/memory.h"
#include "deliver/feed_hub.h"
#include "deliver/feed_private.h"

static void
count_groups(const struct feed *feed, uint32_t *ret_present, uint32_t *ret_gone)
{
    uint32_t present = 0, gone = 0;

    must_hold(&feed->lock);
    for (const struct group *group = feed->groups; group != NULL; group = group->next) {
        bool has_trainers = group->awaited == AWAITED_PRESENT || feed_count_present(group) > 0;

        present += !group->ended && has_trainers;
        gone += !group->ended && !has_trainers;
    }
    *ret_present = present;
    *ret_gone = gone;
}

void
feed_tell_groups(struct feed *feed)
{
    uint32_t present, gone;

    must_hold(&feed->lock);
    /* A server that ends detaches its trainers one by one. The survivors must see the counts from
     * before that. */
    if (feed->is_ending)
        return;
    count_groups(feed, &present, &gone);
    for (uint32_t i = 0; i < feed->lane_count; i++)
        lane_tell_groups(feed->lanes[i], present, gone);
}

void
feed_note_ending(struct feed *feed)
{
    tnd_lock_take(&feed->lock);
    feed->is_ending = true;
    tnd_lock_release(&feed->lock);
    for (uint32_t i = 0; i < feed->lane_count; i++)
        lane_note_ending(feed->lanes[i]);
}

struct group *
feed_find_awaited(struct feed *feed)
{
    struct group *found = NULL;

    must_hold(&feed->lock);
    for (struct group *group = feed->groups; group != NULL; group = group->next)
        if (!group->ended && group->awaited != AWAITED_NOT)
            found = group;
    return found;
}

/* A survivor was attached when its server died, so it takes a group that had trainers. Any other
 * takes a group whose trainers were gone. If there is no such group either will do, since the names
 * are unknown. */
struct group *
feed_take_awaited(struct feed *feed, const char *name, bool survivor)
{
    struct group *found = feed_find_awaited(feed);

    must_hold(&feed->lock);
    for (struct group *group = feed->groups; group != NULL; group = group->next)
        if (group->awaited == (survivor ? AWAITED_PRESENT : AWAITED_GONE))
            found = group;
    if (found == NULL)
        return NULL;
    free(found->name);
    found->name = tnd_strdup(name);
    found->awaited = AWAITED_NOT;
    return found;
}

void
feed_forget_awaited(struct feed *feed)
{
    struct group *group;

    must_hold(&feed->lock);
    while ((group = feed_find_awaited(feed)) != NULL)
        feed_unlink_group(feed, group);
}

/* The name is for messages only: feed_find_group skips awaited groups. */
static bool
await_one(struct feed *feed, uint32_t number, enum awaited awaited, int64_t wait_ns)
{
    struct group *group;
    char name[32];

    must_hold(&feed->lock);
    snprintf(name, sizeof name, "(awaited %u)", number);
    if (feed_make_group(feed, name, &group) != TUNDISH_OK)
        return false;
    group->awaited = awaited;
    for (uint32_t i = 0; i < group->member_count; i++)
        group->members[i].leaving = MEMBER_DIED; /* with its server, as far as this one knows */
    group->awaited_until_ns = wait_ns < 0 ? TND_CLOCK_NEVER : tnd_clock_deadline_ns(wait_ns);
    return true;
}

uint32_t
feed_await(struct feed *feed, const struct feed_groups *groups)
{
    uint64_t all = (uint64_t)groups->present + groups->gone;
    uint32_t present, gone, here, count = 0;
    bool is_open = true; /* the lanes have room for one more cursor */

    tnd_lock_take(&feed->lock);
    count_groups(feed, &present, &gone);
    here = present + gone;
    /* Some groups may be back already. Count those first, so that no group is awaited twice. */
    while (is_open && here + count < all) {
        bool had_trainers = here + count < groups->present;

        is_open = await_one(feed, count + 1, had_trainers ? AWAITED_PRESENT : AWAITED_GONE,
                            had_trainers ? groups->wait_ns : feed->config.rejoin_ns);
        count += is_open;
    }
    feed_tell_groups(feed);
    tnd_lock_release(&feed->lock);
    return count;
}

/* This trusts a survivor as far as its HELLO was trusted, which may have moved the start. */
void
feed_pass_kept(struct feed *feed, const struct member *member, uint64_t epoch, uint64_t step)
{
    const struct lane_until until = { epoch, step };

    tnd_lock_take(&feed->lock);
    if (member->has_kept)
        for (struct group *group = feed->groups; group != NULL; group = group->next)
            for (uint32_t i = 0; i < group->member_count; i++)
                if (!group->members[i].was_taken &&
                    (group->is_back || group->awaited != AWAITED_NOT))
                    lane_reader_pass(group->members[i].reader, until);
    tnd_lock_release(&feed->lock);
}
