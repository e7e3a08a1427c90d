/* lane_size.h - how much room a lane has for batches.
 *
 * Its arena holds as many batches as it has slots, at the size they are stored in. Where that is
 * not the size they have as they are, a batch may come that the codec cannot make smaller, and a
 * hundred after it. Then the lane grows, a segment for a batch, to the size it would have had
 * without compression, or to what deliver.memory_limit leaves it: what is stored worse than
 * expected takes more memory, or is made less far ahead, but is never refused for it.
 */
#ifndef SESSION_LANE_SIZE_H
#define SESSION_LANE_SIZE_H

#include "plan/memory_cost.h"
#include "session/fill.h"

struct lane_size {
    uint64_t arena_bytes; /* to begin with */
    uint64_t most_bytes;  /* the limit of its growth */
};

/* The size of a lane for slices of about this size. */
void lane_size(const struct fill *fill, const struct slice_bytes *slice,
               struct lane_size *ret_size);

/* The configuration of a lane from the plan and the limit, all but its size. */
void lane_describe(const struct plan *plan, const tundish_spec *spec,
                   struct lane_config *ret_config);

/* Size a lane that is described, for slices of about this size; deliver.lane_bytes has precedence,
 * and a limit holds. */
void lane_give_size(const struct fill *fill, const struct slice_bytes *slice,
                    struct lane_config *lane);

/* The room that stays free under a limit for a batch that does not compress: the trainer may hold
 * one while it waits for the next. */
uint64_t lane_reserve_bytes(const struct slice_bytes *slice);

/* The memory of all lanes, as far as shapes tell it before there is data. */
void lane_forecast(const struct plan *plan, struct plan_lanes *ret_lanes);

#endif
