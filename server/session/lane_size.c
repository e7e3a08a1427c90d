/* lane_size.c - slots times slices, and room for those that are larger. */
#include "session/lane_size.h"

#include "plan/batch_rows.h"
#include "session/session_spec.h"

/* Extra room in a lane, where the sizes of batches vary. */
#define VARYING_EXTRA (UINT64_C(1) << 20)
/* A lane has a page at least, and whole ones. */
#define PAGE UINT64_C(4096)

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

    /* The first step is only a sample. Where slices vary, later ones may be larger: add a
     * quarter. */
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
    if (size.arena_bytes < PAGE)
        size.arena_bytes = PAGE;
    if (size.most_bytes < size.arena_bytes)
        size.most_bytes = size.arena_bytes;
    *ret_size = size;
}

/* How much memory_limit leaves for the batches of a lane; 0: there is no limit. */
static uint64_t
lane_limit(const struct plan *plan, const struct lane_config *lane)
{
    const struct lane_config empty = { .slots = lane->slots, .spec = lane->spec };
    uint64_t share = plan->stream->deliver.memory_limit / plan->replicas;
    uint64_t frame = lane_segment_bytes(&empty);

    if (share == 0)
        return 0;
    return share > frame ? share - frame : 1;
}

void
lane_describe(const struct plan *plan, const tundish_spec *spec, struct lane_config *ret_config)
{
    const struct spec_stream *stream = plan->stream;

    *ret_config = (struct lane_config){
        .slots = stream->deliver.slots,
        .max_batch_bytes = stream->deliver.max_batch_bytes,
        .memory = stream->deliver.memory_memfd ? LANE_MEMFD : LANE_SHM,
        .huge_pages = stream->deliver.huge_pages,
        .checksums = stream->deliver.checksums,
        .queue = stream->distribute.delivery == DELIVER_QUEUE,
        .takes_back = stream->distribute.evaluation_shards != 0,
        .spec = spec,
    };
    ret_config->limit_bytes = lane_limit(plan, ret_config);
}

uint64_t
lane_reserve_bytes(const struct slice_bytes *slice)
{
    return slice->stored < slice->as_is ? slice->as_is : 0;
}

/* Under a limit the arena leaves the reserve free, unless the slots need more. */
static void
fit_limit(struct lane_config *lane, const struct slice_bytes *slice)
{
    uint64_t reserve = lane_reserve_bytes(slice), needed = lane->slots * slice->stored;
    uint64_t room = lane->limit_bytes > reserve ? lane->limit_bytes - reserve : 0;

    if (lane->limit_bytes == 0)
        return;
    room -= room % PAGE;
    if (lane->arena_bytes > room)
        lane->arena_bytes = needed > room ? needed : room;
    if (lane->most_bytes > lane->limit_bytes)
        lane->most_bytes = lane->limit_bytes;
}

void
lane_give_size(const struct fill *fill, const struct slice_bytes *slice, struct lane_config *lane)
{
    uint64_t given = fill->plan->stream->deliver.lane_bytes;
    struct lane_size size;

    lane_size(fill, slice, &size);
    lane->arena_bytes = given != 0 ? given : size.arena_bytes;
    lane->most_bytes = given != 0 ? given : size.most_bytes;
    if (given == 0)
        fit_limit(lane, slice);
}

/* False: only data tells. */
static bool
forecast_slice(const struct fill *fill, int64_t rows, struct slice_bytes *ret_slice)
{
    for (uint32_t i = 0; i < fill->plan->element_spec.count; i++)
        if (fill->columns[i].row_values < 0)
            return false;
    if (rows < 0)
        return false;
    fill_bytes_of_rows(fill, rows, ret_slice);
    return true;
}

static int64_t
segment_bytes(const struct fill *fill, const struct slice_bytes *slice, struct lane_config *lane)
{
    lane_give_size(fill, slice, lane);
    return (int64_t)lane_segment_bytes(lane);
}

static void
forecast_lane(const struct fill *fill, struct lane_config *lane, struct plan_lanes *lanes)
{
    const struct spec_deliver *deliver = &fill->plan->stream->deliver;
    int64_t share = (int64_t)(deliver->memory_limit / fill->plan->replicas);
    struct slice_bytes slice = { 0 };
    struct plan_rows rows;
    bool is_known;

    plan_rows(fill->plan, &rows);
    is_known = forecast_slice(fill, rows.slice, &slice);
    if (is_known || deliver->lane_bytes != 0) {
        lanes->lane_bytes = segment_bytes(fill, &slice, lane);
        lanes->is_exact = deliver->lane_bytes != 0 || (deliver->compression != COMPRESS_AUTO &&
                                                       fill_is_sized(fill) && !rows.may_be_fewer);
        slice.stored = slice.as_is;
        lanes->as_is_bytes = segment_bytes(fill, &slice, lane);
    }
    /* Serving chooses the codecs so that the lanes fit the limit, or is refused. So the limit
     * bounds the forecast. */
    if (!lanes->is_exact && share != 0 && (lanes->lane_bytes < 0 || lanes->lane_bytes > share))
        lanes->lane_bytes = share;
}

void
lane_forecast(const struct plan *plan, struct plan_lanes *ret_lanes)
{
    struct plan_lanes lanes = { .lane_bytes = -1, .as_is_bytes = -1 };
    struct lane_config lane;
    tundish_spec spec;
    struct fill fill;

    if (session_spec_open(plan, &spec) == TUNDISH_OK) {
        fill_open(plan, &fill);
        lane_describe(plan, &spec, &lane);
        forecast_lane(&fill, &lane, &lanes);
        fill_close(&fill);
        session_spec_close(&spec);
    }
    *ret_lanes = lanes;
}
