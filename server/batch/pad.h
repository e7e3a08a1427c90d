/* pad.h - padded_batch: lists made equally long. */
#ifndef BATCH_PAD_H
#define BATCH_PAD_H

#include "content/frame.h"
#include "plan/plan.h"

/* Pad the lists of a dense column of batches to the longest of their batch, or to what the node's
 * padded_shapes says. A list that is longer than that makes its batch bad. */
tundish_status pad_column(const struct plan_node *node, uint32_t column_index, struct frame *frame);

#endif
