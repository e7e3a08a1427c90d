/* landmarks.h - how many elements a stage has brought, by how many of its input: noted while it
 * looks at their content, so that a later run which passes over them need not look again. A stage
 * that draws, or makes batches, counts those instead.
 *
 * A list is of one pass through one stage at the top of a plan. Where nothing before the stage
 * draws or counts, all its passes are one; else a pass is told by what was counted when it began.
 * A list ends before the first element that fails or is left out: those count where they are met.
 *
 * A stage that holds elements notes which ones, as its state (held.h); one that has several inputs
 * how far each was taken (branches.h).
 *
 * The thread of the order calls.
 */
#ifndef ORDER_LANDMARKS_H
#define ORDER_LANDMARKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "order/state.h"

struct order_iterator;
struct plan_node;

enum {
    LANDMARK_LISTS = 16,
    LANDMARKS_AT_MOST = 16384,        /* of a list; then every other one is dropped */
    LANDMARK_STEP = 256,              /* elements of the input between two, at first, unless told */
    LANDMARK_STATE_BYTES = 64 * 1024, /* a longer state is not kept */
    LANDMARK_LIST_BYTES = 2 * 1024 * 1024, /* of all states of a list; then every other one goes */
};

struct order_landmark_list {
    uint64_t pass;
    uint64_t step;             /* LANDMARK_STEP, doubled some times */
    uint32_t count;            /* entry i of `passed` is after (i + 1) * step elements */
    uint32_t users, last_used; /* iterators, and when the last was made */
    uint64_t *passed;
    uint32_t room;
    bool are_parts; /* more may have passed than were taken */

    uint64_t *state_ends; /* of each landmark, in `states`; NULL: the stage holds nothing */
    uint8_t *states;
    size_t state_room;
};

/* One that is lent until the list is noted in. */
struct order_landmark {
    uint64_t taken, passed;
    const uint8_t *state; /* NULL: none */
    size_t state_bytes;
};

/* All zeros: there is none yet. */
struct order_landmarks {
    uint32_t step; /* between two at first; 0: LANDMARK_STEP */
    uint64_t seed; /* the root seed, if the order depends on it; else 0 */
    struct order_landmark_list lists[LANDMARK_LISTS];
    uint32_t list_count, clock;
    uint64_t noted; /* since they were kept in a file */
    uint64_t leapt; /* elements that were not decided again */
    struct order_state_writer writer;
};

/* Does it note landmarks where it stands in a plan's own graph? One with a function does if that
 * decides by content, and can be called again in another run. */
bool order_is_noted(const struct plan_node *node);

/* The list of the pass that an iterator is about to begin, or NULL: none is kept. Lent
 * until order_landmarks_end, which accepts NULL. */
struct order_landmark_list *order_landmarks_begin(const struct order_iterator *iterator);
void order_landmarks_end(struct order_landmark_list *list);

/* Is a landmark after the first `taken` elements the next one of the list? */
bool order_landmarks_want(const struct order_landmark_list *list, uint64_t taken);

/* Note it, if it is. Steps are at least as long as the state, so that writing it costs little. */
void order_landmarks_note(struct order_landmarks *landmarks, struct order_landmark_list *list,
                          const struct order_landmark *landmark);

/* Elements between two landmarks, at first. */
uint64_t order_landmarks_step(const struct order_landmarks *landmarks);

/* Forget those after more than the first `taken` elements. */
void order_landmarks_cut(struct order_landmark_list *list, uint64_t taken);

/* The last landmark before the element that passes as the `count`th, of those that have a state if
 * the stage has any. False: there is none. */
bool order_landmarks_before(const struct order_landmark_list *list, uint64_t count,
                            struct order_landmark *ret_landmark);

/* Read its state from the first byte; where it has none, there is nothing to read. */
struct order_state_reader order_landmark_read(const struct order_landmark *landmark);

/* Has any pass of this run or an earlier one left some? */
bool order_landmarks_are_there(const struct order_landmarks *landmarks);

/* How many are known to pass. */
uint64_t order_landmarks_reach(const struct order_landmark_list *list);

/* The bytes of all states. */
size_t order_landmarks_state_bytes(const struct order_landmark_list *list);

/* Free what a list holds. Accepts zeros. */
void order_landmarks_empty(struct order_landmark_list *list);

/* Forget all lists. Accepts zeros. */
void order_landmarks_close(struct order_landmarks *landmarks);

#endif
