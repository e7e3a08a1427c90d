/* lane_size.c - slots times slices, and room for those that are larger. */
#include "session/lane_size.h"

/* Room in a lane beside its slots, where batches differ. */
#define VARYING_EXTRA (UINT64_C(1) << 20)
/* A lane has a page at least. */
#define ARENA_LEAST UINT64_C(4096)

static uint64_t
times(uint64_t slices, uint64_t bytes)
{
    uint64_t all;

    return __builtin_mul_overflow(slices, bytes, &all) ? UINT64_MAX / 4 : all;
}

static uint64_t
smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

void
lane_size(const struct fill *fill, const struct slice_bytes *slice, struct lane_size *ret_size)
{
    const struct spec_deliver *deliver = &fill->plan->stream->deliver;
    struct lane_size size;

    size.most_bytes = fill->is_even
                          ? times(deliver->slots, slice->as_is)
                          : times(deliver->slots, slice->as_is + slice->as_is / 4) + VARYING_EXTRA;
    if (fill->is_even && fill_is_sized(fill))
        size.arena_bytes = times(deliver->slots, slice->stored);
    else if (slice->stored == slice->as_is)
        size.arena_bytes = size.most_bytes;
    else
        size.arena_bytes =
            smaller(size.most_bytes, times(deliver->slots, slice->stored + slice->stored / 4) +
                                         smaller(VARYING_EXTRA, slice->as_is));
    if (size.arena_bytes < ARENA_LEAST)
        size.arena_bytes = ARENA_LEAST;
    if (size.most_bytes < size.arena_bytes)
        size.most_bytes = size.arena_bytes;
    *ret_size = size;
}
