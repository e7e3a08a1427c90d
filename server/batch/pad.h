/* pad.h - padded_batch: lists made equally long. */
#ifndef BATCH_PAD_H
#define BATCH_PAD_H

#include "column/frame.h"
#include "plan/plan_node.h"

/* Rows that are longer than the node's padded_shapes says for a dense column are bad. */
void pad_check_rows(const struct plan_node *node, uint32_t column_index, struct frame *rows);

/* bucket_by_sequence_length with pad_to_bucket_boundary: the size that the unknown dimensions of
 * each batch are padded to, -1 where it has no rows. NULL: nothing of the kind. No column is padded
 * yet. */
const int64_t *pad_bucket_lengths(const struct plan_node *node, const struct frame *frame);

/* Pad the lists of a dense column of batches, whose rows have been checked, to what the node's
 * padded_shapes says, else to its bucket's length, else to the longest of their batch. */
tundish_status pad_column(const struct plan_node *node, uint32_t column_index,
                          const int64_t *bucket_lengths, struct frame *frame);

#endif
