/* nodes_together.c - nodes that share the steps of whole batches. */
#include "core/clock.h"
#include "session/nodes/nodes.h"
#include "session/nodes/session_cut.h"
#include "session/nodes/session_marks.h"
#include "session/nodes/session_replay.h"
#include "session/nodes/session_seeds.h"
#include "session/session_private.h"
#include "session/session_split.h"

static tundish_status
begin(struct session *session, uint64_t first)
{
    tundish_status status;

    session_cut_begin(session, first);
    session_seeds_begin(session);
    status = session_split_agrees(session);
    if (status == TUNDISH_OK)
        status = session_cut_learn(session, first);
    return status == TUNDISH_OK ? session_replay(session) : status;
}

/* Waiting for others is not counted as dealing. */
static tundish_status
step(struct session *session, uint64_t number, uint32_t present, enum job_step *ret_step)
{
    struct session_dealing *dealing = &session->dealing;
    tundish_status status;

    dealing_count(dealing, session->counters.stream, number);
    status = session_link_step(session, number, present, ret_step);
    dealing->deals_since_ns = tnd_clock_ns();
    return status;
}

const struct nodes_ops nodes_together = {
    .mark_steps = SESSION_MARK_STEPS,
    .begin = begin,
    .tell_state = session_cut_tell_state,
    .follow = session_cut_follow,
    .begin_epoch = session_link_start_epoch,
    .gather = session_link_gather,
    .tell_seed = session_seeds_tell,
    .leave_epoch = session_cut,
    .step = step,
    .end_epoch = session_link_end_epoch,
    .tell_error = session_link_tell_error,
};
