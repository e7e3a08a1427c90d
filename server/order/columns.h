/* columns.h - the columns of an order stage's elements, from those of its inputs: what several
 * stages have in common of order_ops.columns. */
#ifndef ORDER_COLUMNS_H
#define ORDER_COLUMNS_H

#include "order/planning.h"

/* The columns and the depth of the first input. */
void order_pass_columns(struct plan_node *node);

/* The columns of a stage that batches have one dimension more in front, of `length` or -1: not
 * known before. Notes `rows` in its arguments; padded ones are so by the parameters PADDING of the
 * stage. */
tundish_status order_batch_columns(const struct order_planning *planning, struct plan_node *node,
                                   enum order_rows rows, int64_t length);

/* The length of every batch, if batch_size is a literal and none is partial; else -1. */
int64_t order_batch_length(const struct order_planning *planning, const struct plan_node *node);

/* Complain if the column has no rows. */
tundish_status order_check_rows(const struct order_planning *planning, const struct plan_node *node,
                                const struct column_spec *column);

/* Columns that hold for all of the first `input_count` inputs: unlike dimensions become unknown. */
tundish_status order_merge_columns(const struct order_planning *planning, struct plan_node *node,
                                   uint32_t input_count);

#endif
