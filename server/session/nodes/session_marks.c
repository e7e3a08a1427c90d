/* session_marks.c - one order on all nodes, or an error that names the steps. */
#include "session/nodes/session_marks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/hash_farm.h"
#include "core/log.h"
#include "core/must.h"
#include "session/session_private.h"
#include "source/source.h"

enum { TEXT_BYTES = 1024, MARKS_KEPT = 64 };

/* A node's value under LINK_ORDER. Only marks of the same `variant` are compared. A resumed stream
 * starts its hash again, another seed gives another order, and references to rows differ where
 * one node has to make its own cache, or has entered other files (digest.h). */
struct link_mark {
    uint64_t passed, hash, variant;
};

static const uint64_t UNCOMPARED = 0;

/* Marks of an epoch are counted from 1; this is the one of its end. */
static const uint64_t END_MARK = UINT64_MAX;

static struct link_mark
mark_of(const struct session *session, uint64_t passed, uint64_t hash)
{
    const struct order_digest *digest = dealer_digest(session->dealer);
    uint64_t numbers[] = { digest->from, digest->numbering, session->plan->options.root_seed };

    /* Odd, so that it is never UNCOMPARED. */
    return (struct link_mark){ passed, hash, tnd_hash_farm(numbers, sizeof numbers) | 1 };
}

static bool
mark_differs(const struct link_mark *a, const struct link_mark *b)
{
    return a->variant == b->variant && a->variant != UNCOMPARED &&
           (a->passed != b->passed || a->hash != b->hash);
}

/* A mark in a total, and the lowest rank that gave it. */
struct told_mark {
    struct link_mark mark;
    uint32_t rank;
};

static bool
next_mark(struct byte_view *rest, struct told_mark *ret_told)
{
    struct byte_view bytes;

    while (link_next_of_each(rest, &ret_told->rank, &bytes))
        if (bytes.size == sizeof ret_told->mark) {
            memcpy(&ret_told->mark, bytes.data, sizeof ret_told->mark);
            return true;
        }
    return false;
}

static bool
is_lower(const struct told_mark *one, const struct told_mark *other, const struct told_mark two[2])
{
    return one->rank < two[0].rank || (one->rank == two[0].rank && other->rank < two[1].rank);
}

/* Two that differ, of the lowest ranks, so that all nodes say the same. */
static bool
find_difference(struct byte_view marks, struct told_mark ret_two[2])
{
    struct told_mark two[2] = { { .rank = UINT32_MAX }, { .rank = UINT32_MAX } }, one, other;
    struct byte_view rest = marks;

    while (next_mark(&rest, &one)) {
        struct byte_view others = marks;

        while (next_mark(&others, &other))
            if (one.rank < other.rank && mark_differs(&one.mark, &other.mark) &&
                is_lower(&one, &other, two)) {
                two[0] = one;
                two[1] = other;
            }
    }
    if (two[0].rank == UINT32_MAX)
        return false;
    memcpy(ret_two, two, sizeof two);
    return true;
}

/* True: two nodes have dealt other rows, and the text says which. */
static bool
say_difference(const struct session *session, uint64_t epoch, struct byte_view marks,
               char text[TEXT_BYTES])
{
    uint64_t slices = (uint64_t)session->plan->options.worker_count * session->plan->replicas;
    char first[160], other[160];
    struct told_mark two[2];
    uint64_t passed, last;

    if (!find_difference(marks, two))
        return false;
    passed = two[0].mark.passed < two[1].mark.passed ? two[0].mark.passed : two[1].mark.passed;
    last = passed > slices ? (passed - 1) / slices : 0;
    link_name(session->linked.link, two[0].rank, first, sizeof first);
    link_name(session->linked.link, two[1].rank, other, sizeof other);
    snprintf(text, TEXT_BYTES,
             "the rows of epoch %llu differ, or come in another order, on %s and %s, from a step "
             "between %llu and %llu on: their files differ, a program does not write the same rows "
             "on all nodes, or a setting that decides the order differs",
             (unsigned long long)epoch, first, other,
             (unsigned long long)(last / SESSION_MARK_STEPS * SESSION_MARK_STEPS),
             (unsigned long long)last);
    return true;
}

static bool
is_told_by_files(const struct plan_graph *graph)
{
    for (uint32_t i = 0; i < graph->node_count; i++) {
        const struct plan_node *node = graph->nodes[i];

        if ((node->source != NULL && node->source->tells_content) || plan_is_cache_in_file(node) ||
            (node->body != NULL && !is_told_by_files(node->body)))
            return false;
    }
    return true;
}

bool
session_marks_end_waits(const struct session *session)
{
    return !is_told_by_files(session->plan->graph);
}

static struct link_key
mark_key(const struct session *session, uint64_t number)
{
    struct link_key key = session_link_key(session, LINK_ORDER, session->linked.epoch);

    key.part ^= number;
    return key;
}

static void
tally_mark(struct session *session, uint64_t number, const struct link_mark *mark)
{
    struct link_key key = mark_key(session, number);

    must_in_debug(session->linked.link != NULL);
    link_tally(session->linked.link, &key,
               &(struct link_tally){ .merge = LINK_KINDS,
                                     .bytes = (const uint8_t *)mark,
                                     .byte_count = sizeof *mark });
}

static void
forget_mark(struct session *session, uint64_t number)
{
    struct link_key key = mark_key(session, number);

    link_forget(session->linked.link, &key);
}

void
session_marks_post(struct session *session)
{
    struct session_link *linked = &session->linked;
    const struct order_digest *digest = dealer_digest(session->dealer);
    struct link_mark mark =
        mark_of(session, digest->mark_count * digest->interval, digest->mark_hash);

    must_in_debug(digest->mark_count >= linked->marks_posted);
    if (digest->mark_count == linked->marks_posted)
        return;
    linked->marks_posted = digest->mark_count;
    tally_mark(session, digest->mark_count, &mark);
    /* A total is forgotten when it has been heard. One that never comes, since some node resumed
     * after that mark, is forgotten here. */
    if (digest->mark_count > MARKS_KEPT)
        forget_mark(session, digest->mark_count - MARKS_KEPT);
}

/* Each node comes to the same conclusion, so that each has the error at the same step. */
static tundish_status
compare_ends(struct session *session)
{
    struct link_key key = mark_key(session, END_MARK);
    char text[TEXT_BYTES];
    struct link_total total;
    tundish_status status =
        link_wait_for_total(session->linked.link, &key, -1, &session->stop, &total);

    if (status != TUNDISH_OK)
        return status;
    if (say_difference(session, session->linked.epoch,
                       (struct byte_view){ total.bytes, total.byte_count }, text))
        status = tnd_fail(TUNDISH_E_DATA, "%s", text);
    free(total.bytes);
    return status;
}

void
session_marks_forget(struct session *session, uint64_t epoch)
{
    struct link_key key = session_link_key(session, LINK_ORDER, epoch);

    key.part ^= END_MARK;
    link_forget(session->linked.link, &key);
}

/* In an epoch that was cut short, nodes may have seen different numbers of rows, so their marks are
 * not compared. */
tundish_status
session_marks_end(struct session *session)
{
    const struct order_digest *digest = dealer_digest(session->dealer);
    struct link_mark mark = mark_of(session, digest->passed, digest->hash + digest->whole);

    if (!digest->is_over)
        mark.variant = UNCOMPARED;
    tally_mark(session, END_MARK, &mark);
    return digest->is_over && session_marks_end_waits(session) ? compare_ends(session) : TUNDISH_OK;
}

/* If the whole stream is published already, tell the trainers that have not taken it all. */
static void
tell_late(struct session *session, const char *text)
{
    if (!ring_has_ended(session))
        return;
    tnd_log(TND_LOG_ERROR, "stream", "%s: %s", session->plan->stream->name, text);
    feed_tell_lost(session->feed, NULL, text);
}

void
session_marks_hear(struct session *session, const struct link_key *key, struct byte_view bytes)
{
    struct link_key end = session_link_key(session, LINK_ORDER, key->epoch);
    char text[TEXT_BYTES];

    end.part ^= END_MARK; /* which the dealing thread may wait for */
    if (key->part != end.part)
        link_forget(session->linked.link, key);
    if (!say_difference(session, key->epoch, bytes, text))
        return;
    tell_late(session, text);
    ring_fail(session, TUNDISH_E_DATA, text, true);
}
