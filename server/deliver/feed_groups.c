/* feed_groups.c - who may sit down, who has left, and what the others are told. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/log.h"
#include "core/memory.h"
#include "core/must.h"
#include "core/status.h"
#include "deliver/feed_private.h"

#define LOOK_FOR_SLOW_GROUPS_NS INT64_C(1000000000)

enum { TEXT_BYTES = 512 };

/* Its readers go with the lanes, or have been closed. */
void
feed_free_group(struct group *group)
{
    free(group->released);
    free(group->name);
    free(group);
}

static uint32_t
count_present(const struct group *group)
{
    uint32_t present = 0;

    for (uint32_t i = 0; i < group->seat_count; i++)
        present += group->seats[i].client != NULL;
    return present;
}

static uint32_t
count_full_groups(const struct feed *feed)
{
    uint32_t full = 0;

    for (const struct group *group = feed->groups; group != NULL; group = group->next)
        full += !group->ended && count_present(group) == group->seat_count;
    return full;
}

static void
unlink_group(struct feed *feed, struct group *group)
{
    struct group **link = &feed->groups;

    while (*link != group)
        link = &(*link)->next;
    *link = group->next;
    for (uint32_t i = 0; i < group->seat_count; i++)
        lane_reader_close(group->seats[i].reader);
    feed_free_group(group);
}

uint64_t
feed_first_position(struct feed *feed)
{
    uint64_t         position = 0;
    bool             is_end = !feed->config.lane.queue;
    struct lane_look look;

    for (uint32_t i = 0; i < feed->lane_count; i++) {
        uint64_t lowest = lane_lowest(feed->lanes[i]);

        if (lowest > position)
            position = lowest;
    }
    for (uint32_t i = 0; i < feed->lane_count; i++)
        is_end &= lane_look(feed->lanes[i], position, &look) && look.published &&
                  look.kind == TND_SLOT_END && look.step > 0;
    return position + is_end;
}

static void
tie_readers(struct group *group, uint64_t position)
{
    group->released = tnd_zalloc(group->seat_count, sizeof *group->released);
    for (uint32_t i = 0; i < group->seat_count; i++)
        atomic_store(&group->released[i], position);
    for (uint32_t i = 0; i < group->seat_count; i++)
        lane_reader_tie(group->seats[i].reader,
                        (struct lane_tie){ group->released, group->seat_count, i });
}

/* Nobody of the group is here: all go on at the lowest step that one of them has not released. */
static void
level_group(struct group *group)
{
    uint64_t                 lowest = UINT64_MAX;
    struct lane_reader_stats stats;

    for (uint32_t i = 0; i < group->seat_count; i++) {
        lane_reader_stats(group->seats[i].reader, &stats);
        lowest = stats.released < lowest ? stats.released : lowest;
    }
    for (uint32_t i = 0; i < group->seat_count; i++)
        lane_reader_rewind(group->seats[i].reader, lowest);
}

static tundish_status
make_group(struct feed *feed, const char *name, struct group **ret_group)
{
    bool          is_queue = feed->config.lane.queue;
    uint32_t      seat_count = is_queue ? 1 : feed->config.replica_count;
    struct group *group = tnd_alloc(sizeof *group + seat_count * sizeof group->seats[0]);
    uint64_t      position = feed_first_position(feed);

    memset(group, 0, sizeof *group + seat_count * sizeof group->seats[0]);
    group->name = tnd_strdup(name);
    group->seat_count = seat_count;
    group->next = feed->groups;
    feed->groups = group;
    for (uint32_t i = 0; i < seat_count; i++) {
        struct seat   *seat = &group->seats[i];
        tundish_status status = lane_reader_open(feed->lanes[i], position, &seat->reader);

        if (status != TUNDISH_OK) {
            unlink_group(feed, group);
            return status;
        }
        seat->group = group;
        seat->replica = i;
        seat->gone_since_ns = -1;
        seat->seen_at_ns = tnd_clock_ns();
    }
    if (!is_queue)
        tie_readers(group, position);
    *ret_group = group;
    return TUNDISH_OK;
}

static tundish_status
check_request(struct feed *feed, const struct feed_request *request)
{
    struct group *group = feed_find_group(feed, request->group);
    struct seat  *seat;

    if (feed->config.lane.queue)
        return TUNDISH_OK;
    if (request->replica >= feed->config.replica_count)
        return tnd_fail(TUNDISH_E_ARGUMENT,
                        "stream %s has %u replicas on this server (distribute.replicas): there is "
                        "no replica %u",
                        feed->stream, feed->config.replica_count, request->replica);
    seat = group == NULL ? NULL : &group->seats[request->replica];
    if (seat != NULL && seat->client != NULL)
        return tnd_fail(TUNDISH_E_ARGUMENT,
                        "replica %u of group \"%s\" is being read by process %d: choose another "
                        "replica or group",
                        request->replica, request->group, seat->client->pid);
    return TUNDISH_OK;
}

static bool
must_be_admitted(struct feed *feed, const struct feed_request *request)
{
    struct group *group = feed_find_group(feed, request->group);

    return request->start.has_place || request->start.survivor || feed->config.lane.queue ||
           group == NULL || count_present(group) == 0;
}

static void
send_places(struct feed *feed, struct client *client)
{
    for (uint32_t i = 0; i < feed->place_count; i++) {
        const struct epoch_place *place = &feed->places[i];
        struct tnd_message_head   head = { .type = TND_EPOCH, .id = place->epoch };

        if (place->bytes != NULL)
            client_post_parts(client, head, place->bytes, place->byte_count);
    }
}

/* Whoever is not here is given the time to rejoin. */
static void
expect_back(struct group *group)
{
    for (uint32_t i = 0; i < group->seat_count; i++)
        if (group->seats[i].client == NULL && group->seats[i].gone_since_ns < 0)
            group->seats[i].gone_since_ns = tnd_clock_ns();
}

static tundish_status
sit_down(struct feed *feed, const struct feed_request *request, struct client *client,
         struct seat **ret_seat)
{
    bool               is_queue = feed->config.lane.queue;
    struct group      *group = is_queue ? NULL : feed_find_group(feed, request->group);
    struct tnd_welcome welcome = {
        .protocol = TND_PROTOCOL_MAX,
        .replica = request->replica,
        .replica_count = feed->config.replica_count,
        .first_replica = feed->config.first_replica,
        .total_replica_count = feed->config.total_replica_count,
    };
    struct seat   *seat;
    bool           is_new = !is_queue && group == NULL;
    tundish_status status = TUNDISH_OK;

    snprintf(welcome.stream, sizeof welcome.stream, "%s", feed->stream);
    if (group == NULL)
        status = make_group(feed, request->group, &group);
    else if (count_present(group) == 0)
        level_group(group);
    if (status != TUNDISH_OK)
        return status;
    seat = &group->seats[is_queue ? 0 : request->replica];
    status = lane_reader_attach(seat->reader, client, &welcome);
    if (status != TUNDISH_OK) {
        if (is_queue || is_new)
            unlink_group(feed, group);
        return status;
    }
    if (is_new && group->next != NULL && welcome.first_step != UINT64_MAX &&
        (welcome.first_epoch > 0 || welcome.first_step > 0))
        tnd_log(TND_LOG_NOTICE, "groups",
                "group \"%.100s\" comes to session %s under way and begins at epoch %" PRIu64
                ", step %" PRIu64,
                group->name, feed->session, welcome.first_epoch, welcome.first_step);
    lane_beat(feed->lanes[seat->replica % feed->lane_count], tnd_clock_ns());
    seat->client = client;
    seat->gone_since_ns = -1;
    seat->seen_at_ns = tnd_clock_ns();
    if (request->start.survivor)
        expect_back(group);
    send_places(feed, client);
    lane_reader_notify(seat->reader);
    *ret_seat = seat;
    return TUNDISH_OK;
}

tundish_status
feed_attach(struct feed *feed, const struct feed_request *request, struct client *client,
            struct seat **ret_seat)
{
    const struct feed_ops *ops = feed->config.ops;
    struct feed_request    only = { request->group, 0, request->start };
    tundish_status         status;
    struct seat           *seat = NULL;
    uint32_t               present = 0, full = 0;
    bool                   ask;

    if (feed->config.forgets)
        request = &only; /* the lane is this trainer's, whatever its number */
    pthread_mutex_lock(&feed->lock);
    status = check_request(feed, request);
    ask = must_be_admitted(feed, request);
    feed->admitting = request->group;
    pthread_mutex_unlock(&feed->lock);
    if (status == TUNDISH_OK && ask)
        status = ops->admit(feed->config.user, feed, request->group, request->replica,
                            &request->start);
    pthread_mutex_lock(&feed->lock);
    feed->admitting = NULL;
    if (status == TUNDISH_OK)
        status = sit_down(feed, request, client, &seat);
    if (status == TUNDISH_OK) {
        present = count_present(seat->group);
        full = count_full_groups(feed);
    }
    pthread_mutex_unlock(&feed->lock);
    if (status != TUNDISH_OK) {
        ops->refused(feed->config.user, feed);
        return status;
    }
    ops->joined(feed->config.user, feed, request->group, request->replica, present, full);
    *ret_seat = seat;
    return TUNDISH_OK;
}

/* Tell every other trainer of the group. */
static void
tell_others(struct group *group, const struct seat *but, tundish_status status, const char *text)
{
    for (uint32_t i = 0; i < group->seat_count; i++) {
        struct seat *seat = &group->seats[i];

        if (seat == but || seat->client == NULL)
            continue;
        client_post_text(seat->client, TND_LOST, status, text);
        lane_reader_notify(seat->reader);
    }
}

/* Who has taken everything up to the stream's end, or the error that ended it, needs no successor. */
static bool
has_read_all(struct feed *feed, const struct seat *seat)
{
    struct lane_reader_stats stats;
    struct lane_look         look;

    lane_reader_stats(seat->reader, &stats);
    return !feed->config.lane.queue &&
           lane_look(feed->lanes[seat->replica], stats.taken, &look) && look.published &&
           look.kind != TND_SLOT_BATCH && look.kind != TND_SLOT_END;
}

static bool
group_has_finished(struct feed *feed, const struct group *group)
{
    bool finished = true;

    for (uint32_t i = 0; i < group->seat_count; i++)
        finished &= has_read_all(feed, &group->seats[i]);
    return finished;
}

static void
leave_seat(struct feed *feed, struct seat *seat, bool died)
{
    struct group *group = seat->group;
    bool          has_finished = has_read_all(feed, seat);
    char          text[TEXT_BYTES];

    snprintf(text, sizeof text,
             "replica %u of group \"%.100s\" (process %d) has died; if a successor takes its place "
             "within %.0f s, batches go on",
             seat->replica, group->name, seat->client->pid,
             (double)feed->config.rejoin_ns / 1e9);
    lane_reader_detach(seat->reader);
    seat->client = NULL;
    seat->gone_since_ns = has_finished ? -1 : tnd_clock_ns();
    feed->losses.trainers += died && !has_finished;
    if (count_present(group) == 0)
        expect_back(group);
    if (died && !group->ended)
        tell_others(group, seat, TUNDISH_OK, text);
    if (count_present(group) == 0 &&
        (group->ended || feed->config.lane.queue || feed->config.forgets))
        unlink_group(feed, group);
}

void
feed_detach(struct feed *feed, struct seat *seat, bool died)
{
    char    *name;
    uint32_t replica = seat->replica;

    pthread_mutex_lock(&feed->lock);
    name = tnd_strdup(seat->group->name);
    leave_seat(feed, seat, died);
    pthread_mutex_unlock(&feed->lock);
    feed->config.ops->left(feed->config.user, feed, name, replica, died);
    free(name);
}

void
feed_tell_lost(struct feed *feed, const char *name, const char *text)
{
    pthread_mutex_lock(&feed->lock);
    /* A queue's readers are groups of one name. */
    for (struct group *group = feed->groups; group != NULL; group = group->next)
        if (!group->ended && (name == NULL || strcmp(group->name, name) == 0))
            tell_others(group, NULL, TUNDISH_OK, text);
    pthread_mutex_unlock(&feed->lock);
}

/* Which epoch have all asked to leave? Those who are gone for good do not count. */
static uint64_t
lowest_vote(const struct feed *feed)
{
    uint64_t lowest = UINT64_MAX;

    for (const struct group *group = feed->groups; group != NULL; group = group->next) {
        if (group->ended)
            continue;
        for (uint32_t i = 0; i < group->seat_count; i++)
            if (group->seats[i].restart_votes < lowest)
                lowest = group->seats[i].restart_votes;
    }
    return lowest;
}

void
feed_vote_restart(struct feed *feed, struct seat *seat, uint64_t epoch)
{
    uint64_t all;
    bool     is_new;

    pthread_mutex_lock(&feed->lock);
    if (epoch < UINT64_MAX && epoch + 1 > seat->restart_votes)
        seat->restart_votes = epoch + 1;
    all = lowest_vote(feed);
    is_new = all != UINT64_MAX && all > feed->restarts_done;
    if (is_new)
        feed->restarts_done = all;
    pthread_mutex_unlock(&feed->lock);
    if (is_new)
        feed->config.ops->restart(feed->config.user, feed, all - 1);
}

void
feed_answer_queue(struct feed *feed, struct seat *seat)
{
    struct lane_queue_state state = { 0 };
    struct tnd_queue        queue = { 0 };
    struct tnd_message_head head = { .type = TND_QUEUE, .bytes = sizeof queue };

    if (!feed_queue_state(feed, &state))
        head.status = TUNDISH_E_TIMEOUT;
    queue.epoch = state.epoch;
    queue.step = state.step;
    queue.bit_count = state.bit_count;
    memcpy(queue.bits, state.bits, sizeof queue.bits);
    client_post(seat->client, head, &queue, NULL, 0);
    lane_reader_notify(seat->reader);
}

int
feed_queue_bell(const struct feed *feed, const struct seat *seat)
{
    return feed->config.lane.queue ? lane_reader_bell(seat->reader) : -1;
}

void
feed_queue_rung(struct feed *feed)
{
    lane_grant(feed->lanes[0]);
}

/* Cut the group off and take its name away; whoever is still here leaves by himself. */
static void
end_group(struct feed *feed, struct group *group, enum tnd_message_type type,
          tundish_status status, const char *text)
{
    group->ended = true;
    for (uint32_t i = 0; i < group->seat_count; i++) {
        struct seat *seat = &group->seats[i];

        if (seat->client != NULL) {
            client_post_text(seat->client, type, status, text);
            lane_reader_cut_off(seat->reader);
        } else {
            lane_reader_close(seat->reader);
            seat->reader = NULL;
        }
    }
    if (count_present(group) == 0)
        unlink_group(feed, group);
}

/* The replica of the group whose time to rejoin runs out first, or NULL. */
static const struct seat *
find_first_gone(const struct group *group)
{
    const struct seat *first = NULL;

    for (uint32_t i = 0; i < group->seat_count; i++) {
        const struct seat *seat = &group->seats[i];

        if (seat->client == NULL && seat->gone_since_ns >= 0 &&
            (first == NULL || seat->gone_since_ns < first->gone_since_ns))
            first = seat;
    }
    return first;
}

static void
tell_session_ended(struct feed *feed, char *name)
{
    feed->config.ops->group_ended(feed->config.user, feed, name);
    free(name);
}

/* End the first group whose time is over; returns its name, which the caller frees, or NULL and when
 * the next one's is. */
static char *
end_gone_group(struct feed *feed, int64_t now_ns, int64_t *deadline_ns)
{
    for (struct group *group = feed->groups; group != NULL; group = group->next) {
        const struct seat *gone = group->ended ? NULL : find_first_gone(group);
        char               text[TEXT_BYTES];
        char              *name;

        if (gone == NULL || feed->config.rejoin_ns < 0)
            continue;
        if (now_ns - gone->gone_since_ns < feed->config.rejoin_ns) {
            int64_t at_ns = gone->gone_since_ns + feed->config.rejoin_ns;

            *deadline_ns = at_ns < *deadline_ns ? at_ns : *deadline_ns;
            continue;
        }
        snprintf(text, sizeof text,
                 "replica %u of group \"%.100s\" left and no successor came within %.0f s "
                 "(deliver.rejoin): the group has ended; open again at a place",
                 gone->replica, group->name, (double)feed->config.rejoin_ns / 1e9);
        name = tnd_strdup(group->name);
        feed->losses.groups += !group_has_finished(feed, group);
        end_group(feed, group, TND_LOST, TUNDISH_E_PEER_LOST, text);
        return name;
    }
    return NULL;
}

/* The longest that a trainer of another group has waited at a lane that this one fills. */
static int64_t
held_up_for(struct feed *feed, const struct group *slow)
{
    int64_t longest_ns = 0;

    for (uint32_t i = 0; i < slow->seat_count; i++) {
        struct lane_stats        lane;
        struct lane_reader_stats own, other;

        lane_stats(feed->lanes[i], &lane);
        lane_reader_stats(slow->seats[i].reader, &own);
        if (!lane.full || own.released != lane.released)
            continue;
        for (struct group *group = feed->groups; group != NULL; group = group->next) {
            if (group == slow || group->ended)
                continue;
            lane_reader_stats(group->seats[i].reader, &other);
            if (other.taken == lane.published && other.waits_ns > longest_ns)
                longest_ns = other.waits_ns;
        }
    }
    return longest_ns;
}

static char *
detach_slow_group(struct feed *feed)
{
    for (struct group *group = feed->groups; group != NULL; group = group->next) {
        int64_t held_up_ns = group->ended ? 0 : held_up_for(feed, group);
        char    text[TEXT_BYTES];
        char   *name;

        if (held_up_ns == 0 || held_up_ns < feed->config.detach_ns)
            continue;
        snprintf(text, sizeof text,
                 "group \"%.100s\" held up another for %.1f s and was cut off "
                 "(deliver.slow_group: detach)",
                 group->name, (double)held_up_ns / 1e9);
        name = tnd_strdup(group->name);
        feed->losses.groups++;
        end_group(feed, group, TND_DETACHED, TUNDISH_E_DETACHED, text);
        return name;
    }
    return NULL;
}

static int64_t
earlier(int64_t a_ns, int64_t b_ns)
{
    return a_ns < b_ns ? a_ns : b_ns;
}

int64_t
feed_tick(struct feed *feed, int64_t now_ns)
{
    bool looks_for_slow = feed->config.detach && !feed->config.lane.queue;

    for (;;) {
        int64_t deadline_ns = TND_CLOCK_NEVER;
        bool    several;
        char   *ended;

        pthread_mutex_lock(&feed->lock);
        ended = end_gone_group(feed, now_ns, &deadline_ns);
        several = feed->groups != NULL && feed->groups->next != NULL;
        if (ended == NULL && looks_for_slow && several) {
            ended = detach_slow_group(feed);
            if (deadline_ns > now_ns + LOOK_FOR_SLOW_GROUPS_NS)
                deadline_ns = now_ns + LOOK_FOR_SLOW_GROUPS_NS;
        }
        pthread_mutex_unlock(&feed->lock);
        if (ended == NULL)
            return earlier(deadline_ns,
                           feed->config.ops->tick(feed->config.user, feed, now_ns));
        tell_session_ended(feed, ended);
    }
}

bool
feed_beat(struct feed *feed, int64_t now_ns)
{
    bool somebody = false;

    pthread_mutex_lock(&feed->lock);
    for (struct group *group = feed->groups; group != NULL; group = group->next)
        somebody |= count_present(group) > 0;
    pthread_mutex_unlock(&feed->lock);
    for (uint32_t i = 0; somebody && i < feed->lane_count; i++)
        lane_beat(feed->lanes[i], now_ns);
    return somebody;
}
