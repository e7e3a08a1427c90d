/* start_barrier.h - where and when the first step is dealt.
 *
 * session->control.lock is held for all functions here.
 */
#ifndef SESSION_START_BARRIER_H
#define SESSION_START_BARRIER_H

#include "deliver/feed.h"
#include "session/checkpoint/place_contents.h"

struct session;

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
/* Start the session's threads. Trainers are told where that fails. */
void start_barrier_go_on(struct session *session);

#endif
