/* cardinality.h - how many elements a pass has, as far as tf.data tells without making one. A cache
 * is whole once it has that many, even if nobody has asked for the end. */
#ifndef ORDER_CARDINALITY_H
#define ORDER_CARDINALITY_H

#include "order/order.h"

enum { CARDINALITY_INFINITE = -1, CARDINALITY_UNKNOWN = -2 };

/* The dataset objects are left as they were. A list of files counts where there is a table of files
 * (order_services.files). */
int64_t order_cardinality(const struct plan_node *node, struct order_instance *instance);

/* A number that it does not exceed, also where tf.data tells none: take's count, whatever it takes
 * from, or what a filter is given. */
int64_t order_count_at_most(const struct plan_node *node, struct order_instance *instance);

#endif
