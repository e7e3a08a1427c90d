/* world.h - a run of the simulation: a server, its trainers, and what each knows of itself. */
#ifndef TESTS_SIMULATION_WORLD_H
#define TESTS_SIMULATION_WORLD_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "tundish/tundish.h"
#include "turns.h"

enum {
    ROWS = 60,
    BATCH = 6,
    STEPS = ROWS / BATCH,
    EPOCHS = 2,
    REPLICAS_MAX = 2,
    GROUPS_MAX = 3,
    SLICE = BATCH,
    TROUBLES_MAX = 6,
    TOKEN_BYTES = 1024,
    PATIENCE_S = 300 /* of made-up time without a batch */
};

static const int64_t MS = 1000000, SECOND = 1000000000;
static const int64_t STOP_NS = 40 * SECOND; /* of a trainer that is late, less than `rejoin` */

/* What a run is about. */
enum story {
    STORY_LANES,
    STORY_QUEUE,
    STORY_ENDING,
    STORY_SLOW,
    STORY_STATE,
    STORY_LATE,
    STORY_KEPT,
    STORY_TORN,
    STORY_COUNT
};

struct position {
    uint64_t epoch, step;
};

struct trainer {
    struct run *run;
    unsigned group, replica;
    struct turn *turn;
    tundish_reader *reader; /* NULL: it has not been let in yet */
    bool is_over;           /* END_OF_STREAM, or cut off where that may be */
    bool is_slow;
    struct position next;      /* what comes next by its own account */
    struct position saved;     /* what came next when it last saved a place */
    bool has_next;             /* without a place: it has had a batch */
    unsigned begun;            /* the server that this was of */
    const tundish_batch *held; /* of a queue: longer than until the next call, or NULL */
    bool is_over_end;          /* it was held over the end of its epoch */
    char token[TOKEN_BYTES];   /* that place; "": none yet */
    unsigned lives;
    int64_t comes_after_ns;
};

/* A queue's batch: given to whom, and what became of it; is_kept: the state that its server keeps
 * says that it was visited. */
struct visit {
    bool is_kept;
    unsigned given;
    unsigned server; /* which one it was of */
    const struct trainer *holder;
    unsigned life;
    bool is_done;
};

struct server {
    struct stats *stats;
    struct wakeup *wakeup;
    struct hub *hub;
    struct session *session;
    uint64_t generation;
};

struct run {
    uint64_t seed;
    enum story story;
    unsigned groups, replicas, trainer_count;
    struct spec_file *file;
    struct server server;
    bool is_restarted;
    struct trainer trainers[GROUPS_MAX * REPLICAS_MAX];
    bool group_is_cut[GROUPS_MAX];
    bool may_wait; /* nobody can tell the last of a group that the others have read all */
    unsigned troubles, servers;
    uint64_t batches;
    uint8_t rows[GROUPS_MAX][EPOCHS][ROWS]; /* how often a row was kept by a place */
    struct visit visits[EPOCHS][STEPS];
    struct position kept; /* what the server's file says: nobody lacks what is before */
    bool is_done[REPLICAS_MAX][EPOCHS][STEPS]; /* by this replica, of whatever life */
};

extern char world_folder[32];
extern char world_path[64]; /* the server's socket */
extern uint64_t world_seed;
extern bool world_is_torn; /* a thread that has shown something in a lane may sleep */
extern bool world_is_told; /* of everything that happens: one seed is played alone */

#define complain(...)                                                                              \
    do {                                                                                           \
        fprintf(stderr, "SEED=%llu: ", (unsigned long long)world_seed);                            \
        fprintf(stderr, __VA_ARGS__);                                                              \
        fprintf(stderr, "\n");                                                                     \
        abort();                                                                                   \
    } while (false)

#define tell(...)                                                                                  \
    do {                                                                                           \
        if (world_is_told) {                                                                       \
            fprintf(stderr, "%10.3f ms  ", (double)(turns_now_ns() % (1000 * SECOND)) / 1e6);      \
            fprintf(stderr, __VA_ARGS__);                                                          \
            fprintf(stderr, "\n");                                                                 \
        }                                                                                          \
    } while (false)

/* A queue, whose server keeps its place and comes back (STATE) or not. */
bool is_queue(const struct run *run);

/* Lanes, whose trainers go on with the server that follows one that was killed. */
bool has_survivors(const struct run *run);

/* Lanes, whose server keeps the place for trainers that save none. */
bool is_kept(const struct run *run);

/* Lanes, whose trainers do not die. Their server does, between any two of its threads' steps, as
 * when it has shown a batch or an end in one lane and not yet in another. */
bool is_torn(const struct run *run);

/* For people; until the next call. */
const char *name_of(const struct trainer *trainer);

/* Let it begin where it last saved a place. */
void start_trainer(struct trainer *trainer);

/* Has it been let in by the present server? */
bool is_here(const struct trainer *trainer);

/* As the kernel does it to a process: everything closed, nothing said. False: not at this moment.
 */
bool kill_trainer(struct trainer *trainer);

/* Who stands where, for whoever has to find out why. */
void print_standing(const struct run *run);

/* End all threads of a server at once, wherever they are. */
struct session;
void tear_apart(struct session *session);

/* Forget what a server has kept in files. */
void remove_state(void);

/* Start all, make trouble until they are through, and check what they got: the first turn. */
void direct(void *run);

#endif
