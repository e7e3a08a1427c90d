/* helpers_private.h - a helper as its server sees it, and the threads of its connections. */
#ifndef HELPERS_HELPERS_PRIVATE_H
#define HELPERS_HELPERS_PRIVATE_H

#include <pthread.h>

#include "helpers/helper_line.h"
#include "helpers/helper_steps.h"
#include "helpers/helpers.h"

struct helper {
    const char *address;
    pthread_mutex_t lock; /* of all below */
    uint32_t threads;     /* parts that it makes at a time; 0: not known */
    uint32_t connected;
    bool is_up;                /* as was last said in the log */
    bool is_barred;            /* it makes other bytes */
    int64_t pause_ns, call_ns; /* it is called no sooner */
    int64_t part_ns;           /* the recent average for a part, seen from here */
    struct helper_steps steps; /* with parts of its making that may have been given out */
    struct tnd_stats_helper *stats;

    /* With the ring's lock. */ uint64_t welcome; /* parts that were not missed */
    int64_t rest_ns;                              /* that of the line which asked last */
};

struct line {
    struct worker worker; /* makes what the helper does not */
    struct helpers *helpers;
    struct helper *helper;
    uint32_t number; /* of the helper's */
    uint32_t refusals;
    int64_t looked_ns;     /* when it was last seen that the connection is there */
    int64_t took_ns;       /* for the part that was asked for last; 0: none was */
    bool is_new;           /* no part of the connection has been compared */
    bool has_same_files;   /* as of the last part */
    int64_t owed_until_ns; /* not 0: nobody waits for the answer, which is to come until then */

    /* With the ring's lock. */ bool has_begun; /* to ask */
    int64_t rest_ns, rested_ns; /* after a part it asks for none for so long; until then */
    struct helper_line wire;
};

struct helpers {
    struct session *session;
    char *text; /* addresses, each ends with NUL */
    uint32_t helper_count, line_count;
    struct helper *list;
    struct line *lines;
    struct helper_sums *sums;    /* of the session's files */
    int64_t opened_ns;           /* since when ... */
    _Atomic int64_t compared_ns; /* ... the time that was spent on making parts to compare them */
    pthread_cond_t wanted;       /* with the ring's lock: lines that may ask wait for it */
    pthread_cond_t later;        /* and those that may not */
    bool is_watched;             /* a thread looks again soon; the ring's lock */
    bool is_over;                /* no part can be sent; the ring's lock */
};

static inline bool
helpers_stop(const struct session *session)
{
    return atomic_load_explicit(&session->stop, memory_order_relaxed) != 0;
}

/* How long a thread without work sleeps at most. */
static const int64_t HELPERS_SLEEP_NS = 1000000000;

/* Until a lost helper is called again, the first time. */
static const int64_t HELPER_PAUSE_NS = 100000000;

/* helper_state.c: how long until this connection may call its helper; 0: now. The ring's lock is
 * held. */
int64_t helper_until_call(struct line *line);

/* How long until it may ask for a part; 0: now. The ring's lock is held. */
int64_t helper_until_ask(struct line *line);

/* A part that was asked for came, or not, after `took_ns`; a thread here makes such a part in
 * `own_ns`. Was it missed: did a trainer wait, and threads had nothing to do? The ring's lock is
 * held. */
void helper_note_time(struct line *line, int64_t took_ns, int64_t own_ns, bool was_missed);

/* The connection stands; it is over, and the thread's error text says why; the helper makes other
 * bytes, and is not used any more (the text says what shows it); a part was not made elsewhere. */
void helper_note_up(struct line *line, uint32_t threads);
void helper_note_lost(struct line *line, bool was_connected);
void helper_bar(struct line *line);
void helper_note_failure(struct line *line, tundish_status status);

/* A part was made here, since a trainer waited; the answer is still to come. */
void helper_note_overtaken(struct line *line);

/* The time of a part, here or by way of the helper, whichever is longer. */
int64_t helper_usual_time(struct line *line, int64_t own_ns);

/* When a part that is sent now is late; and one that has come is counted, before it is used.
 * E_CORRUPT: it is not to be used, since the helper was barred meanwhile. */
int64_t helper_deadline(int64_t usual_ns);
tundish_status helper_count(struct line *line, const struct part *part,
                            const struct helper_made *made, int64_t took_ns);

/* helper_worker.c: the thread of a struct line. */
void *helper_work(void *line);

#endif
