/* session_cut.c - all nodes agree that an epoch is left, and before which step. */
#include "session/nodes/session_cut.h"

#include <stdlib.h>
#include <string.h>

#include "order/planning.h"
#include "session/session_private.h"

enum restart_part { LEFT, STEP };

/* What a node gives under LEFT. Of the state that the first epoch began with as many words as there
 * are; none, if nothing says it. */
struct told_left {
    uint64_t left, first;
    uint64_t state[PLACE_STATE_MAX];
};

enum { TOLD_BYTES_MIN = 16 };

static struct link_key
restart_key(const struct session *session, enum restart_part part, uint64_t epoch)
{
    return (struct link_key){
        .topic = LINK_RESTART,
        .stream = session->linked.stream,
        .epoch = epoch,
        .part = part,
    };
}

/* What the nodes gave, one after the other. */
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

    pthread_mutex_lock(&linked->lock);
    first = linked->first;
    pthread_mutex_unlock(&linked->lock);
    if (left > 0 && left <= first)
        tell_step(session, left - 1, 0);
}

void
session_cut_hear(struct session *session, const struct link_key *key)
{
    if (key->part == LEFT)
        answer_cut(session);
}

static void
tell_left(struct session *session)
{
    const struct session_link *linked = &session->linked;
    size_t state_bytes = linked->first_words * sizeof *session->dealing.start.state;
    struct link_key key = restart_key(session, LEFT, 0);
    struct told_left told = { .left = linked->left, .first = linked->first };

    memcpy(told.state, session->dealing.start.state, state_bytes);
    link_tally(linked->link, &key,
               &(struct link_tally){ .merge = LINK_KINDS,
                                     .is_running = true,
                                     .bytes = (const uint8_t *)&told,
                                     .byte_count = TOLD_BYTES_MIN + state_bytes });
}

void
session_cut_begin(struct session *session, uint64_t epoch)
{
    struct session_link *linked = &session->linked;
    const struct start *start = &session->dealing.start;
    bool is_known = start->given && start->place_epoch == epoch;

    if (linked->link == NULL)
        return;
    pthread_mutex_lock(&linked->lock);
    linked->first = epoch;
    pthread_mutex_unlock(&linked->lock);
    linked->left = epoch;
    linked->first_words = is_known && session->plan->policy == SHARD_DATA ? start->state_count : 0;
    tell_left(session);
    answer_cut(session); /* what was heard before was compared with another beginning */
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
    if (linked->link == NULL)
        return TUNDISH_OK;
    if (linked->left <= linked->epoch) {
        linked->left = linked->epoch + 1;
        tell_left(session);
    }
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
    struct link_key key = restart_key(session, LEFT, 0);
    bool was_cut = linked->link != NULL && linked->cut_step != UINT64_MAX;
    const uint64_t *own;
    size_t count = dealer_epoch_state(session->dealer, &own), words = 0;
    struct link_total total = { 0 };
    struct told_left told;
    struct byte_view rest;
    bool differs = false;

    if (!was_cut || !link_find_total(linked->link, &key, &total))
        return TUNDISH_OK;
    rest = (struct byte_view){ total.bytes, total.byte_count };
    while (!differs && next_told(&rest, &told, &words))
        differs = told.first == epoch && words == count &&
                  memcmp(told.state, own, count * sizeof *own) != 0;
    free(total.bytes);
    return differs ? dealer_resume(session->dealer, epoch, 0, told.state, words) : TUNDISH_OK;
}
