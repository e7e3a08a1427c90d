/* nodes_alone.c - a node that deals its steps by itself. */
#include "session/nodes/nodes.h"
#include "session/nodes/session_seeds.h"
#include "session/session_private.h"

static tundish_status
begin_alone(struct session *session, uint64_t first)
{
    (void)session;
    (void)first;
    return TUNDISH_OK;
}

/* One root seed is compared all the same. */
static tundish_status
begin_apart(struct session *session, uint64_t first)
{
    (void)first;
    session_seeds_begin(session);
    return TUNDISH_OK;
}

static void
tell_no_state(struct session *session, uint64_t epoch)
{
    (void)session;
    (void)epoch;
}

static tundish_status
follow_alone(struct session *session, uint64_t epoch)
{
    (void)session;
    (void)epoch;
    return TUNDISH_OK;
}

static tundish_status
begin_epoch_alone(struct session *session, uint64_t epoch, uint64_t number)
{
    (void)session;
    (void)epoch;
    (void)number;
    return TUNDISH_OK;
}

static tundish_status
gather_alone(struct session *session, uint64_t epoch, struct place *place)
{
    (void)session;
    (void)epoch;
    (void)place;
    return TUNDISH_OK;
}

static void
tell_no_seed(struct session *session)
{
    (void)session;
}

static tundish_status
leave_epoch_alone(struct session *session, uint64_t number, bool *ret_cut)
{
    (void)session;
    (void)number;
    *ret_cut = true;
    return TUNDISH_OK;
}

static tundish_status
step_alone(struct session *session, uint64_t number, uint32_t present, enum job_step *ret_step)
{
    bool drop_partial = session->plan->stream->distribute.drop_remainder_step;
    bool has = drop_partial ? present == session->plan->replicas : present > 0;

    (void)number;
    *ret_step = has ? JOB_STEP_ROWS : JOB_STEP_END;
    return TUNDISH_OK;
}

static tundish_status
end_epoch_alone(struct session *session, uint64_t number)
{
    (void)session;
    (void)number;
    return TUNDISH_OK;
}

static void
tell_no_error(struct session *session, uint64_t epoch, uint64_t step, tundish_status status,
              const char *text)
{
    (void)session;
    (void)epoch;
    (void)step;
    (void)status;
    (void)text;
}

const struct nodes_ops nodes_alone = {
    .begin = begin_alone,
    .tell_state = tell_no_state,
    .follow = follow_alone,
    .begin_epoch = begin_epoch_alone,
    .gather = gather_alone,
    .tell_seed = tell_no_seed,
    .leave_epoch = leave_epoch_alone,
    .step = step_alone,
    .end_epoch = end_epoch_alone,
    .tell_error = tell_no_error,
};

const struct nodes_ops nodes_apart = {
    .begin = begin_apart,
    .tell_state = tell_no_state,
    .follow = follow_alone,
    .begin_epoch = begin_epoch_alone,
    .gather = gather_alone,
    .tell_seed = session_seeds_tell,
    .leave_epoch = leave_epoch_alone,
    .step = step_alone,
    .end_epoch = end_epoch_alone,
    .tell_error = tell_no_error,
};
