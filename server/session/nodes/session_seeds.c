/* session_seeds.c - tell and compare root seeds. */
#include "session/nodes/session_seeds.h"

#include <stdlib.h>
#include <string.h>

#include "core/log.h"
#include "session/session_private.h"

/* In `part` of keys. */
enum { OF_KEPT_PLACES, OF_TRAINERS };

/* tundish_cuda.h's depth may be so large; other readers take nothing that is not asked for. */
enum { TAKEN_AHEAD_MAX = 64 };

static struct link_key
seed_key(const struct session *session, uint64_t part)
{
    return (struct link_key){ .topic = LINK_SEEDS, .stream = session->linked.stream, .part = part };
}

static tundish_status
refuse(const struct session *session, uint32_t one, uint32_t other)
{
    char first[160], second[160];

    link_name(session->linked.job, one, first, sizeof first);
    link_name(session->linked.job, other, second, sizeof second);
    return tnd_fail(TUNDISH_E_PLACE,
                    "stream '%s' would go on in different runs on %s and on %s, in which its rows "
                    "have different orders: let the trainers of all nodes go on with places of one "
                    "run, or none (--state: with folders of one run, or empty ones)",
                    session->plan->stream->name, first, second);
}

/* The seed that was told. A node that tells none gives one byte. */
static tundish_status
find_seed(const struct session *session, struct byte_view told, uint64_t *ret_seed,
          bool *ret_is_told)
{
    uint32_t rank, first_rank = 0;
    uint64_t seed, first = 0;
    bool is_told = false;
    struct byte_view one;

    while (link_next_of_each(&told, &rank, &one)) {
        if (one.size != sizeof seed)
            continue;
        memcpy(&seed, one.data, sizeof seed);
        if (is_told && !start_barrier_is_same_run(session, first, seed))
            return refuse(session, first_rank, rank);
        first = seed;
        first_rank = rank;
        is_told = true;
    }
    *ret_seed = first;
    *ret_is_told = is_told;
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
session_seeds_agree(struct session *session, bool is_kept)
{
    struct link_key key = seed_key(session, OF_KEPT_PLACES);
    uint64_t root_seed = session->plan->options.root_seed;
    struct link_total total;
    bool any_is_kept = false;
    tundish_status status;

    if (session->linked.job == NULL)
        return TUNDISH_OK;
    status = link_tally_all(session->linked.job, &key,
                            &(struct link_tally){ .merge = LINK_KINDS,
                                                  .bytes = (const uint8_t *)&root_seed,
                                                  .byte_count = is_kept ? sizeof root_seed : 1 },
                            -1, session->options.stop, &total);
    if (status != TUNDISH_OK)
        return tnd_fail_while(status, "comparing kept places with those of the other nodes");
    status = find_seed(session, (struct byte_view){ total.bytes, total.byte_count }, &root_seed,
                       &any_is_kept);
    free(total.bytes);
    if (status == TUNDISH_OK && any_is_kept && !is_kept)
        status = begin_beside(session, root_seed);
    return status;
}

void
session_seeds_begin(struct session *session)
{
    uint64_t ahead = ring_steps_ahead(&session->ring) + TAKEN_AHEAD_MAX;
    bool is_compared =
        session->plan->policy == SHARD_DATA && start_barrier_depends_on_seed(session);
    bool is_brought = session->dealing.start.given && !session->control.restored;

    session->linked.untold = !is_compared ? 0 : is_brought ? 1 : ahead;
}

static void
tell(struct session *session, bool is_told)
{
    struct link_key key = seed_key(session, OF_TRAINERS);
    uint64_t root_seed = session->plan->options.root_seed;

    must_hold(&session->linked.lock);
    link_tally(session->linked.job, &key,
               &(struct link_tally){ .merge = LINK_KINDS,
                                     .is_running = true,
                                     .bytes = (const uint8_t *)&root_seed,
                                     .byte_count = is_told ? sizeof root_seed : 1 });
    session->linked.told_seed = is_told;
}

void
session_seeds_tell(struct session *session)
{
    struct session_link *linked = &session->linked;

    if (linked->untold == 0 || --linked->untold > 0 || !feed_has_trainers(session->feed))
        return;
    tnd_lock_take(&linked->lock);
    tell(session, true);
    tnd_lock_release(&linked->lock);
}

void
session_seeds_withdraw(struct session *session)
{
    struct session_link *linked = &session->linked;

    must_hold(&session->control.lock);
    tnd_lock_take(&linked->lock);
    if (linked->told_seed)
        tell(session, false);
    tnd_lock_release(&linked->lock);
}

void
session_seeds_hear(struct session *session, struct byte_view bytes)
{
    uint64_t seed;
    bool is_told;

    if (find_seed(session, bytes, &seed, &is_told) != TUNDISH_OK)
        ring_fail(session, TUNDISH_E_PLACE, tnd_error_text(), false);
}
