/* branches.h - the inputs of a stage that takes each element from one of them, and how far each was
 * taken: as a landmark's state, and gone on to from it.
 */
#ifndef ORDER_BRANCHES_H
#define ORDER_BRANCHES_H

#include "order/order.h"

/* All zeros: none. */
struct order_branches {
    struct order_iterator **inputs; /* NULL: at its end */
    uint64_t *taken;                /* elements of each */
    uint32_t count, open_count;
    bool stop_on_empty; /* the stage ends with the first of them */
};

/* Room for the first `count` inputs of the iterator's node; and make their iterators. May fail
 * half-way. Accepts zeros: close. */
void order_branches_begin(struct order_branches *branches, const struct order_iterator *iterator,
                          uint32_t count);
tundish_status order_branches_open(struct order_branches *branches,
                                   const struct order_iterator *iterator);
void order_branches_close(struct order_branches *branches);

/* An input has ended. Returns whether the stage has. */
bool order_branches_end(struct order_branches *branches, uint32_t input);

/* Write how far each was taken, `more[i]` elements ahead of that unless it is NULL, and whether its
 * end was met. */
void order_branches_write(const struct order_branches *branches, const uint64_t *more,
                          struct order_state_writer *writer);

/* Go on to where the inputs, of which none is taken yet, stood at a landmark. NO_VALUE: no stage
 * can have left it, and nothing was pulled. */
tundish_status order_branches_go_to(const struct order_iterator *iterator,
                                    struct order_branches *branches,
                                    const struct order_landmark *landmark);

#endif
