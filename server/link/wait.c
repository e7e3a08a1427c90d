/* wait.c - how other threads use a link: post, look, wait. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/memory.h"
#include "link/link_private.h"

static const int64_t LOOK_NS = 20000000;   /* how often a wait checks whether to stop */
static const int64_t LEFT_NS = 5000000000; /* how long a node that has left may take to answer */
/* The same of any, once one is lost. A node hears of losses by way of others. If it is cut off from
 * all, it hears of the first of them only. */
static const int64_t DOUBTED_NS = 20000000000;

uint32_t
link_rank(const struct link *link)
{
    return link->rank;
}

uint32_t
link_size(const struct link *link)
{
    return link->size;
}

void
link_name(struct link *link, uint32_t rank, char *ret_name, size_t name_bytes)
{
    char name[NODE_NAME_BYTES];

    pthread_mutex_lock(&link->lock);
    snprintf(ret_name, name_bytes, "%s", node_name(link->node, rank, name));
    pthread_mutex_unlock(&link->lock);
}

void
link_post(struct link *link, const struct link_key *key, const void *bytes, size_t byte_count)
{
    pthread_mutex_lock(&link->lock);
    node_post(link->node, key, bytes, byte_count);
    link->has_posted = true;
    /* The link's thread may be in a pause; a post ends it. */
    pthread_cond_signal(&link->posted);
    pthread_mutex_unlock(&link->lock);
}

void
link_forget(struct link *link, const struct link_key *key)
{
    pthread_mutex_lock(&link->lock);
    node_forget(link->node, key);
    pthread_mutex_unlock(&link->lock);
}

void
link_tally(struct link *link, const struct link_key *key, const struct link_tally *own)
{
    pthread_mutex_lock(&link->lock);
    node_tally(link->node, key, own);
    link->has_posted = true;
    pthread_cond_signal(&link->posted);
    pthread_mutex_unlock(&link->lock);
}

bool
link_find_total(struct link *link, const struct link_key *key, struct link_total *ret_total)
{
    struct link_total found;
    bool is_there;

    pthread_mutex_lock(&link->lock);
    is_there = node_find_total(link->node, key, &found);
    if (is_there) {
        *ret_total = found;
        ret_total->bytes = tnd_alloc(found.byte_count + 1);
        memcpy(ret_total->bytes, found.bytes, found.byte_count);
    }
    pthread_mutex_unlock(&link->lock);
    return is_there;
}

bool
link_find(struct link *link, const struct link_key *key, uint32_t rank, uint8_t **ret_bytes,
          size_t *ret_byte_count)
{
    struct byte_view found;
    bool is_there;

    pthread_mutex_lock(&link->lock);
    is_there = node_find(link->node, key, rank, &found);
    if (is_there) {
        *ret_bytes = tnd_alloc(found.size + 1);
        memcpy(*ret_bytes, found.data, found.size);
        *ret_byte_count = found.size;
    }
    pthread_mutex_unlock(&link->lock);
    return is_there;
}

tundish_status
link_check(struct link *link)
{
    tundish_status status = TUNDISH_OK;

    pthread_mutex_lock(&link->lock);
    if (node_failure(link->node) != NULL)
        status = tnd_fail(TUNDISH_E_PEER_LOST, "%s", node_failure(link->node));
    pthread_mutex_unlock(&link->lock);
    return status;
}

/* Fail if there is a reason to stop waiting. The lock is held. */
static tundish_status
reason_to_stop(int64_t deadline_ns, const _Atomic int *stop)
{
    if (stop != NULL && atomic_load(stop) != 0)
        return tnd_fail(TUNDISH_E_TIMEOUT, "the server is stopping");
    if (tnd_clock_left_ns(deadline_ns) == 0)
        return tnd_fail(TUNDISH_E_TIMEOUT, "the other nodes have not answered in time");
    return TUNDISH_OK;
}

static tundish_status
has_ended(const struct link *link, uint32_t rank)
{
    char name[NODE_NAME_BYTES];

    return tnd_fail(TUNDISH_E_PEER_LOST,
                    "%s has stopped while this node still needed it: its log says why",
                    node_name(link->node, rank, name));
}

/* The wait needs all nodes: fail if any is lost or has left. */
static tundish_status
look_at_all(struct link *link)
{
    uint32_t left = node_first_left(link->node);

    if (node_failure(link->node) != NULL)
        return tnd_fail(TUNDISH_E_PEER_LOST, "%s", node_failure(link->node));
    return left < link->size ? has_ended(link, left) : TUNDISH_OK;
}

tundish_status
link_check_all(struct link *link)
{
    tundish_status status;

    pthread_mutex_lock(&link->lock);
    status = look_at_all(link);
    pthread_mutex_unlock(&link->lock);
    return status;
}

static tundish_status
does_not_answer(const struct link *link, uint32_t rank)
{
    char name[NODE_NAME_BYTES];

    return tnd_fail(TUNDISH_E_PEER_LOST, "%s does not answer either. %s",
                    node_name(link->node, rank, name), node_failure(link->node));
}

/* The wait needs one node, which keeps answering for a while after it has left. */
static tundish_status
look_at_one(struct link *link, uint32_t rank, int64_t *patient_until_ns)
{
    bool has_left = node_has_left(link->node, rank);

    if (node_is_lost(link->node, rank) || node_is_lost(link->node, link->rank))
        return tnd_fail(TUNDISH_E_PEER_LOST, "%s", node_failure(link->node));
    if (!has_left && node_failure(link->node) == NULL)
        return TUNDISH_OK;
    if (*patient_until_ns == TND_CLOCK_NEVER)
        *patient_until_ns = tnd_clock_deadline_ns(has_left ? LEFT_NS : DOUBTED_NS);
    if (tnd_clock_left_ns(*patient_until_ns) > 0)
        return TUNDISH_OK;
    return has_left ? has_ended(link, rank) : does_not_answer(link, rank);
}

/* Wait until `ready`. `rank`: the node that matters, or link_size for all. `ready` is called
 * without the lock, since it takes it itself; `changes` tells whether to call it again at once. */
static tundish_status
wait_for(struct link *link, uint32_t rank, bool (*ready)(struct link *link, void *context),
         void *context, int64_t timeout_ns, const _Atomic int *stop)
{
    int64_t began_ns = tnd_clock_ns(), deadline_ns = tnd_clock_deadline_ns(timeout_ns);
    int64_t patient_until_ns = TND_CLOCK_NEVER;
    tundish_status status = TUNDISH_OK;
    bool is_ready = ready(link, context);
    uint64_t seen = UINT64_MAX, waited_ns;

    if (is_ready)
        return TUNDISH_OK;
    pthread_mutex_lock(&link->lock);
    link->stats.waits++;
    link->waiting++;
    link->waiting_since_ns += began_ns;
    while (!is_ready && status == TUNDISH_OK) {
        status = rank < link->size ? look_at_one(link, rank, &patient_until_ns) : look_at_all(link);
        if (status == TUNDISH_OK)
            status = reason_to_stop(deadline_ns, stop);
        /* Sleep only if nothing has changed since `ready` was asked: no change is missed. */
        if (status == TUNDISH_OK && seen == link->changes)
            link_wait_until(&link->changed, &link->lock, LOOK_NS);
        seen = link->changes;
        pthread_mutex_unlock(&link->lock);
        is_ready = ready(link, context);
        pthread_mutex_lock(&link->lock);
    }
    link->waiting--;
    link->waiting_since_ns -= began_ns;
    waited_ns = (uint64_t)(tnd_clock_ns() - began_ns);
    link->stats.waited_ns += waited_ns;
    tnd_stats_observe(&link->stats.wait_times, waited_ns);
    pthread_mutex_unlock(&link->lock);
    /* The awaited post may have come together with the reason to stop: it counts. */
    return is_ready ? TUNDISH_OK : status;
}

tundish_status
link_wait(struct link *link, bool (*ready)(struct link *link, void *context), void *context,
          int64_t timeout_ns, const _Atomic int *stop)
{
    return wait_for(link, link->size, ready, context, timeout_ns, stop);
}

tundish_status
link_wait_for_one(struct link *link, uint32_t rank, bool (*ready)(struct link *link, void *context),
                  void *context, int64_t timeout_ns, const _Atomic int *stop)
{
    return wait_for(link, rank, ready, context, timeout_ns, stop);
}

bool
link_is_lost(struct link *link, uint32_t rank)
{
    bool lost;

    pthread_mutex_lock(&link->lock);
    lost = node_is_lost(link->node, rank);
    pthread_mutex_unlock(&link->lock);
    return lost;
}

bool
link_has_left(struct link *link, uint32_t rank)
{
    bool left;

    pthread_mutex_lock(&link->lock);
    left = node_has_left(link->node, rank);
    pthread_mutex_unlock(&link->lock);
    return left;
}

struct wanted_total {
    struct link_key key;
    struct link_total total;
};

static bool
has_total(struct link *link, void *context)
{
    struct wanted_total *wanted = context;

    return link_find_total(link, &wanted->key, &wanted->total);
}

tundish_status
link_wait_for_total(struct link *link, const struct link_key *key, int64_t timeout_ns,
                    const _Atomic int *stop, struct link_total *ret_total)
{
    struct wanted_total wanted = { .key = *key };
    tundish_status status = link_wait(link, has_total, &wanted, timeout_ns, stop);

    if (status == TUNDISH_OK)
        *ret_total = wanted.total;
    return status;
}

tundish_status
link_tally_all(struct link *link, const struct link_key *key, const struct link_tally *own,
               int64_t timeout_ns, const _Atomic int *stop, struct link_total *ret_total)
{
    link_tally(link, key, own);
    return link_wait_for_total(link, key, timeout_ns, stop, ret_total);
}

void
link_stats(struct link *link, struct link_stats *ret_stats)
{
    pthread_mutex_lock(&link->lock);
    node_stats(link->node, ret_stats);
    ret_stats->waits = link->stats.waits;
    /* A wait may be long, and is to be seen meanwhile. */
    ret_stats->waited_ns =
        link->stats.waited_ns + (uint64_t)(link->waiting * tnd_clock_ns() - link->waiting_since_ns);
    ret_stats->wait_times = link->stats.wait_times;
    pthread_mutex_unlock(&link->lock);
}
