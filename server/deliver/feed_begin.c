/* feed_begin.c - where a trainer that brings no place begins. */
#include "deliver/feed_begin.h"

#include "core/clock.h"
#include "deliver/feed_delivery.h"

/* How long a successor waits at most to learn whether its siblings close as well. They do so at the
 * same step of the same program. */
static const int64_t DECIDE_NS = 1000000000;
static const int64_t LOOK_NS = 2000000;

static struct lane *
lane_of(struct feed *feed, const struct member *member)
{
    return feed->lanes[member->replica % feed->lane_count];
}

static uint64_t
taken_by(const struct member *member)
{
    struct lane_reader_stats stats;

    lane_reader_stats(member->reader, &stats);
    return stats.taken;
}

/* The first epoch that begins at this position or after it. */
static uint64_t
whole_epoch(const struct lane_look *look)
{
    bool is_end = look->published && look->kind == TND_SLOT_END;

    return look->epoch + (look->step > 0 || is_end);
}

static void
set_all(struct group *group, enum begins begins, uint64_t epoch)
{
    group->begin_epoch = epoch;
    for (uint32_t i = 0; i < group->member_count; i++)
        group->members[i].begins = begins;
}

static bool
has_dead(const struct group *group)
{
    bool found = group->awaited != AWAITED_NOT;

    for (uint32_t i = 0; i < group->member_count; i++)
        found |= group->members[i].connection == NULL && group->members[i].leaving == MEMBER_DIED;
    return found;
}

bool
feed_begin_is_closed(const struct group *group)
{
    bool has_closed = false;

    for (uint32_t i = 0; i < group->member_count; i++)
        has_closed |= group->members[i].leaving == MEMBER_CLOSED;
    return has_closed && !has_dead(group) && feed_count_present(group) == 0;
}

bool
feed_begin_is_between(const struct member *member)
{
    return member->leaving == MEMBER_CLOSED && member->is_between_epochs;
}

bool
feed_begin_is_shared(const struct feed *feed, const struct group *but)
{
    must_hold(&feed->lock);
    for (const struct group *group = feed->groups; group != NULL; group = group->next)
        if (group != but && !group->ended && (feed_count_present(group) > 0 || has_dead(group)))
            return true;
    return false;
}

bool
feed_begin_is_over(const struct group *group)
{
    bool is_over = feed_begin_is_closed(group);

    for (uint32_t i = 0; i < group->member_count; i++)
        is_over &= feed_begin_is_between(&group->members[i]);
    return is_over;
}

/* Tell the trainer where it begins: with this epoch, or (UINT64_MAX) where its predecessor stood.
 */
static void
tell(struct member *member, uint64_t epoch)
{
    struct lane_reader_stats stats;
    struct tnd_message_head head = { .type = TND_FROM, .id = epoch };

    must_in_debug(member->connection != NULL && member->waits != WAITS_NOT);
    lane_reader_pass_no_more(member->reader);
    lane_reader_stats(member->reader, &stats);
    head.offset = stats.released;
    member->waits = WAITS_NOT;
    member->attached_at = stats.released;
    connection_post(member->connection, head, NULL, NULL, 0);
    lane_reader_notify(member->reader);
}

/* They go on beside the replicas that are attached. */
static void
tell_undecided(struct group *group)
{
    for (uint32_t i = 0; i < group->member_count; i++)
        if (group->members[i].waits == WAITS_TO_DECIDE)
            tell(&group->members[i], UINT64_MAX);
}

/* The group does not get the steps before the epoch at which all begin. So the session need not
 * make them for it. */
static void
pass_over(struct group *group)
{
    const struct lane_until until = { group->begin_epoch, 0 };

    for (uint32_t i = 0; i < group->member_count; i++) {
        struct member *member = &group->members[i];

        if (member->begins != BEGINS_EPOCH ||
            (member->connection != NULL && member->waits == WAITS_NOT))
            continue;
        if (member->restart_votes < until.epoch)
            member->restart_votes = until.epoch;
        lane_reader_pass(member->reader, until);
    }
}

static bool
has_reached(struct feed *feed, const struct member *member)
{
    struct lane_reader_stats stats;
    struct lane_look look;

    must_hold(&feed->lock);
    lane_reader_stats(member->reader, &stats);
    return lane_look(lane_of(feed, member), stats.released, &look) &&
           (look.epoch >= member->group->begin_epoch || lane_is_last(&look));
}

/* Each replica has read and closed since the last decision. It may have a successor that has
 * nothing yet. */
static bool
have_all_closed(const struct group *group)
{
    bool all = !group->ended;

    for (uint32_t i = 0; i < group->member_count; i++) {
        const struct member *member = &group->members[i];

        all &= member->leaving == MEMBER_CLOSED && member->begins == BEGINS_THERE &&
               (member->connection == NULL || member->waits == WAITS_TO_DECIDE);
    }
    return all;
}

/* The next trainers begin with the first epoch of which no replica has had anything. */
static void
decide(struct feed *feed, struct group *group)
{
    uint64_t epoch = 0;

    must_hold(&feed->lock);
    for (uint32_t i = 0; i < group->member_count; i++) {
        const struct member *member = &group->members[i];
        struct lane_look next;

        if (member->leaving == MEMBER_CLOSED &&
            lane_look(lane_of(feed, member), member->closed_at, &next) &&
            whole_epoch(&next) > epoch)
            epoch = whole_epoch(&next);
    }
    set_all(group, BEGINS_EPOCH, epoch);
    for (uint32_t i = 0; i < group->member_count; i++)
        if (group->members[i].waits == WAITS_TO_DECIDE) {
            group->members[i].waits = WAITS_FOR_EPOCH;
            pass_over(group);
        }
}

/* The server stops: the trainer does not leave for a reason of its own, and the next one goes on.
 */
static bool
is_stopping(struct feed *feed, struct lane *lane, const struct lane_reader_stats *stats)
{
    struct lane_look last;

    return feed->is_ending ||
           (stats->published > 0 && lane_look(lane, stats->published - 1, &last) &&
            last.kind == TND_SLOT_STOPPED);
}

/* The trainer has had something. */
static void
note_leaving(struct feed *feed, struct member *member, const struct lane_reader_stats *stats,
             bool died)
{
    struct lane *lane = lane_of(feed, member);
    struct lane_look next = { 0 };
    bool found = lane_look(lane, stats->taken, &next);
    bool is_end = next.published && next.kind == TND_SLOT_END;

    must_hold(&feed->lock);
    member->leaving = died || is_stopping(feed, lane, stats) ? MEMBER_DIED : MEMBER_CLOSED;
    member->closed_at = stats->taken + is_end;
    member->is_between_epochs = found && (next.step == 0 || is_end);
    member->begins = BEGINS_THERE;
}

void
feed_begin_note(struct feed *feed, struct member *member, bool died)
{
    struct lane_reader_stats stats;

    must_in_debug(member->connection != NULL);
    must_hold(&feed->lock);
    if (!feed->delivery->outlives_trainers)
        return;
    lane_reader_stats(member->reader, &stats);
    if (member->waits == WAITS_NOT && stats.taken > member->attached_at)
        note_leaving(feed, member, &stats, died);
    member->waits = WAITS_NOT;
}

void
feed_begin_left(struct feed *feed, const struct member *member)
{
    must_in_debug(member->connection == NULL);
    must_hold(&feed->lock);
    if (!feed->delivery->outlives_trainers)
        return;
    if (member->leaving == MEMBER_DIED)
        tell_undecided(member->group);
    else if (member->leaving == MEMBER_CLOSED && have_all_closed(member->group))
        decide(feed, member->group);
}

static bool
has_closed_group(const struct feed *feed)
{
    bool found = feed->was_closed;

    for (const struct group *group = feed->groups; group != NULL; group = group->next)
        found |= !group->ended && feed_begin_is_closed(group);
    return found;
}

/* A group of a new name that comes while others read begins at the oldest batch kept. */
static void
begin_new_group(struct feed *feed, struct group *group)
{
    uint64_t epoch = feed_begin_take_closed(feed, group->name);
    bool shared = feed_begin_is_shared(feed, group);
    struct lane_look look;

    must_hold(&feed->lock);
    /* An endless epoch that others read has no end that could be waited for. */
    if ((epoch == 0 && (shared || !has_closed_group(feed))) || (shared && feed->config.is_endless))
        return;
    if (!lane_look(feed->lanes[0], group->released[0], &look))
        set_all(group, BEGINS_WHOLE, 0); /* nothing is published yet */
    else
        set_all(group, BEGINS_EPOCH, whole_epoch(&look) > epoch ? whole_epoch(&look) : epoch);
}

/* Its predecessor closed in the midst of an epoch, and no attached replica has had a batch more.
 * Perhaps they close as well. */
static bool
may_all_close(const struct member *member)
{
    const struct group *group = member->group;

    if (member->leaving != MEMBER_CLOSED || member->is_between_epochs || has_dead(group) ||
        feed_count_present(group) == 0)
        return false;
    for (uint32_t i = 0; i < group->member_count; i++) {
        const struct member *other = &group->members[i];

        if (other->connection != NULL && other->waits != WAITS_TO_DECIDE &&
            taken_by(other) > member->closed_at)
            return false;
    }
    return true;
}

static void
expect_survivors(struct group *group)
{
    for (uint32_t i = 0; i < group->member_count; i++)
        if (group->members[i].connection == NULL && group->members[i].leaving == MEMBER_NEW)
            group->members[i].leaving = MEMBER_DIED;
}

/* It comes again, and nobody else is attached. If some replica has not come since it was decided
 * where all begin, this one begins there once more, to be in step with it. */
static void
begin_again(struct member *member)
{
    const struct group *group = member->group;

    for (uint32_t i = 0; i < group->member_count; i++)
        if (group->members[i].begins == BEGINS_EPOCH)
            member->begins = BEGINS_EPOCH;
}

/* The first of the group has come, or another to the same: go to where they begin. */
static void
begin_at_epoch(struct feed *feed, struct member *member, struct tnd_welcome *welcome)
{
    must_hold(&feed->lock);
    if (member->begins == BEGINS_EPOCH) {
        welcome->begin_epoch = member->group->begin_epoch;
        pass_over(member->group);
    }
    if (member->begins == BEGINS_WHOLE || !has_reached(feed, member))
        welcome->flags |= TND_WELCOME_FROM;
}

/* Begin there, but not with the end of an epoch, if that is what is there. */
static void
begin_there(struct feed *feed, struct member *member, struct tnd_welcome *welcome)
{
    struct lane_reader_stats stats;
    struct lane_look look;

    welcome->flags |= TND_WELCOME_AFTER_END; /* perhaps it is still to come */
    lane_reader_stats(member->reader, &stats);
    if (may_all_close(member))
        welcome->flags |= TND_WELCOME_FROM;
    else if (lane_look(lane_of(feed, member), stats.released, &look) && look.published &&
             look.kind == TND_SLOT_END && look.step > 0)
        lane_reader_pass(member->reader, (struct lane_until){ look.epoch + 1, 0 });
}

/* A replica that has a place says where the group is. */
static bool
has_placed(const struct group *group)
{
    bool found = false;

    for (uint32_t i = 0; i < group->member_count; i++)
        found |= group->members[i].connection != NULL && group->members[i].has_place;
    return found;
}

void
feed_begin_attach(struct feed *feed, struct member *member, const struct feed_request *request,
                  bool is_new, struct tnd_welcome *welcome)
{
    must_in_debug(member->connection == NULL);
    must_hold(&feed->lock);
    welcome->begin_epoch = UINT64_MAX;
    if (!feed->delivery->outlives_trainers)
        return;
    if (request->start.survivor)
        expect_survivors(member->group);
    else if (is_new)
        begin_new_group(feed, member->group);
    else if (feed_count_present(member->group) == 0)
        begin_again(member);
    if (request->start.has_place || !request->knows_from || has_placed(member->group))
        member->begins = BEGINS_THERE;
    if (request->start.has_place || !request->knows_from)
        return;
    if (member->is_refused) {
        welcome->flags |= TND_WELCOME_FROM; /* it takes nothing before it is told */
        return;
    }
    if (member->begins == BEGINS_THERE)
        begin_there(feed, member, welcome);
    else
        begin_at_epoch(feed, member, welcome);
}

void
feed_begin_attached(struct member *member, const struct tnd_welcome *welcome)
{
    struct lane_reader_stats stats;

    must_in_debug(member->connection != NULL);
    lane_reader_stats(member->reader, &stats);
    member->attached_at = stats.released;
    if ((welcome->flags & TND_WELCOME_FROM) == 0 || member->is_refused)
        return;
    member->waits = member->begins == BEGINS_THERE ? WAITS_TO_DECIDE : WAITS_FOR_EPOCH;
    member->group->undecided_until_ns = tnd_clock_deadline_ns(DECIDE_NS);
}

/* Some replica goes on: its group's successors join it. */
static bool
does_any_go_on(const struct group *group)
{
    uint64_t closed_at = 0;
    bool found = false;

    for (uint32_t i = 0; i < group->member_count; i++)
        if (group->members[i].waits == WAITS_TO_DECIDE && group->members[i].closed_at > closed_at)
            closed_at = group->members[i].closed_at;
    for (uint32_t i = 0; i < group->member_count && !found; i++)
        found = group->members[i].connection != NULL &&
                group->members[i].waits != WAITS_TO_DECIDE &&
                taken_by(&group->members[i]) > closed_at;
    return found;
}

static bool
has_waiting(const struct group *group, enum waits waits)
{
    bool found = false;

    for (uint32_t i = 0; i < group->member_count; i++)
        found |= group->members[i].waits == waits;
    return found;
}

/* The first step shows which epoch is the next that is whole. */
static void
learn_epoch(struct feed *feed, struct group *group)
{
    struct lane_look look;

    if (lane_look(feed->lanes[0], group->released[0], &look))
        set_all(group, BEGINS_EPOCH, whole_epoch(&look));
}

static void
tell_those_there(struct feed *feed, struct group *group)
{
    must_hold(&feed->lock);
    for (uint32_t i = 0; i < group->member_count; i++)
        if (group->members[i].begins == BEGINS_WHOLE) {
            learn_epoch(feed, group);
            break;
        }
    pass_over(group);
    for (uint32_t i = 0; i < group->member_count; i++)
        if (group->members[i].waits == WAITS_FOR_EPOCH &&
            group->members[i].begins == BEGINS_EPOCH && has_reached(feed, &group->members[i]))
            tell(&group->members[i], group->begin_epoch);
}

/* A replica that closed between two epochs is missed only once another has begun the next. */
static void
miss_closed(struct group *group, int64_t now_ns)
{
    uint64_t furthest = 0;

    for (uint32_t i = 0; i < group->member_count; i++)
        if (group->members[i].connection != NULL && taken_by(&group->members[i]) > furthest)
            furthest = taken_by(&group->members[i]);
    for (uint32_t i = 0; i < group->member_count; i++) {
        struct member *member = &group->members[i];

        if (member->connection == NULL && member->leaving == MEMBER_CLOSED &&
            member->gone_since_ns < 0 && member->closed_at < furthest)
            member->gone_since_ns = now_ns;
    }
}

int64_t
feed_begin_tick(struct feed *feed, int64_t now_ns)
{
    int64_t next_ns = TND_CLOCK_NEVER;

    must_hold(&feed->lock);
    if (!feed->delivery->outlives_trainers)
        return next_ns;
    for (struct group *group = feed->groups; group != NULL; group = group->next) {
        miss_closed(group, now_ns);
        if (has_waiting(group, WAITS_TO_DECIDE) &&
            (now_ns >= group->undecided_until_ns || does_any_go_on(group)))
            tell_undecided(group);
        if (has_waiting(group, WAITS_FOR_EPOCH))
            tell_those_there(feed, group);
        if (has_waiting(group, WAITS_TO_DECIDE) || has_waiting(group, WAITS_FOR_EPOCH))
            next_ns = now_ns + LOOK_NS;
    }
    return next_ns;
}
