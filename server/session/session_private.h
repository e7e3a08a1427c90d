/* session_private.h - a session's internals, for its own files.
 *
 * session_deal.c puts steps into a ring, session_work.c takes them out and makes their content,
 * session_run.c starts and stops their threads, start_barrier.c decides where and when the first
 * step is dealt, session_admit.c lets trainers in, session.c opens and closes the session.
 *
 * Lock order: control, then ring, then the feed's and the lanes'. kept.lock is taken before the
 * feed's, and never together with control or ring.
 */
#ifndef SESSION_SESSION_PRIVATE_H
#define SESSION_SESSION_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "deliver/lane_reader.h"
#include "session/checkpoint/place_contents.h"
#include "session/compress.h"
#include "session/evaluation/shards.h"
#include "session/helpers/helpers.h"
#include "session/nodes/session_link.h"
#include "session/session.h"
#include "session/session_stats.h"
#include "session/skips.h"
#include "session/wake.h"

enum step_state {
    STEP_EMPTY,
    STEP_WAITS,      /* for free slots in every lane */
    STEP_OPENING,    /* one worker reserves them and lays texts out, perhaps without the lock */
    STEP_OPEN,       /* its slices are being made */
    STEP_PUBLISHING, /* one worker seals and publishes them, without the lock */
    STEP_DONE
};

/* The kind of a step that was visited already, according to a queue's place. */
#define STEP_PASSED ((enum tnd_slot_kind)0)

/* One replica's part of a step. */
struct share {
    struct slot slot;
    bool reserved; /* STEP_PASSED: published */
    bool has_room;
    bool had_room; /* its lane's wait has been counted */
    int64_t rows, next_row;
    int64_t rows_of_part;    /* 0: the slot has not been described */
    const struct fill *fill; /* NULL: not chosen yet */
};

struct step {
    enum step_state state;
    enum tnd_slot_kind kind;
    enum tnd_slot_kind passed_kind; /* STEP_PASSED: its kind before */
    uint64_t position, epoch, number;
    int64_t shard;               /* of an evaluation; else -1 */
    uint32_t flags;              /* TUNDISH_BATCH_... */
    int64_t dealt_ns, opened_ns; /* when it came, and when all its lanes had room */
    /* Stays when the step is done: the thread that made it frees it, when the entry is next used.
     * Freed by another thread it would cost more than a small batch's content. */
    struct deal_round round;
    struct share *shares;
    uint32_t next_share; /* the first whose rows are not all taken */
    uint32_t unfinished; /* parts taken but not finished, and one while any is left */
    bool from_outside;   /* its error is another node's */
    tundish_status status;
    char text[1024];
};

/* A piece of work: some rows of a slice, or a whole one. */
struct part {
    struct step *step;
    uint32_t replica;
    int64_t begin, end; /* rows; whole slices: not used */
};

/* What a worker that has no work waits for. */
enum worker_wait { WAITS_FOR_NOTHING, WAITS_FOR_SLOTS, WAITS_FOR_STEPS };

struct worker {
    struct session *session;
    struct evaluation evaluation;
    struct budget_task memory; /* of the part being made */
    struct tnd_codec_context *context;
    pthread_t thread;
    bool started;
    int64_t now_ns;         /* as last read: one reading ends a thing and begins the next */
    int64_t part_ns;        /* the recent average for a part */
    int64_t part_waited_ns; /* how long the last one waited for room */
    enum worker_wait waits;
    int64_t waits_since_ns;
    struct worker_stats counters;
    uint64_t skipped; /* of evaluation.skipped, those accounted for; under the session's lock */
};

/* Where to begin. */
struct start {
    bool given;           /* else at the first step of epoch 0 */
    bool after_end;       /* publish the end of the epoch before, too */
    uint64_t end_steps;   /* which had so many steps */
    uint64_t place_epoch; /* whose state this is: `epoch` or an earlier one */
    uint64_t epoch, step;
    struct place_split split; /* of the steps from there on */
    size_t state_count;
    uint64_t state[PLACE_STATE_MAX];

    /* A queue's: which of the positions from here on were visited. */
    uint64_t visited_count;
    uint8_t visited[TND_SLOTS_MAX / 8];
};

enum { SHARDS_AT_A_TIME = 2 };

/* A shard that an evaluation's reader has taken and not done. It lies from the position `begin` to
 * before `end`, and begins with the step `number` of the reader's. While it is dealt, and if it was
 * cut off, `end` is UINT64_MAX. */
struct taken_shard {
    uint64_t epoch, begin, end, number;
    uint64_t epoch_begin; /* where its epoch begins in the lane */
    uint32_t shard;
    bool is_held; /* its reader has all its batches, holds some, and waits for more */
};

struct shard_share {
    uint32_t reader;           /* on the tracker; 0: none (any more) */
    uint64_t epoch;            /* that was on when it came */
    uint64_t epoch_begin;      /* where the one that is dealt begins in the lane */
    uint32_t last_shard;       /* that was taken */
    uint64_t ready_from;       /* where a shard lies ready of which the reader has begun nothing */
    int64_t ready_since_ns;    /* 0: there is none */
    uint64_t told_of_epoch;    /* in the log, when one was taken back, and 1; 0: never */
    uint32_t count;            /* no more than two that are not held, and slots that are */
    struct taken_shard *taken; /* freed with the session */
};

/* The start, while no step is published. */
struct start_barrier {
    bool closed;
    bool has_start, has_kept;
    bool is_restored;                /* the start is one that an earlier server kept in a file, and
                                      * no trainer is there yet that counts on it */
    bool is_beginning;               /* places do not move the start: see start_barrier_begin */
    char brought_by[TND_NAME_BYTES]; /* the group whose trainer's place the start is, or "" */
    uint32_t brought_from;           /* and its replica */
    uint32_t full_group_count;
    uint32_t groups_present, groups_gone; /* at the server before, if has_kept */
    uint64_t place_epoch, epoch, step;
    bool is_end; /* the start is the epoch's end, and `step` the number of its steps */
    struct place place;
    bool has_split;
    struct place_split split; /* which all places brought so far agree on */
    uint64_t visited_count;
    uint8_t visited[TND_SLOTS_MAX / 8];
    int64_t deadline_ns;
    bool is_told; /* the log, that it waits for groups */
};

/* Starting and stopping. */
struct session_control {
    pthread_mutex_t lock;
    struct start_barrier barrier;
    struct start_barrier brought; /* its start, of the places alone that trainers have brought where
                                   * a kept one is lower */
    bool stopping;
    bool sleeps;              /* its threads start with the first trainer (session_wake) */
    bool restored;            /* it began where an earlier server had kept its place */
    uint64_t last_generation; /* of the last server before that let a trainer in; 0: not known */
    bool is_noted;            /* this one has, and it is in the file */
    bool told_unfinished;     /* see session_tell_unfinished */
};

/* The place that the server keeps in a file (serve --state). */
struct session_kept {
    pthread_mutex_t lock; /* of the file, too */
    uint8_t *place;       /* the one last written */
    size_t place_bytes;
    bool failed;    /* the failure was logged; once is enough */
    bool abandoned; /* groups have been here, and the last has ended */
};

/* Used only by the dealing thread while it runs: no lock. */
struct session_dealing {
    pthread_t thread;
    bool started;
    struct start start;
    struct shard_share shard_share;
    int64_t shard;                /* of the steps being dealt */
    uint32_t flags;               /* likewise */
    _Atomic bool awaits_shards;   /* the reader asks, and others have what is left of the epoch */
    int64_t now_ns;               /* as worker.now_ns */
    int64_t deals_since_ns;       /* what was done before is counted; 0: this is not counted */
    struct worker_stats counters; /* of stages that look at content to decide order */
};

/* The steps between the dealer, which adds them, and the workers, which make them. */
struct session_ring {
    pthread_mutex_t lock;
    pthread_cond_t work;  /* a step has come, or room */
    pthread_cond_t space; /* a step was removed: the dealer may continue */
    struct step *steps;   /* a ring: first .. first + count */
    uint32_t capacity, first, count;
    uint32_t few; /* an epoch is begun when there are fewer */
    struct wake wake;
    uint64_t next_position;
    bool draining, failed, ended, paused;
    struct skips skips;
    uint64_t dealer_skipped; /* of them, those that the order left out */
    uint64_t steps_published, rows_published;
    uint64_t last_epoch, last_number; /* of the last batch that left the ring */
    tundish_status kept_status;       /* session_fail's, while no thread ran */
    char kept_text[1024];
};

struct session {
    struct plan *plan, **old_plans; /* those before: files refer to what they said of formats */
    uint32_t old_plan_count;
    struct session_options options;
    struct session_link linked;
    struct fill fill;
    struct fill packed; /* for lanes of trainers with a device; without columns: as the others */
    struct compressed compressed;
    struct source_files *files;
    struct budget *budget; /* of the parts being made */
    struct place_files place_files;
    _Atomic bool has_noted_code; /* session_note_code */
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
    struct session_ring ring;
};

/* Step `index` of those in the ring; the lock held, as for all below. */
struct step *session_step(struct session *session, uint32_t index);

/* Release the lock, then wake a worker that can take work: a sleeper, or the one that waits for the
 * wakeup. */
void session_unlock_and_wake(struct session *session);

/* Release the lock, then wake those that are due. */
void session_unlock(struct session *session);

/* The step fails with this thread's error text, unless it failed before. */
void session_fail_step(struct step *step, tundish_status status);

/* Take the next part of the steps in the ring, opening them; false: there is none now. */
bool session_take_part(struct worker *worker, struct part *ret_part);

/* Take as many rows of the slice as this number of parts has, with the part that was taken. */
void session_take_more(struct part *part, int64_t times);

/* Make it, without the lock. The worker's scratch is to be reset afterwards. */
tundish_status session_make_part(struct worker *worker, const struct part *part);

/* The same in two: name a whole slice's slot, and reserve it once its sizes are stated. The slot of
 * an end is named, too. */
void session_name_slot(const struct step *step, struct share *share);
tundish_status session_reserve_whole(struct worker *worker, struct share *share, uint32_t replica);

/* It is made, or has failed; publishes the step with its last part. Reads the clock. */
void session_finish_part(struct worker *worker, const struct part *part, tundish_status status);

/* The threads' functions, and starting and stopping them. session_halt drops steps that are not
 * published. Not under the ring's lock. */
void *session_work(void *worker);
void *session_deal(void *session);
tundish_status session_run(struct session *session);
void session_wake(struct session *session); /* if it sleeps. control.lock is held */
void session_halt(struct session *session);

/* The stream ends with this error, at the first step that is not published. Any thread. If the
 * session's threads do not run: as soon as they do, where the error is to be `kept`. */
void session_fail(struct session *session, tundish_status status, const char *text, bool kept);
void session_fail_as_kept(struct session *session); /* they are about to run */

tundish_status session_open_dealer(struct session *session);

/* Of another root seed. The one before stays until the session's files are closed. */
void session_replace_plan(struct session *session, struct plan *plan);

/* Put a step into the ring, waiting for a free entry. False: the threads are being stopped. The
 * round is released in any case. The dealing thread. */
bool session_push(struct session *session, enum tnd_slot_kind kind, uint64_t epoch, uint64_t number,
                  struct deal_round *round, tundish_status status);

/* Say once that code of the user's own is not what it was when a place was saved. */
void session_note_code(struct session *session, const struct place *place);

/* The content of places in the epoch that the dealer has begun: that of all nodes, which wait for
 * one another. */
tundish_status session_epoch_place(struct session *session, uint64_t epoch,
                                   struct place *ret_place);

/* An evaluation: joining the tracker, the dealing thread's work, and telling the tracker what is
 * done. */
void session_deal_shards(struct session *session);
tundish_status session_shards_start(struct session *session);
void session_shards_settle(struct session *session);

/* The barrier; `control` is held. Lowering it may refuse the place. */
void start_barrier_close(struct session *session);
void start_barrier_reclose(struct session *session); /* after it was open */
void start_barrier_return(struct session *session);  /* the same; the start stays as it was */
/* `group`: whose trainer brings the place; NULL: a file. */
tundish_status start_barrier_lower(struct session *session, const char *group,
                                   const struct place *place, const struct feed_start *start);
/* Go on with the root seed of another run, of which no row has been dealt here. */
tundish_status start_barrier_take_root_seed(struct session *session, uint64_t root_seed);
/* Does the root seed decide any rows? */
bool start_barrier_depends_on_seed(const struct session *session);
/* Would a session of the one root seed have dealt what one of the other has? */
bool start_barrier_is_same_run(const struct session *session, uint64_t root_seed, uint64_t other);
/* A replica has no place although others of its group, which outlived their server, brought theirs.
 * Start at the beginning, unless one of them says what the group lacks. */
void start_barrier_begin(struct session *session);
void start_barrier_joined(struct session *session, uint32_t full_group_count);
int64_t start_barrier_tick(struct session *session, int64_t now_ns);
void start_barrier_open(struct session *session);

extern const struct feed_ops session_feed_ops;

#endif
