/* planning.h - for order stages while the plan is made: their arguments, and complaints.
 */
#ifndef ORDER_PLANNING_H
#define ORDER_PLANNING_H

#include "order/order.h"

/* Complain at the stage of a node. */
tundish_status order_complain(struct spec_errors *errors, const struct plan_node *node,
                              const char *format, ...) __attribute__((format(printf, 3, 4)));

/* The literal integer of a stage's parameter, or `otherwise` if it is a variable, null or absent.
 */
int64_t order_literal(const struct plan_node *node, const char *parameter, int64_t otherwise);

/* Is the parameter written, or by default, `true`? */
bool order_is_true(const struct plan_node *node, const char *parameter);

/* Is `node` endless? (If its input has any element.) */
bool order_is_endless(const struct plan_node *node);

/* For order_ops.is_endless: is any of its inputs, or are all? */
bool order_any_is_endless(const struct plan_node *node);
bool order_all_are_endless(const struct plan_node *node);

#endif
