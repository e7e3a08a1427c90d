/* arguments.h - what the plan decides about order stages: plan_node.arguments. Each form has one
 * struct, if any; a stage may have its own.
 */
#ifndef ORDER_ARGUMENTS_H
#define ORDER_ARGUMENTS_H

#include "order/ops.h"

/* ORDER_BATCHES. */
struct batch_arguments {
    enum order_rows rows;
    bool to_boundary; /* padded: unknown dimensions to the length of a bucket (batch/pad.h) */
};

/* ORDER_REBATCHES. A piece is an element of the input whose runs are cut to the rows wanted; where
 * content is cut (plan_node.cuts_content), the whole element and two more words (run.h). */
struct rebatch_arguments {
    int64_t rows; /* of each element of the input; 0: as its runs say, -1: as its content does */

    /* deal_carry: what the size of each slice in turn follows from. */
    int64_t batch, slices, rotation;
};

/* ORDER_SLICES. Where content is cut, each column by its own length: the element is the input's
 * and, as the last word, the slice's number. Else each run word is a slice's. */
struct slices_arguments {
    int64_t slices;    /* that each batch is cut into */
    bool whole_only;   /* batches of which a slice would have no row are left out */
    bool even;         /* batches are filled up until all slices have equally many rows */
    bool rows_unknown; /* even: the order does not know how many rows a batch has */
};

/* Does each slice get a row, if `rows` rows are cut into slices of ceil(rows / slices)? */
static inline bool
slices_are_filled(uint64_t rows, uint64_t slices)
{
    uint64_t each = rows / slices + (rows % slices != 0);

    return rows >= slices && (slices - 1) * each < rows;
}

/* ORDER_UNBATCHES has none. Where content is cut, the element is the input's and, as the last word,
 * the row's number. Else each run word is replaced by a row's words (order_row_width). */

/* ORDER_FUNCTION. */
struct function_arguments {
    int64_t cycle_length, block_length; /* of one that the plan puts in */
};

/* ordinal. */
struct ordinal_arguments {
    const struct spec_stage *stage; /* that draws by its numbers */
    uint32_t counter;               /* order_instance.draws: where it counts */
    bool one_by_one;                /* elements before it are numbered in the same counter */
};

/* shard. */
enum shard_role {
    SHARD_WITHIN,
    SHARD_LAST,         /* auto_shard: DATA */
    SHARD_OF_EVALUATION /* its numbers are those of the iterator's services */
};

struct shard_arguments {
    int64_t shards, index; /* 0 shards: the parameters are meant */
    bool whole_round;      /* FILE: each shard must have an element */
    enum shard_role role;
};

/* Stages that the plan puts in. */
extern const struct order_ops order_shuffle, order_shard, order_ordinal, order_deal_split,
    order_deal_carry, order_interleave, order_flat_map;

#endif
