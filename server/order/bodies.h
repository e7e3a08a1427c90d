/* bodies.h - the datasets of a function for all elements of an input, concatenated, with random
 * access: flat_map for stages that read elements in another order. */
#ifndef ORDER_BODIES_H
#define ORDER_BODIES_H

#include "order/order.h"

struct body {
    uint64_t first; /* number of its first element */
    struct order_iterator *iterator;
    struct order_instance *instance;
    struct order_scope *scope;
};

struct bodies {
    struct body
        *list; /* NULL: not made yet; the entry after the last holds the number of all elements */
    uint64_t count;
};

/* Make the datasets of all elements of `input`. Input and datasets are indexed; each is read as far
 * as counting it takes. */
tundish_status bodies_open(struct bodies *bodies, const struct order_iterator *iterator,
                           struct order_iterator *input);

/* As order_ops.at. */
tundish_status bodies_at(const struct bodies *bodies, const struct plan_node *node,
                         const uint64_t *indices, size_t index_count, uint64_t *words);

void bodies_close(struct bodies *bodies, const struct plan_node *node); /* accepts zeros */

#endif
