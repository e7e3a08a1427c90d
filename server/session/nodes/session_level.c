/* session_level.c - find the lowest of all nodes' places, and go back to it. */
#include "session/nodes/session_level.h"

#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

#include "core/clock.h"
#include "core/log.h"
#include "session/checkpoint/session_state.h"
#include "session/session_private.h"
#include "shm/place.h"

/* A node's post, and its content. Without bytes: the stream's beginning. */
struct standing {
    uint8_t *bytes;
    size_t byte_count;
    struct tnd_place place;
};

static struct link_key
level_key(const struct session *session, uint64_t number)
{
    return (struct link_key){
        .topic = LINK_LEVEL,
        .stream = session->linked.stream,
        .part = number,
    };
}

/* The trainers' processes are gone, but the hub may not have noticed it yet. */
static tundish_status
wait_until_unread(struct session *session, const _Atomic int *stop)
{
    const struct spec_stream *stream = session->plan->stream;
    int64_t rejoin_ns = stream->deliver.rejoin_ns;
    int64_t deadline_ns = rejoin_ns < 0 ? TND_CLOCK_NEVER : tnd_clock_deadline_ns(rejoin_ns);

    while (feed_has_trainers(session->feed)) {
        if (atomic_load(stop) != 0 || tnd_clock_ns() >= deadline_ns)
            return tnd_fail(TUNDISH_E_TIMEOUT,
                            "other trainers still read stream '%s', so its trainers cannot restart "
                            "together with those of the other nodes",
                            stream->name);
        nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL);
    }
    return TUNDISH_OK;
}

tundish_status
session_level_tell(struct session *session, uint64_t number, const _Atomic int *stop)
{
    struct session_link *linked = &session->linked;
    struct link_key key = level_key(session, number);
    tundish_status status;
    uint8_t *bytes;
    size_t count = 0;

    if (linked->link == NULL)
        return TUNDISH_OK;
    session_link_mute(session, true);
    status = wait_until_unread(session, stop);
    if (status != TUNDISH_OK)
        return status;
    bytes = session_state_place(session, &count);
    if (bytes != NULL)
        link_post(linked->link, &key, bytes, count);
    else /* nothing was published since the last time */
        link_post(linked->link, &key, linked->level != NULL ? linked->level : (const uint8_t *)"",
                  linked->level_bytes);
    free(bytes);
    return TUNDISH_OK;
}

static tundish_status
read_standing(struct session *session, const struct link_key *key, uint32_t rank,
              struct standing *ret_standing)
{
    *ret_standing = (struct standing){ 0 };
    if (!link_find(session->linked.link, key, rank, &ret_standing->bytes,
                   &ret_standing->byte_count))
        return tnd_fail(TUNDISH_E_PEER_LOST, "a node did not report the position of its trainers");
    return ret_standing->byte_count == 0
               ? TUNDISH_OK
               : tnd_place_read(ret_standing->bytes, ret_standing->byte_count,
                                &ret_standing->place);
}

static bool
is_before(const struct tnd_place *a, const struct tnd_place *b)
{
    return a->epoch < b->epoch || (a->epoch == b->epoch && a->step < b->step);
}

/* Find the lowest of all nodes' places, whose bytes the caller frees, and whether any place differs
 * from it. */
static tundish_status
find_lowest(struct session *session, const struct link_key *key, struct standing *ret_lowest,
            bool *ret_differ)
{
    struct link *link = session->linked.link;
    tundish_status status = read_standing(session, key, 0, ret_lowest);

    *ret_differ = false;
    for (uint32_t rank = 1; status == TUNDISH_OK && rank < link_size(link); rank++) {
        struct standing other, higher;

        status = read_standing(session, key, rank, &other);
        higher = other;
        if (status == TUNDISH_OK && is_before(&other.place, &ret_lowest->place)) {
            higher = *ret_lowest;
            *ret_lowest = other;
        }
        *ret_differ |= is_before(&ret_lowest->place, &higher.place);
        free(higher.bytes);
    }
    return status;
}

/* The barrier is closed. */
static tundish_status
lower_start(struct session *session, const struct standing *level)
{
    const struct tnd_place *place = &level->place;
    const struct feed_start start = {
        .epoch = place->epoch,
        .step = place->step,
        .place_epoch = place->header_epoch,
    };
    struct place contents;
    tundish_status status;

    if (level->byte_count == 0)
        return TUNDISH_OK;
    status = place_read(place->header, place->header_bytes, &contents);
    if (status == TUNDISH_OK)
        status = place_check(&contents, session->plan, &session->place_files);
    return status == TUNDISH_OK ? start_barrier_lower(session, NULL, &contents, &start) : status;
}

static tundish_status
go_back(struct session *session, const struct standing *level)
{
    tundish_status status = TUNDISH_OK;

    pthread_mutex_lock(&session->control.lock);
    if (session->control.stopping || (session->control.restored && level->byte_count == 0))
        status =
            tnd_fail(TUNDISH_E_PLACE, "stream '%s' cannot restart at the position of its trainers",
                     session->plan->stream->name);
    if (status == TUNDISH_OK) {
        session_halt(session);
        status = feed_rewind_groups(session->feed);
        start_barrier_reclose(session);
    }
    if (status == TUNDISH_OK)
        status = lower_start(session, level);
    if (status == TUNDISH_OK)
        start_barrier_open(session); /* all readers are known, and start here */
    pthread_mutex_unlock(&session->control.lock);
    return status;
}

tundish_status
session_level_reach(struct session *session, uint64_t number, const _Atomic int *stop)
{
    struct session_link *linked = &session->linked;
    struct link_key key = level_key(session, number);
    struct standing lowest = { 0 };
    bool differ = false;
    tundish_status status;

    if (linked->link == NULL)
        return TUNDISH_OK;
    status = link_wait_for_all(linked->link, &key, -1, stop);
    if (status == TUNDISH_OK)
        status = find_lowest(session, &key, &lowest, &differ);
    /* All nodes go back: a node that goes back needs steps that the others have already dealt. */
    if (status == TUNDISH_OK && differ)
        status = go_back(session, &lowest);
    if (status == TUNDISH_OK)
        tnd_log(TND_LOG_NOTICE, "resume",
                "stream %s: the trainers of all nodes restart at epoch %" PRIu64 ", step %" PRIu64,
                session->plan->stream->name, lowest.place.epoch, lowest.place.step);
    free(linked->level);
    linked->level = lowest.bytes;
    linked->level_bytes = lowest.byte_count;
    return status;
}
