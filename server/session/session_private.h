/* session_private.h - a session's internals, for its own files.
 *
 * session_deal.c puts steps into the ring (ring.h), session_work.c takes parts of them out and
 * makes their content, session_run.c starts and stops the threads, start_barrier.c decides where
 * and when the first step is dealt, session_admit.c lets trainers in, session.c opens and closes
 * the session.
 *
 * Lock order: control, then ring, then the feed's and the lanes'. kept.lock is taken before the
 * feed's, and never together with control or ring.
 */
#ifndef SESSION_SESSION_PRIVATE_H
#define SESSION_SESSION_PRIVATE_H

#include <stdatomic.h>

#include "core/lock.h"
#include "deliver/lane_reader.h"
#include "helpers/helpers.h"
#include "session/compress.h"
#include "session/dealing.h"
#include "session/evaluation/session_shards.h"
#include "session/evaluation/shards.h"
#include "session/nodes/nodes.h"
#include "session/nodes/session_link.h"
#include "session/ring.h"
#include "session/session.h"
#include "session/start_barrier.h"

/* Starting and stopping. */
struct session_control {
    struct tnd_lock lock;
    struct start_barrier barrier;
    struct start_barrier brought; /* its start, of the places alone that trainers have brought where
                                   * a kept one is lower */
    bool stopping;
    bool sleeps;              /* its threads start with the first trainer (session_wake) */
    bool restored;            /* it began where an earlier server had kept its place */
    uint64_t last_generation; /* of the last server before that let a trainer in; 0: not known */
    bool told_unfinished;     /* see session_tell_unfinished */
};

/* The place that the server keeps in a file (serve --state). */
struct session_kept {
    struct tnd_lock lock; /* of the file, too */
    uint8_t *place;       /* the one last written */
    size_t place_bytes;
    bool failed;  /* the failure was logged; once is enough */
    bool lets_in; /* a trainer: this is the server to be noted for the next (STREAM.server) */
    bool is_noted, noting_failed;
    bool abandoned; /* groups have been here, and the last has ended */
};

struct session {
    struct plan *plan, **old_plans; /* those before: files refer to what they said of formats */
    uint32_t old_plan_count;
    struct session_options options;
    const struct nodes_ops *nodes;
    struct session_link linked;
    struct fill fill;
    struct fill packed; /* for lanes of trainers with a device; without columns: as the others */
    struct compressed compressed;
    struct source_files *files;
    struct order_looks looks;    /* of the workers */
    struct budget *budget;       /* of the parts being made */
    struct kept_rows *kept_rows; /* of looks, or NULL */
    struct place_files place_files;
    struct place_landmarks *landmarks; /* or NULL */
    _Atomic bool has_noted_code;       /* session_note_code */
    struct dealer *dealer;
    struct feed *feed;
    struct wakeup *wakeup;
    tundish_spec spec;
    uint64_t step_bytes; /* of the first step, about */
    bool is_measured;    /* the lanes have their sizes */
    _Atomic int stop;
    _Atomic uint64_t restart_epoch; /* end this epoch early; UINT64_MAX: none */
    struct session_stats counters;

    uint32_t worker_count;
    struct worker *workers;
    struct helpers *helpers; /* or NULL */

    struct session_control control;
    struct session_kept kept;
    struct session_dealing dealing;
    struct ring ring;
};

/* The threads' functions, and starting and stopping them. session_halt drops steps that are not
 * published. Not under the ring's lock. */
void *session_work(void *worker);
void *session_deal(void *session);
tundish_status session_run(struct session *session);
void session_halt(struct session *session);

tundish_status session_open_dealer(struct session *session);

/* Take a plan with another root seed. The one before stays until the session's files are closed. */
void session_replace_plan(struct session *session, struct plan *plan);

/* Say once that code of the user's own is not what it was when a place was saved. */
void session_note_code(struct session *session, const struct place *place);

/* The content of places in the epoch that the dealer has begun: that of all nodes, which wait for
 * one another. */
tundish_status session_epoch_place(struct session *session, uint64_t epoch,
                                   struct place *ret_place);

extern const struct feed_ops session_feed_ops;

#endif
