/* landmarks.h - how many elements a filter has let through, by how many of its input: noted while
 * it decides, so that a later run which passes over them need not decide again.
 *
 * A list is of one pass through one filter at the top of a plan. Where nothing before the filter
 * draws or counts, all its passes are one; else a pass is told by what was counted when it began.
 * A list ends before the first element that fails or is left out: those count where they are met.
 *
 * The thread of the order calls.
 */
#ifndef ORDER_LANDMARKS_H
#define ORDER_LANDMARKS_H

#include <stdbool.h>
#include <stdint.h>

struct order_iterator;

enum {
    LANDMARK_LISTS = 16,
    LANDMARKS_AT_MOST = 16384, /* of a list; then every other one is dropped */
    LANDMARK_STEP = 256        /* elements of the input between two, at first, unless told */
};

struct order_landmark_list {
    uint64_t pass;
    uint64_t step;             /* LANDMARK_STEP, doubled some times */
    uint32_t count;            /* entry i of `passed` is after (i + 1) * step elements */
    uint32_t users, last_used; /* iterators, and when the last was made */
    uint64_t *passed;
    uint32_t room;
};

/* All zeros: there is none yet. */
struct order_landmarks {
    uint32_t step; /* between two at first; 0: LANDMARK_STEP */
    uint64_t seed; /* the root seed, if the order depends on it; else 0 */
    struct order_landmark_list lists[LANDMARK_LISTS];
    uint32_t list_count, clock;
    uint64_t noted; /* since they were kept in a file */
    uint64_t leapt; /* elements that were not decided again */
};

/* The list of the pass that an iterator of a filter is about to begin, or NULL: none is kept. Lent
 * until order_landmarks_end, which accepts NULL. */
struct order_landmark_list *order_landmarks_begin(const struct order_iterator *iterator);
void order_landmarks_end(struct order_landmark_list *list);

/* After the first `taken` elements `passed` have passed. Ignored between two landmarks. */
void order_landmarks_note(struct order_landmarks *landmarks, struct order_landmark_list *list,
                          uint64_t taken, uint64_t passed);

/* Elements between two landmarks, at first. */
uint64_t order_landmarks_step(const struct order_landmarks *landmarks);

/* The last landmark before the element that passes as the `count`th. False: there is none. */
bool order_landmarks_before(const struct order_landmark_list *list, uint64_t count,
                            uint64_t *ret_taken, uint64_t *ret_passed);

/* How many are known to pass. */
uint64_t order_landmarks_reach(const struct order_landmark_list *list);

/* Forget all lists. Accepts zeros. */
void order_landmarks_close(struct order_landmarks *landmarks);

#endif
