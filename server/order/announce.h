/* announce.h - tells the sources in a function's body of the elements that come next, so that files
 * far away are asked for at the same time, before their datasets are opened one by one.
 *
 * The elements are those of a copy of the input, which runs ahead: no dataset object counts them.
 */
#ifndef ORDER_ANNOUNCE_H
#define ORDER_ANNOUNCE_H

#include "order/order.h"

struct announce {
    struct order_iterator *input;    /* the copy; NULL: nothing is announced */
    struct order_instance *instance; /* ... and its own */
    struct order_services services;
    uint64_t cycle_length;
    uint64_t taken, told; /* by the function; by the copy */
};

/* Before the input is opened. `cycle_length`: how many datasets are read by turns. */
void announce_open(struct announce *announce, const struct order_iterator *function,
                   uint64_t cycle_length);

/* The function has pulled this element, and is about to open its dataset. */
void announce_step(struct announce *announce, const struct order_iterator *function,
                   const uint64_t *words);

void announce_close(struct announce *announce); /* accepts zeros */

#endif
