/* session_kept.c - one root seed for those that go on and those that begin. */
#include "session/nodes/session_kept.h"

#include <stdlib.h>
#include <string.h>

#include "core/log.h"
#include "session/session_private.h"

/* What a node tells, or one byte: it has no place. */
struct told_kept {
    uint64_t root_seed;
};

static tundish_status
refuse(const struct session *session, uint32_t one, uint32_t other)
{
    struct link *link = session->options.link;
    char first[160], second[160];

    link_name(link, one, first, sizeof first);
    link_name(link, other, second, sizeof second);
    return tnd_fail(TUNDISH_E_PLACE,
                    "stream '%s': the places that are kept on %s and on %s (--state) are of "
                    "different runs: let all nodes have folders of one run, or empty ones",
                    session->plan->stream->name, first, second);
}

/* The seed of all places. False: there is none. */
static tundish_status
find_seed(const struct session *session, struct byte_view told, struct told_kept *ret_kept,
          bool *ret_is_there)
{
    uint32_t rank, first_rank = 0;
    struct told_kept kept;
    struct byte_view one;

    *ret_is_there = false;
    while (link_next_of_each(&told, &rank, &one)) {
        if (one.size != sizeof kept)
            continue;
        memcpy(&kept, one.data, sizeof kept);
        if (*ret_is_there &&
            !start_barrier_is_same_run(session, ret_kept->root_seed, kept.root_seed))
            return refuse(session, first_rank, rank);
        if (!*ret_is_there) {
            *ret_kept = kept;
            first_rank = rank;
        }
        *ret_is_there = true;
    }
    return TUNDISH_OK;
}

static tundish_status
begin_beside(struct session *session, uint64_t root_seed)
{
    tnd_log(TND_LOG_WARNING, "state",
            "stream %s: other nodes go on at places that they have kept, and there is none in %s: "
            "this node's trainers get all rows of theirs from the beginning",
            session->plan->stream->name, session->options.state);
    return start_barrier_take_root_seed(session, root_seed);
}

tundish_status
session_kept_agree(struct session *session, bool is_there)
{
    const struct session_options *options = &session->options;
    struct link_key key = { .topic = LINK_KEPT, .stream = options->stream_number };
    struct told_kept own = { session->plan->options.root_seed }, kept = { 0 };
    struct link_total total;
    bool any_is_there = false;
    tundish_status status;

    if (options->link == NULL || link_size(options->link) == 1)
        return TUNDISH_OK;
    status = link_tally_all(options->link, &key,
                            &(struct link_tally){ .merge = LINK_KINDS,
                                                  .bytes = (const uint8_t *)&own,
                                                  .byte_count = is_there ? sizeof own : 1 },
                            -1, options->stop, &total);
    if (status != TUNDISH_OK)
        return tnd_fail_while(status, "comparing kept places with those of the other nodes");
    status = find_seed(session, (struct byte_view){ total.bytes, total.byte_count }, &kept,
                       &any_is_there);
    free(total.bytes);
    if (status == TUNDISH_OK && any_is_there && !is_there)
        status = begin_beside(session, kept.root_seed);
    return status;
}
