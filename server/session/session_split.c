/* session_split.c - find and compare the steps at which trainers change to other numbers. */
#include "session/session_split.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/log.h"
#include "session/nodes/session_link.h"
#include "session/session_private.h"

enum { TEXT_BYTES = 512 };

/* In `part` of keys. */
enum { SPLIT_STEP, SPLIT_RUN };

/* tundish_cuda.h's depth may be so large; other readers take nothing that is not asked for. */
enum { TAKEN_AHEAD_MAX = 64 };

/* What a node tells. */
struct told_split {
    uint64_t epoch, step;
};

struct place_split
session_split_from(const struct session *session, uint64_t epoch, uint64_t step)
{
    bool whole = session->plan->stream->distribute.delivery != DELIVER_LANES;

    return (struct place_split){
        .workers = session->plan->options.worker_count,
        .replicas = whole ? 1 : session->plan->replicas,
        .epoch = epoch,
        .step = step,
    };
}

struct place_split
session_split_of(const struct session *session, const struct place *place,
                 const struct feed_start *start)
{
    struct place_split here = session_split_from(session, start->epoch, start->step);

    if (place->split.workers == 0 ||
        (place->split.workers == here.workers && place->split.replicas == here.replicas))
        return place->split;
    return here;
}

static tundish_status
refuse(const struct session *session, const struct told_split *one, const struct told_split *other)
{
    return tnd_fail(TUNDISH_E_PLACE,
                    "trainers of stream '%s' open at epoch %" PRIu64 ", step %" PRIu64
                    " and at epoch %" PRIu64 ", step %" PRIu64
                    ", and the number of workers or replicas has changed since their places were "
                    "taken (%u and %u now): the rows of a step go to other trainers, so all must "
                    "open at places of the same step",
                    session->plan->stream->name, one->epoch, one->step, other->epoch, other->step,
                    session->plan->options.worker_count, session->plan->replicas);
}

static tundish_status
refuse_runs(const struct session *session, uint32_t one, uint32_t other)
{
    char first[160], second[160];

    link_name(session->linked.job, one, first, sizeof first);
    link_name(session->linked.job, other, second, sizeof second);
    return tnd_fail(TUNDISH_E_PLACE,
                    "the trainers of stream '%s' on %s and on %s are in different runs of it, in "
                    "which rows have different orders: let the trainers of all nodes go on with "
                    "places of one run, or none",
                    session->plan->stream->name, first, second);
}

tundish_status
session_split_check(const struct session *session, const struct place_split *one,
                    const struct place_split *other)
{
    if (one->workers == 0 || other->workers == 0 ||
        (one->epoch == other->epoch && one->step == other->step))
        return TUNDISH_OK;
    return refuse(session, &(struct told_split){ one->epoch, one->step },
                  &(struct told_split){ other->epoch, other->step });
}

static struct link_key
split_key(const struct session *session, uint64_t part)
{
    return (struct link_key){ .topic = LINK_SPLIT, .stream = session->linked.stream, .part = part };
}

/* `bytes` NULL: nothing (any more). */
static void
tell(struct session *session, uint64_t part, const void *bytes, size_t byte_count)
{
    struct link_key key = split_key(session, part);
    const uint8_t nothing = 0;

    link_tally(session->linked.job, &key,
               &(struct link_tally){ .merge = LINK_KINDS,
                                     .is_running = true,
                                     .bytes = bytes == NULL ? &nothing : bytes,
                                     .byte_count = bytes == NULL ? 1 : byte_count });
}

void
session_split_begin_run(struct session *session)
{
    bool is_compared = session->linked.job != NULL && session->plan->policy == SHARD_DATA &&
                       start_barrier_depends_on_seed(session);

    session->linked.untold = !is_compared ? 0
                             : session->dealing.start.given
                                 ? 1
                                 : session->ring.capacity + session->ring.few + TAKEN_AHEAD_MAX;
}

void
session_split_tell_run(struct session *session)
{
    struct session_link *linked = &session->linked;
    const uint64_t root_seed = session->plan->options.root_seed;
    bool is_read;

    if (linked->untold == 0 || --linked->untold > 0)
        return;
    is_read = feed_has_trainers(session->feed);
    pthread_mutex_lock(&linked->lock);
    if (is_read) {
        linked->told_run = true;
        tell(session, SPLIT_RUN, &root_seed, sizeof root_seed);
    }
    pthread_mutex_unlock(&linked->lock);
}

/* Its trainers are gone, and others may go on with another run. */
static void
withdraw_run(struct session *session)
{
    struct session_link *linked = &session->linked;

    pthread_mutex_lock(&linked->lock);
    if (linked->told_run)
        tell(session, SPLIT_RUN, NULL, 0);
    linked->told_run = false;
    pthread_mutex_unlock(&linked->lock);
}

/* Each node deals its own rows, unless all deal one order. A node that begins at the beginning says
 * nothing: its trainers have no places, and want all rows. */
void
session_split_tell(struct session *session, bool is_read)
{
    const struct place_split *split = &session->dealing.start.split;
    struct told_split told = { split->epoch, split->step };
    bool tells = is_read && split->workers > 0 && (split->epoch > 0 || split->step > 0);

    if (session->linked.job == NULL || session->plan->policy != SHARD_DATA)
        return;
    if (!is_read)
        withdraw_run(session);
    if (!tells && !session->linked.told_split)
        return;
    session->linked.told_split = tells;
    tell(session, SPLIT_STEP, tells ? &told : NULL, sizeof told);
}

static tundish_status
compare(const struct session *session, struct byte_view bytes)
{
    struct told_split first, other;
    bool has_first = false;
    struct byte_view one;
    uint32_t rank;

    while (link_next_of_each(&bytes, &rank, &one)) {
        if (one.size != sizeof other)
            continue;
        memcpy(has_first ? &other : &first, one.data, sizeof other);
        if (has_first)
            return refuse(session, &first, &other);
        has_first = true;
    }
    return TUNDISH_OK;
}

static tundish_status
compare_runs(const struct session *session, struct byte_view bytes)
{
    uint32_t rank, first_rank = 0;
    uint64_t seed, first = 0;
    bool has_first = false;
    struct byte_view one;

    while (link_next_of_each(&bytes, &rank, &one)) {
        if (one.size != sizeof seed)
            continue;
        memcpy(&seed, one.data, sizeof seed);
        if (has_first && seed != first)
            return refuse_runs(session, first_rank, rank);
        first = seed;
        first_rank = rank;
        has_first = true;
    }
    return TUNDISH_OK;
}

void
session_split_hear(struct session *session, const struct link_key *key, struct byte_view bytes)
{
    tundish_status status =
        key->part == SPLIT_RUN ? compare_runs(session, bytes) : compare(session, bytes);

    if (status != TUNDISH_OK)
        session_fail(session, TUNDISH_E_PLACE, tnd_error_text(), false);
}

/* What was heard before the threads ran has failed no step, and may be past by now. */
tundish_status
session_split_agrees(const struct session *session)
{
    struct link_key key = split_key(session, SPLIT_STEP);
    struct link_total total = { 0 };
    tundish_status status = TUNDISH_OK;

    if (session->linked.job != NULL && link_find_total(session->linked.job, &key, &total))
        status = compare(session, (struct byte_view){ total.bytes, total.byte_count });
    free(total.bytes);
    return status;
}
