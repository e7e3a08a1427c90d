/* session_replay.c - tell where this node begins, and deal the epochs that others are still in. */
#include "session/nodes/session_replay.h"

#include <stdlib.h>
#include <string.h>

#include "core/log.h"
#include "core/memory.h"
#include "core/must.h"
#include "session/nodes/session_cut.h"
#include "session/nodes/session_level.h"
#include "session/session_private.h"

/* Those of session_level.h are counted from 1. */
static const uint64_t AT_BEGINNING = 0;

/* A start may be moved until its replay is over. Once all nodes have told theirs the total stands:
 * none hears a later one, and all replay from the same place. */
void
session_replay_tell(struct session *session, const struct start *start)
{
    struct session_link *linked = &session->linked;
    bool at_place = start != NULL && start->given;
    uint8_t header[PLACE_BYTES_MAX], *bytes;
    struct tnd_place place = { .header = header };
    struct place contents;

    must_hold(&session->control.lock);
    if (!session_link_needs_all(session) || (linked->told_start && (!at_place || linked->is_level)))
        return;
    /* A node that begins without a place deals all epochs anyhow. One whose start is known before
     * it tells has told it in a session of this name that was closed, and has come so far since. */
    linked->is_level =
        !at_place || (!linked->told_start && session_level_is_known(session, AT_BEGINNING));
    linked->told_start = true;
    place_ready(session->plan, &session->place_files, &contents);
    if (at_place) {
        place.epoch = start->epoch;
        place.step = start->step;
        place.header_epoch = start->place_epoch;
        contents.state_count = (uint32_t)start->state_count;
        memcpy(contents.state, start->state, start->state_count * sizeof *start->state);
    } else if (dealer_state_words(session->dealer) <= PLACE_STATE_MAX) {
        contents.state_count = (uint32_t)dealer_state_words(session->dealer);
    }
    must_in_debug(contents.state_count <= PLACE_STATE_MAX);
    place_write(&contents, header);
    place.header_bytes = place_bytes(&contents);
    bytes = tnd_alloc(tnd_place_bytes(&place));
    tnd_place_write(&place, bytes);
    /* It can only fail on bytes that are not a place. */
    (void)session_level_tell_place(session, AT_BEGINNING,
                                   (struct byte_view){ bytes, tnd_place_bytes(&place) });
    free(bytes);
}

/* Those that begin without places have drawn a root seed, which decides their order. */
static tundish_status
check_run(const struct session *session, const struct place *lowest)
{
    if (start_barrier_is_same_run(session, lowest->root_seed, session->plan->options.root_seed))
        return TUNDISH_OK;
    return tnd_fail(TUNDISH_E_PLACE,
                    "the trainers of stream '%s' on other nodes go on with another run of it, or "
                    "have no places: let all go on with places of one run, or none",
                    session->plan->stream->name);
}

/* Nothing of the epoch is needed here: if the trainers of the other nodes ask for the next one,
 * this node does too. */
static tundish_status
replay_epoch(struct session *session, uint64_t epoch)
{
    enum job_step step = JOB_STEP_ROWS;
    struct place place;
    uint64_t number;
    tundish_status status = session_link_start_epoch(session, epoch, 0);
    bool cut = false;

    if (status == TUNDISH_OK)
        status = session_epoch_place(session, epoch, &place);
    for (number = 0; status == TUNDISH_OK && step != JOB_STEP_END; number++) {
        struct deal_round round = { 0 };

        if (atomic_load(&session->stop) != 0)
            return tnd_fail(TUNDISH_E_TIMEOUT, "the session is being stopped");
        status = session_cut(session, number, &cut);
        if (status != TUNDISH_OK || cut)
            break;
        status = dealer_next(session->dealer, &round);
        if (status == TUNDISH_OK)
            status = session_link_step(session, number, round.present_count, &step);
        dealer_release_round(&round);
    }
    return status == TUNDISH_OK ? session_link_end_epoch(session, 0) : status;
}

static tundish_status
replay_from(struct session *session, uint64_t from, const struct place *lowest)
{
    const uint64_t *words = lowest->state;
    size_t word_count = lowest->state_count;
    uint64_t until = session->dealing.start.epoch;
    tundish_status status;

    tnd_log(TND_LOG_NOTICE, "resume",
            "stream %s: trainers of other nodes are in epoch %llu still, so the epochs before %llu "
            "are dealt with them again, and not published here",
            session->plan->stream->name, (unsigned long long)from, (unsigned long long)until);
    place_own_state(session->plan, dealer_state_words(session->dealer), &words, &word_count);
    must_in_debug(from < until && !session->linked.replays);
    session->linked.replays = true;
    status = dealer_resume(session->dealer, from, 0, words, word_count);
    for (uint64_t epoch = from; status == TUNDISH_OK && epoch < until; epoch++) {
        status = replay_epoch(session, epoch);
        if (status == TUNDISH_OK && epoch + 1 < until)
            status = dealer_start_epoch(session->dealer);
    }
    session->linked.replays = false;
    return status;
}

/* From the lowest place, unless the nodes have all come to the start's epoch. */
static tundish_status
replay(struct session *session, const struct tnd_place *lowest)
{
    const struct start *start = &session->dealing.start;
    struct place contents;
    tundish_status status = place_read(lowest->header, lowest->header_bytes, &contents);

    if (status == TUNDISH_OK)
        status = place_check(&contents, session->plan, &session->place_files);
    if (status == TUNDISH_OK)
        status = check_run(session, &contents);
    if (status == TUNDISH_OK && start->epoch < lowest->header_epoch)
        return tnd_fail(
            TUNDISH_E_PLACE,
            "the trainers of all nodes have begun at epoch %llu of stream '%s' or later, "
            "and cannot go back to epoch %llu for one node",
            (unsigned long long)lowest->header_epoch, session->plan->stream->name,
            (unsigned long long)start->epoch);
    if (status == TUNDISH_OK && lowest->header_epoch < start->epoch)
        status = replay_from(session, lowest->header_epoch, &contents);
    return status;
}

tundish_status
session_replay(struct session *session)
{
    struct session_standing lowest = { 0 };
    tundish_status status;

    if (!session->dealing.start.given || !session_link_needs_all(session) ||
        session->linked.is_level)
        return TUNDISH_OK;
    status = session_level_find(session, AT_BEGINNING, &session->stop, &lowest);
    if (status == TUNDISH_OK)
        status = replay(session, &lowest.place);
    session->linked.is_level = status == TUNDISH_OK;
    free(lowest.bytes);
    return status;
}
