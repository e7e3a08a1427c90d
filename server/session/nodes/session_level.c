/* session_level.c - find the lowest of all nodes' places, and go back to it. */
#include "session/nodes/session_level.h"

#include <endian.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/clock.h"
#include "core/log.h"
#include "core/memory.h"
#include "core/must.h"
#include "session/checkpoint/session_state.h"
#include "session/session_private.h"
#include "shm/place.h"

/* A node's value: the highest byte first, so that bytes are in the order of places. The bytes of
 * its place follow, if it has one. */
struct standing_head {
    uint64_t epoch, step;
    uint8_t is_empty;
};

enum { STEP_BYTES = 16, LEVEL_BYTES = 17 };
enum level_part { LEVEL_LOWEST, LEVEL_HIGHEST };

static struct link_key
level_key(const struct session *session, enum level_part part, uint64_t number)
{
    return (struct link_key){
        .topic = LINK_LEVEL,
        .stream = session->linked.stream,
        .epoch = part,
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

static tundish_status
tell(struct session *session, enum level_part part, uint64_t number, struct byte_view bytes)
{
    struct link_key key = level_key(session, part, number);
    bool is_lowest = part == LEVEL_LOWEST;
    uint8_t *given = tnd_alloc(LEVEL_BYTES + bytes.size);
    struct standing_head level = { .is_empty = bytes.size == 0 };
    tundish_status status = TUNDISH_OK;
    struct tnd_place place;

    if (bytes.size > 0) {
        status = tnd_place_read(bytes.data, bytes.size, &place);
        level.epoch = htobe64(place.epoch);
        level.step = htobe64(place.step);
        memcpy(given + LEVEL_BYTES, bytes.data, bytes.size);
    }
    memcpy(given, &level, LEVEL_BYTES);
    if (status == TUNDISH_OK)
        link_tally(session->linked.link, &key,
                   &(struct link_tally){ .merge = is_lowest ? LINK_LOWEST : LINK_HIGHEST,
                                         .bytes = given,
                                         .byte_count =
                                             is_lowest ? LEVEL_BYTES + bytes.size : STEP_BYTES });
    free(given);
    return status;
}

tundish_status
session_level_tell_place(struct session *session, uint64_t number, struct byte_view bytes)
{
    must_hold(&session->control.lock);
    return tell(session, LEVEL_LOWEST, number, bytes);
}

tundish_status
session_level_tell(struct session *session, uint64_t number, const _Atomic int *stop)
{
    struct session_link *linked = &session->linked;
    tundish_status status;
    struct byte_view place;
    uint8_t *bytes;
    size_t count = 0;

    if (linked->link == NULL)
        return TUNDISH_OK;
    session_link_mute(session, true);
    status = wait_until_unread(session, stop);
    if (status != TUNDISH_OK)
        return status;
    bytes = session_state_place(session, &count);
    place = bytes != NULL ? (struct byte_view){ bytes, count }
                          /* nothing was published since the last time */
                          : (struct byte_view){ linked->level, linked->level_bytes };
    status = tell(session, LEVEL_LOWEST, number, place);
    if (status == TUNDISH_OK)
        status = tell(session, LEVEL_HIGHEST, number, place);
    free(bytes);
    return status;
}

tundish_status
session_level_find(struct session *session, uint64_t number, const _Atomic int *stop,
                   struct session_standing *ret_lowest)
{
    struct link_key lowest = level_key(session, LEVEL_LOWEST, number);
    struct link_total low = { 0 };
    tundish_status status = link_wait_for_total(session->linked.link, &lowest, -1, stop, &low);

    if (status == TUNDISH_OK && low.byte_count < LEVEL_BYTES)
        status = tnd_fail(TUNDISH_E_CORRUPT, "malformed position of trainers");
    if (status == TUNDISH_OK) {
        ret_lowest->byte_count = low.byte_count - LEVEL_BYTES;
        ret_lowest->bytes = tnd_alloc(low.byte_count);
        memcpy(ret_lowest->bytes, low.bytes + LEVEL_BYTES, ret_lowest->byte_count);
        if (ret_lowest->byte_count > 0)
            status = tnd_place_read(ret_lowest->bytes, ret_lowest->byte_count, &ret_lowest->place);
    }
    free(low.bytes);
    return status;
}

bool
session_level_is_known(struct session *session, uint64_t number)
{
    struct link_key lowest = level_key(session, LEVEL_LOWEST, number);
    struct link_total total = { 0 };
    bool is_known = link_find_total(session->linked.link, &lowest, &total);

    must_hold(&session->control.lock);
    free(total.bytes);
    return is_known;
}

/* The barrier is closed. */
static tundish_status
lower_start(struct session *session, const struct session_standing *level)
{
    const struct tnd_place *place = &level->place;
    const struct feed_start start = {
        .epoch = place->epoch,
        .step = place->step,
        .place_epoch = place->header_epoch,
    };
    struct place contents;
    tundish_status status;

    must_hold(&session->control.lock);
    must_in_debug(session->control.barrier.closed);
    if (level->byte_count == 0)
        return TUNDISH_OK;
    status = place_read(place->header, place->header_bytes, &contents);
    if (status == TUNDISH_OK)
        status = place_check(&contents, session->plan, &session->place_files);
    return status == TUNDISH_OK ? start_barrier_lower(session, NULL, &contents, &start) : status;
}

static tundish_status
go_back(struct session *session, uint64_t number, const struct session_standing *level)
{
    tundish_status status = TUNDISH_OK;

    tnd_lock_take(&session->control.lock);
    if (session->control.stopping || (session->control.restored && level->byte_count == 0))
        status =
            tnd_fail(TUNDISH_E_PLACE, "stream '%s' cannot restart at the position of its trainers",
                     session->plan->stream->name);
    if (status == TUNDISH_OK) {
        session_halt(session);
        session_link_restart(session, number);
        status = feed_rewind_groups(session->feed);
        start_barrier_reclose(session);
    }
    if (status == TUNDISH_OK)
        status = lower_start(session, level);
    if (status == TUNDISH_OK)
        start_barrier_open(session); /* all readers are known, and start here */
    tnd_lock_release(&session->control.lock);
    return status;
}

/* Does any node's place differ from the lowest? */
static tundish_status
compare(struct session *session, uint64_t number, const _Atomic int *stop,
        const struct tnd_place *lowest, bool *ret_differ)
{
    struct standing_head level = { htobe64(lowest->epoch), htobe64(lowest->step), 0 };
    struct link_key highest = level_key(session, LEVEL_HIGHEST, number);
    struct link_total high;
    tundish_status status = link_wait_for_total(session->linked.link, &highest, -1, stop, &high);

    if (status != TUNDISH_OK)
        return status;
    *ret_differ = high.byte_count != STEP_BYTES || memcmp(&level, high.bytes, STEP_BYTES) != 0;
    free(high.bytes);
    return TUNDISH_OK;
}

tundish_status
session_level_reach(struct session *session, uint64_t number, const _Atomic int *stop)
{
    struct session_link *linked = &session->linked;
    struct session_standing lowest = { 0 };
    bool differ = false;
    tundish_status status;

    if (linked->link == NULL)
        return TUNDISH_OK;
    status = session_level_find(session, number, stop, &lowest);
    if (status == TUNDISH_OK)
        status = compare(session, number, stop, &lowest.place, &differ);
    /* All nodes go back: a node that goes back needs steps that the others have already dealt. */
    if (status == TUNDISH_OK && differ)
        status = go_back(session, number, &lowest);
    if (status == TUNDISH_OK)
        tnd_log(TND_LOG_NOTICE, "resume",
                "stream %s: the trainers of all nodes restart at epoch %" PRIu64 ", step %" PRIu64,
                session->plan->stream->name, lowest.place.epoch, lowest.place.step);
    free(linked->level);
    linked->level = lowest.bytes;
    linked->level_bytes = lowest.byte_count;
    return status;
}
