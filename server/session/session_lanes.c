/* session_lanes.c - the first step measured, and lanes sized by it. */
#include "session/session_lanes.h"

#include <stdio.h>

#include "core/cpu_room.h"
#include "core/memory_room.h"
#include "core/must.h"
#include "session/compress.h"
#include "session/lane_size.h"
#include "session/session_private.h"
#include "shm/segment.h"

/* How much an arena may take before memory counts as scarce. */
static uint64_t
arena_allowed(const struct session *session, const struct lane_config *lane)
{
    const struct spec_deliver *deliver = &session->plan->stream->deliver;
    uint64_t allowed = lane->limit_bytes != 0
                           ? lane->limit_bytes
                           : tnd_segment_room(deliver->memory_memfd) / 2 / session->plan->replicas;

    return deliver->lane_bytes != 0 && deliver->lane_bytes < allowed ? deliver->lane_bytes
                                                                     : allowed;
}

/* The lanes of all replicas may take this part of the allowed memory before it counts as tight. */
enum { TIGHT_PARTS = 8 };

/* deliver.compression: auto. */
static void
choose_codecs(struct session *session, const struct lane_config *lane,
              const struct deal_slice *slice, struct slice_bytes *bytes)
{
    struct worker *worker = &session->workers[0];
    uint64_t allowed = arena_allowed(session, lane);
    uint32_t processors = tnd_cpu_count(), replicas = session->plan->replicas;
    struct compress_room room = {
        .scarce_bytes = allowed,
        .spare_bytes = lane->limit_bytes != 0 ? bytes->as_is : 0,
        .tight_bytes = allowed / TIGHT_PARTS,
        .sharers = replicas < processors ? replicas : processors,
    };

    compress_columns(&session->fill, &worker->evaluation, worker->context, slice, bytes, &room,
                     &session->compressed);
    (void)fill_open_packed(&session->fill, session->compressed.why == WHY_SCARCE, &session->packed);
    if (session->compressed.saved_bytes > 0)
        (void)fill_measure(&session->fill, &worker->evaluation, worker->context, slice, bytes);
}

/* Measure the largest slice of the first step, which sizes the lanes where shapes do not. If the
 * step fails here it fails again when it is dealt, where trainers can be told. So neither the
 * failure nor any figure counts here. */
static struct slice_bytes
measure_first_step(struct session *session, const struct lane_config *lane)
{
    struct worker *worker = &session->workers[0];
    const struct deal_slice *slice = NULL;
    struct deal_round round = { 0 };
    struct slice_bytes largest = { 0 };
    bool is_auto = session->plan->stream->deliver.compression == COMPRESS_AUTO;

    must_in_debug(!session->is_measured && session->dealer != NULL);
    worker->evaluation.counters = NULL;
    if (dealer_start_epoch(session->dealer) == TUNDISH_OK)
        (void)dealer_next(session->dealer, &round);
    for (uint32_t r = 0; r < round.present_count; r++) {
        struct slice_bytes bytes;

        scratch_reset(worker->evaluation.scratch);
        if (fill_measure(&session->fill, &worker->evaluation, worker->context, &round.slices[r],
                         &bytes) != TUNDISH_OK)
            continue;
        if (bytes.stored > largest.stored)
            largest.stored = bytes.stored;
        if (bytes.as_is > largest.as_is) {
            largest.as_is = bytes.as_is;
            slice = &round.slices[r];
        }
    }
    session->compressed.why = is_auto ? WHY_UNMEASURED : WHY_ASKED;
    if (slice != NULL && is_auto)
        choose_codecs(session, lane, slice, &largest);
    scratch_reset(worker->evaluation.scratch);
    dealer_release_round(&round);
    dealer_close(session->dealer);
    session->dealer = NULL;
    session->is_measured = true;
    worker->evaluation.counters = &worker->counters.evaluation;
    worker->skipped = worker->evaluation.skipped;
    return largest;
}

/* Compare the size of all lanes with the file's limit and the machine's memory. */
static tundish_status
check_lanes(const struct session *session, const struct lane_config *lane,
            const struct slice_bytes *slice)
{
    const struct spec_deliver *deliver = &session->plan->stream->deliver;
    struct tnd_memory_room room;
    uint64_t each = lane_segment_bytes(lane), all;

    tnd_memory_room(&room);
    if (deliver->memory_limit != 0 && deliver->memory_limit < room.bytes) {
        room.bytes = deliver->memory_limit;
        each += lane_reserve_bytes(slice);
        snprintf(room.why, sizeof room.why, "memory_limit");
    }
    if (__builtin_mul_overflow(each, session->plan->replicas, &all))
        all = UINT64_MAX;
    if (all <= room.bytes)
        return TUNDISH_OK;
    return tnd_fail(TUNDISH_E_MEMORY,
                    "%u lanes of %u slots need %llu bytes (the first batch has %llu), but there is "
                    "room for %llu (%s): use fewer slots, smaller batches or compression",
                    session->plan->replicas, deliver->slots, (unsigned long long)all,
                    (unsigned long long)slice->as_is, (unsigned long long)room.bytes, room.why);
}

tundish_status
session_size_lanes(struct session *session, struct lane_config *lane)
{
    struct slice_bytes slice = measure_first_step(session, lane);
    tundish_status status;

    session->step_bytes = slice.stored * session->plan->replicas;
    lane_give_size(&session->fill, &slice, lane);
    session_stats_compression(session, lane, &slice, arena_allowed(session, lane));
    status = session_open_dealer(session);
    return status == TUNDISH_OK ? check_lanes(session, lane, &slice) : status;
}
