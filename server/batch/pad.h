/* pad.h - padded_batch: lists made equally long. */
#ifndef BATCH_PAD_H
#define BATCH_PAD_H

#include "content/frame.h"
#include "plan/plan.h"

/* Rows that are longer than the node's padded_shapes says for a dense column are bad. */
void pad_check_rows(const struct plan_node *node, uint32_t column_index, struct frame *rows);

/* Pad the lists of a dense column of batches, whose rows have been checked, to the longest of their
 * batch, or to what the node's padded_shapes says. */
tundish_status pad_column(const struct plan_node *node, uint32_t column_index, struct frame *frame);

#endif
