/* session_cut.c - all nodes agree that an epoch is left, and before which step. */
#include "session/nodes/session_cut.h"

#include <stdlib.h>
#include <string.h>

#include "core/must.h"
#include "order/planning.h"
#include "session/session_private.h"

enum restart_part { LEFT, STEP };

/* A node's value under LEFT, followed by the words of the state with which its first epoch began.
 * No words: the state is not known. */
struct told_left {
    uint64_t left, first;
    uint64_t is_read; /* its trainers are there, and began where this says */
    uint64_t state[PLACE_STATE_MAX];
};

enum { TOLD_BYTES_MIN = 24 };

static struct link_key
restart_key(const struct session *session, enum restart_part part, uint64_t epoch)
{
    return (struct link_key){
        .topic = LINK_RESTART,
        .stream = session->linked.stream,
        .epoch = epoch,
        .part = part | atomic_load(&session->linked.restart) << RESTART_SHIFT,
    };
}

/* Read the values of the nodes, one after the other. */
static bool
next_told(struct byte_view *rest, struct told_left *ret_told, size_t *ret_words)
{
    struct byte_view bytes;
    uint32_t rank;

    while (link_next_of_each(rest, &rank, &bytes)) {
        if (bytes.size < TOLD_BYTES_MIN || bytes.size > sizeof *ret_told)
            continue;
        memcpy(ret_told, bytes.data, bytes.size);
        *ret_words = (bytes.size - TOLD_BYTES_MIN) / sizeof *ret_told->state;
        return true;
    }
    return false;
}

/* How many epochs all nodes have left, or want to; 0 also if some have not begun. */
static uint64_t
left_by_all(struct session *session)
{
    struct link_key key = restart_key(session, LEFT, 0);
    uint64_t lowest = UINT64_MAX;
    struct link_total total;
    struct told_left told;
    struct byte_view rest;
    size_t words;

    must_in_debug(session->linked.link != NULL);
    if (!link_find_total(session->linked.link, &key, &total))
        return 0;
    rest = (struct byte_view){ total.bytes, total.byte_count };
    while (next_told(&rest, &told, &words))
        lowest = told.left < lowest ? told.left : lowest;
    free(total.bytes);
    return total.nodes == link_size(session->linked.link) ? lowest : 0;
}

static void
tell_step(struct session *session, uint64_t epoch, uint64_t number)
{
    struct link_key key = restart_key(session, STEP, epoch);

    session_link_tell_number(session, &key, LINK_HIGHEST, number);
}

/* Those that cut an epoch wait for the steps of all. */
static void
answer_cut(struct session *session)
{
    struct session_link *linked = &session->linked;
    uint64_t left = left_by_all(session), first;

    tnd_lock_take(&linked->lock);
    first = linked->first;
    tnd_lock_release(&linked->lock);
    if (left > 0 && left <= first)
        tell_step(session, left - 1, 0);
}

void
session_cut_hear(struct session *session, const struct link_key *key)
{
    if ((uint32_t)key->part == LEFT)
        answer_cut(session);
}

/* The lock is held. */
static void
tell_left(struct session *session)
{
    const struct session_link *linked = &session->linked;
    size_t state_bytes = linked->first_words * sizeof *linked->first_state;
    struct link_key key = restart_key(session, LEFT, 0);
    struct told_left told = {
        .left = linked->left,
        .first = linked->first,
        .is_read = linked->is_read,
    };

    must_hold(&session->linked.lock);
    must_in_debug(linked->first_words <= PLACE_STATE_MAX);
    memcpy(told.state, linked->first_state, state_bytes);
    link_tally(linked->link, &key,
               &(struct link_tally){ .merge = LINK_KINDS,
                                     .is_running = true,
                                     .bytes = (const uint8_t *)&told,
                                     .byte_count = TOLD_BYTES_MIN + state_bytes });
}

static void
leave(struct session *session, uint64_t epochs)
{
    tnd_lock_take(&session->linked.lock);
    session->linked.left = epochs;
    tell_left(session);
    tnd_lock_release(&session->linked.lock);
}

/* Rows that all nodes share, from an epoch on whose state the place does not say. */
static bool
is_unsure(const struct session *session, uint64_t epoch)
{
    const struct start *start = &session->dealing.start;

    return start->given && start->place_epoch < epoch && session->plan->policy == SHARD_DATA &&
           dealer_state_words(session->dealer) > 0;
}

void
session_cut_begin(struct session *session, uint64_t epoch)
{
    struct session_link *linked = &session->linked;
    const struct start *start = &session->dealing.start;
    bool is_known =
        start->given && start->place_epoch == epoch && session->plan->policy == SHARD_DATA;

    tnd_lock_take(&linked->lock);
    linked->first = epoch;
    linked->has_begun = true;
    linked->first_words = is_known ? start->state_count : 0;
    memcpy(linked->first_state, start->state, linked->first_words * sizeof *start->state);
    /* Those that come to this epoch wait until its state is told. */
    linked->left = is_unsure(session, epoch) ? start->place_epoch : epoch;
    tell_left(session);
    tnd_lock_release(&linked->lock);
    answer_cut(session); /* what was heard before was compared with another beginning */
}

void
session_cut_tell_read(struct session *session, bool is_read)
{
    struct session_link *linked = &session->linked;

    if (linked->link == NULL)
        return;
    tnd_lock_take(&linked->lock);
    if (linked->is_read != is_read) {
        linked->is_read = is_read;
        if (linked->has_begun)
            tell_left(session);
    }
    tnd_lock_release(&linked->lock);
}

void
session_cut_stop(struct session *session)
{
    session_cut_tell_read(session, false);
    tnd_lock_take(&session->linked.lock);
    session->linked.has_begun = false;
    tnd_lock_release(&session->linked.lock);
}

/* The trainers of all nodes are there: where does each begin? */
static bool
are_all_read(struct link *link, void *context)
{
    struct session *session = context;
    struct link_key key = restart_key(session, LEFT, 0);
    struct link_total total;
    struct told_left told;
    struct byte_view rest;
    bool all;
    size_t words;

    if (!link_find_total(link, &key, &total))
        return false;
    all = total.nodes == link_size(link);
    rest = (struct byte_view){ total.bytes, total.byte_count };
    while (next_told(&rest, &told, &words))
        all = all && told.is_read != 0;
    free(total.bytes);
    return all;
}

/* The state of an epoch as others have told it; false: none has, or it is as here. */
static bool
find_other_state(struct session *session, uint64_t epoch, struct told_left *ret_told,
                 size_t own_count, const uint64_t *own)
{
    struct link_key key = restart_key(session, LEFT, 0);
    struct link_total total;
    struct byte_view rest;
    bool differs = false;
    size_t words;

    must_in_debug(session->linked.link != NULL);
    if (!link_find_total(session->linked.link, &key, &total))
        return false;
    rest = (struct byte_view){ total.bytes, total.byte_count };
    while (!differs && next_told(&rest, ret_told, &words))
        differs = ret_told->first == epoch && words == own_count &&
                  (own == NULL || memcmp(ret_told->state, own, own_count * sizeof *own) != 0);
    free(total.bytes);
    return differs;
}

tundish_status
session_cut_learn(struct session *session, uint64_t epoch)
{
    struct start *start = &session->dealing.start;
    size_t count = dealer_state_words(session->dealer);
    struct told_left told;
    tundish_status status;

    if (!is_unsure(session, epoch))
        return TUNDISH_OK;
    status = link_wait(session->linked.link, are_all_read, session, -1, &session->stop);
    if (status != TUNDISH_OK || !find_other_state(session, epoch, &told, count, NULL))
        return status;
    start->place_epoch = epoch;
    must_in_debug(count <= PLACE_STATE_MAX);
    start->state_count = count;
    memcpy(start->state, told.state, count * sizeof *start->state);
    return TUNDISH_OK;
}

void
session_cut_tell_state(struct session *session, uint64_t epoch)
{
    struct session_link *linked = &session->linked;
    const uint64_t *state;
    size_t count = dealer_epoch_state(session->dealer, &state);

    if (linked->left >= epoch || count > PLACE_STATE_MAX)
        return;
    tnd_lock_take(&linked->lock);
    linked->left = epoch;
    linked->first_words = count;
    memcpy(linked->first_state, state, count * sizeof *state);
    tell_left(session);
    tnd_lock_release(&linked->lock);
    answer_cut(session);
}

bool
session_cut_is_due(struct session *session)
{
    const struct session_link *linked = &session->linked;

    return linked->left > linked->epoch && linked->cut_step == UINT64_MAX &&
           left_by_all(session) > linked->epoch;
}

tundish_status
session_cut(struct session *session, uint64_t number, bool *ret_cut)
{
    struct session_link *linked = &session->linked;
    struct link_key key = restart_key(session, STEP, linked->epoch);
    tundish_status status;

    *ret_cut = true;
    if (linked->left <= linked->epoch)
        leave(session, linked->epoch + 1);
    if (linked->cut_step == UINT64_MAX && !session_cut_is_due(session)) {
        bool has_end = !order_is_endless(session->plan->graph->root);

        *ret_cut = false;
        return has_end ? TUNDISH_OK : link_check_all(linked->link);
    }
    if (linked->cut_step == UINT64_MAX) {
        tell_step(session, linked->epoch, linked->replays ? 0 : number);
        status = session_link_wait_for_number(session, &key, &linked->cut_step);
        if (status != TUNDISH_OK)
            return status;
    }
    *ret_cut = linked->replays || number >= linked->cut_step;
    return TUNDISH_OK;
}

void
session_cut_tell_end(struct session *session, uint64_t number)
{
    tell_step(session, session->linked.epoch, number);
}

tundish_status
session_cut_follow(struct session *session, uint64_t epoch)
{
    struct session_link *linked = &session->linked;
    bool was_cut = linked->cut_step != UINT64_MAX;
    const uint64_t *own;
    size_t count = dealer_epoch_state(session->dealer, &own);
    struct told_left told;

    return was_cut && find_other_state(session, epoch, &told, count, own)
               ? dealer_resume(session->dealer, epoch, 0, told.state, count)
               : TUNDISH_OK;
}
