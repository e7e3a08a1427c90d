/* session_ahead.c - tell, and compare with the trainers of this node. */
#include "session/nodes/session_ahead.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/hash_farm.h"
#include "session/session_private.h"

/* A node's value for a group that it knows; others give one byte. */
struct told_ahead {
    uint64_t epoch, step;
    uint32_t replica, reserved; /* counted over all nodes */
    char group[TND_NAME_BYTES];
};

/* Replicas of queues and broadcasts take no steps together. Where nodes have files of their own,
 * those ahead wait for one that starts from the beginning (session_replay.h). */
static bool
is_compared(const struct session *session)
{
    return session->linked.job != NULL && session->plan->policy == SHARD_DATA &&
           session->plan->stream->distribute.delivery == DELIVER_LANES &&
           session->options.shards == NULL;
}

static struct link_key
ahead_key(const struct session *session, const char *group)
{
    return (struct link_key){ .topic = LINK_AHEAD,
                              .stream = session->linked.stream,
                              .part = tnd_hash_farm(group, strlen(group)) };
}

void
session_ahead_tell(struct session *session, const char *group)
{
    struct link_key key = ahead_key(session, group);
    struct feed_ahead ahead;
    struct told_ahead told = { 0 };
    bool tells = is_compared(session) && feed_first_ahead(session->feed, group, &ahead);

    if (!tells && !session->linked.told_ahead)
        return;
    session->linked.told_ahead = true;
    if (tells) {
        told.epoch = ahead.epoch;
        told.step = ahead.step;
        told.replica = ahead.replica;
        snprintf(told.group, sizeof told.group, "%s", group);
    }
    link_tally(session->linked.job, &key,
               &(struct link_tally){ .merge = LINK_KINDS,
                                     .is_running = true,
                                     .bytes = (const uint8_t *)&told,
                                     .byte_count = tells ? sizeof told : 1 });
}

/* The first that another node has told. Its bytes come from there. */
static bool
find_told(const struct session *session, struct byte_view bytes, struct told_ahead *ret_told,
          uint32_t *ret_rank)
{
    struct byte_view one;

    while (link_next_of_each(&bytes, ret_rank, &one)) {
        if (one.size != sizeof *ret_told || *ret_rank == link_rank(session->linked.job))
            continue;
        memcpy(ret_told, one.data, sizeof *ret_told);
        ret_told->group[TND_NAME_BYTES - 1] = '\0';
        return true;
    }
    return false;
}

static void
describe(const struct session *session, const struct told_ahead *told, uint32_t rank,
         struct feed_elsewhere *ret_ahead)
{
    link_name(session->linked.job, rank, ret_ahead->node, sizeof ret_ahead->node);
    ret_ahead->group = told->group;
    ret_ahead->ahead = (struct feed_ahead){ told->replica, told->epoch, told->step };
}

/* The survivors of a server that died show what others lack. */
void
session_ahead_hear(struct session *session, struct byte_view bytes)
{
    struct told_ahead told;
    struct feed_elsewhere ahead;
    uint32_t rank;
    bool has_kept;

    tnd_lock_take(&session->control.lock);
    has_kept = session->control.barrier.has_kept;
    tnd_lock_release(&session->control.lock);
    if (has_kept || !is_compared(session) || !find_told(session, bytes, &told, &rank))
        return;
    describe(session, &told, rank, &ahead);
    feed_tell_elsewhere(session->feed, &ahead);
}

bool
session_ahead_find(struct session *session, const char *group, uint32_t replica,
                   struct feed_elsewhere *ret_ahead)
{
    struct link_key key = ahead_key(session, group);
    struct link_total total = { 0 };
    struct told_ahead told;
    uint32_t rank;
    bool found = false;

    must_hold(&session->control.lock);
    if (!is_compared(session) || !link_find_total(session->linked.job, &key, &total))
        return false;
    if (find_told(session, (struct byte_view){ total.bytes, total.byte_count }, &told, &rank) &&
        strcmp(told.group, group) == 0) {
        describe(session, &told, rank, ret_ahead);
        ret_ahead->group = group;
        found = feed_is_elsewhere(session->feed, ret_ahead, replica);
    }
    free(total.bytes);
    return found;
}
