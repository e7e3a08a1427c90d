/* nodes.h - what dealing asks of the other nodes of the job.
 *
 * There are three answers. A job of one node is alone. Several nodes that share the steps of whole
 * batches deal them together. Several nodes whose trainers read at their own pace (queue,
 * broadcast) deal apart, but by one root seed. So the dealing thread never asks how many nodes
 * there are.
 */
#ifndef SESSION_NODES_NODES_H
#define SESSION_NODES_NODES_H

#include "session/checkpoint/place_contents.h"

struct session;

/* A step from the job's point of view: this node has rows; another node has; none has. */
enum job_step { JOB_STEP_ROWS, JOB_STEP_EMPTY, JOB_STEP_END };

/* The dealing thread calls these, and any thread tell_error. Functions that wait for other nodes
 * return E_PEER_LOST if the job has failed, and E_TIMEOUT if the session is being stopped. */
struct nodes_ops {
    /* How many steps of the order one hash of it covers; 0: no hash. */
    uint64_t mark_steps;

    /* The thread begins with the epoch `first`, and has not gone to its start. May wait. */
    tundish_status (*begin)(struct session *session, uint64_t first);

    /* The order has gone to the start, and knows the state of the first epoch. */
    void (*tell_state)(struct session *session, uint64_t epoch);

    /* The order has begun the epoch after another one, which may have been cut. */
    tundish_status (*follow)(struct session *session, uint64_t epoch);

    /* An epoch begins at step `number`. */
    tundish_status (*begin_epoch)(struct session *session, uint64_t epoch, uint64_t number);

    /* Make the state in the place that of all workers, where it is not the same. May wait. */
    tundish_status (*gather)(struct session *session, uint64_t epoch, struct place *place);

    /* Before each step. */
    void (*tell_seed)(struct session *session);

    /* All trainers here have asked for the next epoch. Does this one end before step `number`? May
     * wait. */
    tundish_status (*leave_epoch)(struct session *session, uint64_t number, bool *ret_cut);

    /* This node has `present` slices at step `number`. What is it for the job? May wait. */
    tundish_status (*step)(struct session *session, uint64_t number, uint32_t present,
                           enum job_step *ret_step);

    /* The epoch ends before step `number`. May wait, and fail since other nodes had other rows. */
    tundish_status (*end_epoch)(struct session *session, uint64_t number);

    /* A step has failed here, so it fails for all. */
    void (*tell_error)(struct session *session, uint64_t epoch, uint64_t step,
                       tundish_status status, const char *text);
};

extern const struct nodes_ops nodes_alone, nodes_apart, nodes_together;

#endif
