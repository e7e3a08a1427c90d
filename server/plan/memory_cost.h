/* memory_cost.h - the memory that a plan needs, as far as shapes tell. */
#ifndef PLAN_MEMORY_COST_H
#define PLAN_MEMORY_COST_H

#include "plan/plan.h"

/* -1 where a dimension is not known before the data; INT64_MAX for more than can be counted. */
struct plan_memory {
    int64_t slice_bytes;  /* one slice of one replica */
    int64_t window_bytes; /* references held by shuffles, caches */
};

/* Shared memory that a server takes when it starts, if batches are complete; -1 if only data tells.
 * Made where lanes are known (session/lane_size.h). */
struct plan_lanes {
    int64_t lane_bytes;  /* of one replica */
    int64_t as_is_bytes; /* the same without compression */
    bool is_exact;       /* else lane_bytes is the most */
};

void plan_memory(const struct plan *plan, struct plan_memory *ret_memory);

/* E_MEMORY if the batches of one step are larger than max_batch_bytes or memory_limit allow, or
 * than what the machine and this process' control groups have left. The text holds the arithmetic.
 */
tundish_status plan_memory_check(const struct plan *plan);

#endif
