/* stream.c - as much of a session and its plan as session/nodes looks at. */
#include "stream.h"

#include <stdio.h>
#include <stdlib.h>

#include "session/nodes/session_cut.h"
#include "session/session_private.h"

/* Fewer than a server's (SESSION_MARK_STEPS), as fewer steps are dealt. */
enum { STEPS_A_MARK = 64, STATE_WORDS = 2 };

struct stream {
    struct session session;
    struct order_digest digest;
    uint64_t error_in_order;
    struct spec_stream spec;
    struct plan_graph graph;
    struct plan_node root;
    struct plan plan;
    bool places_differ;
    char error[400];
};

/* These stand for what is left out. */
const struct order_digest *__wrap_dealer_digest(const struct dealer *dealer);
void __wrap_ring_fail(struct session *session, tundish_status status, const char *text, bool kept);
void __wrap_feed_tell_lost(struct feed *feed, const char *group, const char *text);

const struct order_digest *
__wrap_dealer_digest(const struct dealer *dealer)
{
    return &((const struct stream *)dealer)->digest;
}

void
__wrap_ring_fail(struct session *session, tundish_status status, const char *text, bool kept)
{
    struct stream *stream = (struct stream *)session;

    (void)kept;
    if (status != TUNDISH_E_PEER_LOST && stream->error[0] == '\0')
        snprintf(stream->error, sizeof stream->error, "%s", text);
    if (status != TUNDISH_E_PEER_LOST)
        atomic_store(&session->stop, 1); /* as when its trainers have the error, and end */
}

void
__wrap_feed_tell_lost(struct feed *feed, const char *group, const char *text)
{
    (void)feed;
    (void)group;
    (void)text;
}

struct session *
stream_open(struct link *link, const struct stream_options *options)
{
    struct stream *stream = calloc(1, sizeof *stream);
    struct session *session = &stream->session;

    stream->spec.distribute.drop_remainder_step = options->ends_with_first;
    stream->places_differ = options->places_differ;
    stream->plan.stream = &stream->spec;
    stream->plan.graph = &stream->graph;
    stream->graph.root = &stream->root;
    stream->plan.replicas = 1;
    stream->plan.policy = options->are_known ? SHARD_DATA : SHARD_FILE;
    stream->plan.rule = REBATCH_SPLIT;
    stream->plan.options.worker = link_rank(link);
    stream->plan.options.worker_count = link_size(link);
    session->plan = &stream->plan;
    session->dealer = (struct dealer *)stream;
    session_link_open(session, &(struct session_options){ .stream = &stream->spec, .link = link });
    if (session->linked.link != NULL)
        session_cut_begin(session, 0);
    return session;
}

void
stream_close(struct session *session)
{
    if (session == NULL)
        return;
    session_link_close(session);
    free(session);
}

void
stream_err(struct session *session)
{
    ((struct stream *)session)->error_in_order = 1;
}

/* Each node's words, by rank, or, if they are the same, those of one. */
static bool
is_of_all(const struct stream *stream, const struct place *place)
{
    uint32_t nodes = stream->places_differ && place->worker_count > 0 ? place->worker_count : 1;

    for (uint32_t i = 0; i < nodes; i++)
        if (place->state[STATE_WORDS * i + 1] != (nodes > 1 ? i : place->state[1]))
            return false;
    return place->state_count == STATE_WORDS * nodes;
}

tundish_status
stream_begin_epoch(struct session *session, uint64_t epoch)
{
    struct stream *stream = (struct stream *)session;
    bool are_known = session->plan->policy == SHARD_DATA;
    struct place place = {
        .worker_count = are_known ? 0 : session->plan->options.worker_count,
        .state_count = STATE_WORDS,
        .state = { epoch, stream->places_differ && !are_known ? session->plan->options.worker : 0 }
    };
    tundish_status status = session->nodes->begin_epoch(session, epoch, 0);

    stream->digest = (struct order_digest){ .interval = STEPS_A_MARK };
    if (status == TUNDISH_OK)
        status = session->nodes->gather(session, epoch, &place);
    if (status == TUNDISH_OK && !is_of_all(stream, &place))
        status = tnd_fail(TUNDISH_E_DATA, "the place is not that of all nodes");
    return status;
}

tundish_status
stream_cut(struct session *session, uint64_t number, bool *ret_cut)
{
    tundish_status status = session->nodes->leave_epoch(session, number, ret_cut);

    return status == TUNDISH_OK && *ret_cut ? session->nodes->end_epoch(session, number) : status;
}

tundish_status
stream_deal(struct session *session, uint64_t number, bool has, bool *ret_more)
{
    struct order_digest *digest = &((struct stream *)session)->digest;
    enum job_step step;
    tundish_status status = session->linked.link == NULL
                                ? session->nodes->step(session, number, has, &step)
                                : session_link_step(session, number, has, &step);

    if (status != TUNDISH_OK)
        return status;
    *ret_more = step != JOB_STEP_END;
    /* Nodes with rows of their own deal no common order. */
    if (*ret_more && session->plan->policy == SHARD_DATA) {
        digest->mark_count = ++digest->passed / STEPS_A_MARK;
        digest->mark_hash = digest->hash =
            digest->passed + ((struct stream *)session)->error_in_order;
    }
    digest->is_over = !*ret_more && session->plan->policy == SHARD_DATA;
    return *ret_more ? TUNDISH_OK : session->nodes->end_epoch(session, number);
}

void
stream_tell_error(struct session *session, const char *text)
{
    session->nodes->tell_error(session, 0, 0, TUNDISH_E_DATA, text);
    __wrap_ring_fail(session, TUNDISH_E_DATA, text, true);
}

void
stream_hear(struct session *session, uint32_t from, const struct link_key *key,
            struct byte_view bytes)
{
    session_link_hear(session, from, key, bytes);
}

const char *
stream_error(const struct session *session)
{
    const struct stream *stream = (const struct stream *)session;

    return stream->error[0] != '\0' ? stream->error : NULL;
}
