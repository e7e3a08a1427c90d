/* session_link.h - one session on several nodes: the messages between their servers.
 *
 * Under DATA every worker knows the number of steps, and nothing is said but a hash now and then.
 * Otherwise workers may have different numbers of steps: one that has no more tells the others, and
 * they tell how far they are, until all have ended; those that ended early deliver empty batches.
 */
#ifndef SESSION_NODES_SESSION_LINK_H
#define SESSION_NODES_SESSION_LINK_H

#include <stdatomic.h>

#include "core/lock.h"
#include "link/link.h"
#include "session/nodes/nodes.h"

struct session;
struct session_options;

struct session_link {
    struct link *job;  /* NULL: this session is of one worker */
    struct link *link; /* the same where nodes take steps together, else NULL */
    uint32_t stream;   /* in keys: which session of the job it is */
    struct tnd_lock lock;

    /* Under the lock. */
    uint64_t epoch, dealt; /* steps of this epoch that have rows here */
    bool ended;            /* there are no more */
    bool asked;            /* another worker waits to know how far this one is */
    uint64_t marks_posted; /* of the order's digest (session_marks.h) */
    bool has_begun;        /* the next four are told (session_cut.h) */
    bool is_read;
    uint64_t left;  /* epochs; only the dealing thread changes it */
    uint64_t first; /* the epoch that the session began with, and the state of that, if known */
    size_t first_words;
    uint64_t first_state[PLACE_STATE_MAX];
    bool mute;               /* session_link_mute */
    bool told_start;         /* session_replay.h; under `control` */
    bool is_level;           /* this node takes part in the epochs of all, or will from the first */
    bool replays;            /* this epoch, for others; the dealing thread's (session_replay.h) */
    bool told_split;         /* session_split_tell; under `control` */
    bool told_ahead;         /* session_ahead.h; the hub's thread */
    bool told_seed;          /* session_seeds.h; under the lock */
    uint64_t standing_asked; /* the last question's number (session_standing.h); the hub's thread */

    /* The dealing thread's. */
    uint64_t cut_step; /* where the epoch ends early, or UINT64_MAX: not agreed */
    uint64_t untold;   /* steps until session_seeds_tell tells; 0: never */

    /* The last restart of the trainers of all nodes that took this node back (session_level.h).
     * Written while no thread of the session runs. */
    _Atomic uint64_t restart;

    /* Where trainers began again last (session_level.h); NULL: at the beginning, or never. */
    uint8_t *level;
    size_t level_bytes;
};

/* In `part` of keys: the restart is above the numbers of marks and of session_cut.h. */
enum { RESTART_SHIFT = 32 };

/* Keys of facts about an epoch contain the restart number and, if the order depends on it, the root
 * seed. */
struct link_key session_link_key(const struct session *session, enum link_topic topic,
                                 uint64_t epoch);

/* A number that each node tells once; and that of all. The second waits. */
void session_link_tell_number(struct session *session, const struct link_key *key,
                              enum link_merge merge, uint64_t number);
tundish_status session_link_wait_for_number(struct session *session, const struct link_key *key,
                                            uint64_t *ret_number);

/* Does the epoch of one node need all? Not where every node knows the steps of all. */
bool session_link_needs_all(const struct session *session);

/* Sets session->nodes. Nodes do not take steps of whole batches (queue, broadcast) together.
 * Neither do they share the steps of sessions that each worker asked for itself, to read at its own
 * pace (from_function). */
void session_link_open(struct session *session, const struct session_options *options);
void session_link_close(struct session *session);

/* This node goes back, as all will. Ignores totals computed before: a node that goes back later may
 * discard its value, and would wait for ever for a new total. No thread of the session runs. */
void session_link_restart(struct session *session, uint64_t number);

/* As nodes_together's (nodes.h). Before the end of an epoch a node waits for the others only where
 * its steps are not known without them. */
tundish_status session_link_start_epoch(struct session *session, uint64_t epoch, uint64_t step);
tundish_status session_link_step(struct session *session, uint64_t number, uint32_t present,
                                 enum job_step *ret_step);
tundish_status session_link_end_epoch(struct session *session, uint64_t number);
tundish_status session_link_gather(struct session *session, uint64_t epoch, struct place *place);
void session_link_tell_error(struct session *session, uint64_t epoch, uint64_t step,
                             tundish_status status, const char *text);

/* Tell the other nodes that a trainer died. */
void session_link_tell_death(struct session *session, const char *group, uint32_t replica);

/* The trainers of all nodes are being ended. Until the next trainer comes, no death is told. */
void session_link_mute(struct session *session, bool mute);
void session_link_tell_group_end(struct session *session, const char *group);

#endif
