/* session_marks.c - one order on all nodes, or an error that names the steps. */
#include "session/nodes/session_marks.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/hash_farm.h"
#include "core/log.h"
#include "session/session_private.h"
#include "source/source.h"

enum { TEXT_BYTES = 1024, MARKS_KEPT = 16 };

/* Posted as LINK_ORDER. Only marks of the same `variant` are compared. A resumed stream starts its
 * hash again, another seed gives another order, and references into caches differ where one node
 * has to make its own. */
struct link_mark {
    uint64_t passed, hash, variant;
};

static const uint64_t UNCOMPARED = 0;

/* Posted as LINK_RESTART: the epoch's last step, and all of it. */
struct link_end {
    uint64_t step;
    struct link_mark mark;
};

static struct link_mark
mark_of(const struct session *session, uint64_t passed, uint64_t hash)
{
    const struct order_digest *digest = dealer_digest(session->dealer);
    uint64_t numbers[] = { digest->from, digest->caches, session->plan->options.root_seed };

    /* Odd, so that it is never UNCOMPARED. */
    return (struct link_mark){ passed, hash, tnd_hash_farm(numbers, sizeof numbers) | 1 };
}

static void
say_difference(const struct session *session, const char *who, uint64_t epoch,
               const struct link_mark *own, char text[TEXT_BYTES])
{
    uint64_t slices = (uint64_t)session->plan->options.worker_count * session->plan->replicas;
    uint64_t last = own->passed > slices ? (own->passed - 1) / slices : 0;

    snprintf(text, TEXT_BYTES,
             "the rows of epoch %llu differ, or come in another order here than on %s, from a step "
             "between %llu and %llu on: their files differ, a program does not write the same rows "
             "on all nodes, or a setting that decides the order differs",
             (unsigned long long)epoch, who,
             (unsigned long long)(last / SESSION_MARK_STEPS * SESSION_MARK_STEPS),
             (unsigned long long)last);
}

static bool
mark_differs(const struct link_mark *own, const struct link_mark *other)
{
    return other->variant == own->variant && own->variant != UNCOMPARED &&
           (other->passed != own->passed || other->hash != own->hash);
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

static struct link_key
end_key(const struct session *session)
{
    return session_link_restart_key(session, LINK_RESTART_STEP);
}

/* Every node compares for itself, so that each has the error at the same step. */
static tundish_status
compare_ends(struct session *session, const struct link_mark *own)
{
    struct session_link *linked = &session->linked;
    struct link_key key = end_key(session);
    tundish_status status = link_wait_for_all(linked->link, &key, -1, &session->stop);

    for (uint32_t rank = 0; status == TUNDISH_OK && rank < link_size(linked->link); rank++) {
        char who[160], text[TEXT_BYTES];
        struct link_end other = { 0 };
        size_t byte_count = 0;
        uint8_t *bytes = NULL;

        if (link_find(linked->link, &key, rank, &bytes, &byte_count) && byte_count == sizeof other)
            memcpy(&other, bytes, sizeof other);
        free(bytes);
        if (mark_differs(own, &other.mark)) {
            link_name(linked->link, rank, who, sizeof who);
            say_difference(session, who, linked->epoch, own, text);
            status = tnd_fail(TUNDISH_E_DATA, "%s", text);
        }
    }
    return status;
}

void
session_marks_post(struct session *session)
{
    struct session_link *linked = &session->linked;
    const struct order_digest *digest = dealer_digest(session->dealer);
    struct link_key key = session_link_key(session, LINK_ORDER, linked->epoch);
    struct link_mark mark =
        mark_of(session, digest->mark_count * digest->interval, digest->mark_hash);

    if (digest->mark_count == linked->marks_posted)
        return;
    linked->marks_posted = digest->mark_count;
    key.part ^= digest->mark_count;
    link_post(linked->link, &key, &mark, sizeof mark);
    /* A node compares when it hears, so a mark is needed only until the slowest node has posted its
     * own. */
    if (digest->mark_count <= MARKS_KEPT)
        return;
    key.part ^= digest->mark_count ^ (digest->mark_count - MARKS_KEPT);
    link_forget(linked->link, &key);
}

/* In an epoch that was cut short, nodes may have seen different numbers of rows, so their marks are
 * not compared. */
tundish_status
session_marks_end(struct session *session, uint64_t step)
{
    const struct order_digest *digest = dealer_digest(session->dealer);
    struct link_key key = end_key(session);
    struct link_end end = {
        .step = step,
        .mark = mark_of(session, digest->passed, digest->hash + digest->whole),
    };

    if (!digest->is_over)
        end.mark.variant = UNCOMPARED;
    link_post(session->linked.link, &key, &end, sizeof end);
    if (!digest->is_over || is_told_by_files(session->plan->graph))
        return TUNDISH_OK;
    return compare_ends(session, &end.mark);
}

/* If the whole stream is published already, tell the trainers that have not taken it all. */
static void
tell_late(struct session *session, const char *text)
{
    bool ended;

    pthread_mutex_lock(&session->ring.lock);
    ended = session->ring.ended;
    pthread_mutex_unlock(&session->ring.lock);
    if (!ended)
        return;
    tnd_log(TND_LOG_ERROR, "stream", "%s: %s", session->plan->stream->name, text);
    feed_tell_lost(session->feed, NULL, text);
}

/* The mark in a post under such a key; false: there is none. */
static bool
read_mark(const struct link_key *key, struct byte_view bytes, struct link_mark *ret_mark)
{
    size_t before = key->topic == LINK_RESTART ? offsetof(struct link_end, mark) : 0;

    if (bytes.size != before + sizeof *ret_mark)
        return false;
    memcpy(ret_mark, bytes.data + before, sizeof *ret_mark);
    return true;
}

void
session_marks_hear(struct session *session, const char *who, const struct link_key *key,
                   struct byte_view bytes)
{
    struct link *link = session->linked.link;
    struct link_mark own = { 0 }, other = { 0 };
    struct byte_view own_bytes;
    uint8_t *found;
    char text[TEXT_BYTES];
    bool comparable;

    if (!link_find(link, key, link_rank(link), &found, &own_bytes.size))
        return; /* it will be compared over there */
    own_bytes.data = found;
    comparable = read_mark(key, own_bytes, &own) && read_mark(key, bytes, &other);
    free(found);
    if (!comparable || !mark_differs(&own, &other))
        return;
    say_difference(session, who, key->epoch, &own, text);
    tell_late(session, text);
    session_fail(session, TUNDISH_E_DATA, text);
    session_link_tell_error(session, key->epoch, UINT64_MAX, TUNDISH_E_DATA, text);
}
