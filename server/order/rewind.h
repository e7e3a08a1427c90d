/* rewind.h - which inputs can be rewound to their beginning, and whether all passes through them
 * are alike: with that a stage can skip passes without making their elements.
 */
#ifndef ORDER_REWIND_H
#define ORDER_REWIND_H

#include "order/order.h"

/* The counts of the dataset objects of a graph, and of all that draws. */
struct order_counts {
    uint32_t node_count, draw_count;
    uint64_t *iterators, *elements, *draws;
};

void order_counts_save(const struct order_instance *instance, struct order_counts *ret_counts);
void order_counts_close(struct order_counts *counts); /* accepts zeros */

/* Set the counts back to those saved; no iterator made since may be left. Only for inputs of which
 * order_can_rewind. */
void order_counts_restore(struct order_instance *instance, const struct order_counts *counts);

/* Count `times` more passes like the one from `before` to now. Only where order_passes_are_alike.
 */
void order_counts_add_passes(struct order_instance *instance, const struct order_counts *before,
                             uint64_t times);

/* The counts of `node` and of all before it, into `ret_counts` unless that is NULL, and how many
 * there are. In a body without those of draws: these are not its own. */
size_t order_counts_before(const struct order_instance *instance, const struct plan_node *node,
                           uint64_t **ret_counts);

/* Does nothing but the counts tell a later iterator of `node` that there was one before? False also
 * where content would be made twice. */
bool order_can_rewind(const struct plan_node *node);

/* The same of the datasets of a body, one of which is made for an outer element: can it be made
 * again while the element is there? */
bool order_can_reopen(const struct plan_graph *body);

/* Does each pass through `node` have as many elements as the others, and add as much to the counts?
 * False also means that it is not known without looking. */
bool order_passes_are_alike(const struct plan_node *node);

#endif
