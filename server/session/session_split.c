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

/* A node's value. */
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
split_key(const struct session *session)
{
    return (struct link_key){ .topic = LINK_SPLIT, .stream = session->linked.stream };
}

/* Each node deals its own rows, unless all deal one order. A node that begins at the beginning says
 * nothing: its trainers have no places, and want all rows. */
void
session_split_tell(struct session *session, bool is_read)
{
    const struct place_split *split = &session->dealing.start.split;
    struct told_split told = { split->epoch, split->step };
    struct link_key key = split_key(session);
    bool tells = is_read && split->workers > 0 && (split->epoch > 0 || split->step > 0);

    must_hold(&session->control.lock);
    if (session->linked.link == NULL || session->plan->policy != SHARD_DATA ||
        (!tells && !session->linked.told_split))
        return;
    session->linked.told_split = tells;
    link_tally(session->linked.link, &key,
               &(struct link_tally){ .merge = LINK_KINDS,
                                     .is_running = true,
                                     .bytes = (const uint8_t *)&told,
                                     .byte_count = tells ? sizeof told : 1 });
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

void
session_split_hear(struct session *session, struct byte_view bytes)
{
    if (compare(session, bytes) != TUNDISH_OK)
        ring_fail(session, TUNDISH_E_PLACE, tnd_error_text(), false);
}

/* A difference that was found before the threads ran has failed no step, and may be past by now. */
tundish_status
session_split_agrees(const struct session *session)
{
    struct link_key key = split_key(session);
    struct link_total total = { 0 };
    tundish_status status = TUNDISH_OK;

    must_in_debug(session->linked.link != NULL);
    if (link_find_total(session->linked.link, &key, &total))
        status = compare(session, (struct byte_view){ total.bytes, total.byte_count });
    free(total.bytes);
    return status;
}
