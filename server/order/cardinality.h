/* cardinality.h - how many elements a pass has, as far as tf.data tells without making one. A cache
 * is complete once it has that many, even if END was not requested. */
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

/* The rest is for order_ops.cardinality. */

struct order_counting {
    struct order_instance *instance;
    bool at_most; /* a bound will do where the number is not known */
};

int64_t order_count(const struct plan_node *node, const struct order_counting *counting);

/* A stage has as many as its input, or at most; a source as many as it counts. */
int64_t order_count_input(const struct plan_node *node, const struct order_counting *counting);
int64_t order_count_some(const struct plan_node *node, const struct order_counting *counting);
int64_t order_count_source(const struct plan_node *node, const struct order_counting *counting);

/* A parameter of the stage; unknown if it has no number here. */
int64_t order_count_parameter(const struct plan_node *node, const struct order_counting *counting,
                              const char *parameter);

/* `count` elements, `times` over. */
int64_t order_count_times(int64_t count, int64_t times);

#endif
