/* session_work.c - workers take parts of steps (step.h), and make their content. */
#include "session/session_private.h"

#include <time.h>

#include "core/clock.h"
#include "core/memory.h"
#include "core/must.h"
#include "core/numa.h"

/* Between two looks for room. */
static const int64_t RETRY_NS = 100000;
/* Where parts take less than UNTIMED_NS, the stages of one part in UNTIMED_PARTS + 1 are timed. A
 * reading of the clock takes a fortieth of a batch of one microsecond, and each stage needs one. */
static const int64_t UNTIMED_NS = 5000;
enum { UNTIMED_PARTS = 7 };
/* The average time of a part covers about this many parts. */
enum { PARTS_REMEMBERED = 8 };

/* Wait for room in the arena. This ends: the lowest step gets a segment of its own once a trainer
 * waits for it (lane.h), and parts are taken in step order. */
tundish_status
session_reserve_whole(struct worker *worker, struct share *share, uint32_t replica)
{
    struct session *session = worker->session;
    tundish_status status = feed_reserve(session->feed, replica, &share->slot);
    int64_t began_ns, ended_ns;

    must_in_debug(!share->reserved);
    if (status != TUNDISH_E_TIMEOUT)
        return status;
    began_ns = tnd_clock_ns();
    while (status == TUNDISH_E_TIMEOUT) {
        /* Relaxed: the flag carries no data, and session_halt joins this thread. */
        if (atomic_load_explicit(&session->stop, memory_order_relaxed))
            return tnd_fail(TUNDISH_STOPPED, "stopped while a batch waited for room");
        nanosleep(&(struct timespec){ .tv_nsec = RETRY_NS }, NULL);
        status = feed_reserve(session->feed, replica, &share->slot);
    }
    ended_ns = tnd_clock_ns();
    worker->part_waited_ns += ended_ns - began_ns;
    worker_count_wait(worker, true, began_ns, ended_ns);
    return status;
}

/* Reserve the slot of a slice that is to be made, if those before were of one size, and it may be
 * as large. Then its values need not be copied there. */
static void
reserve_ahead(struct worker *worker, struct share *share, uint32_t replica)
{
    must_in_debug(!share->reserved);
    if (!worker->expects || !fill_expects(share->fill))
        return;
    fill_expect(share->fill, worker->expected_bytes, &share->slot);
    share->reserved = feed_reserve(worker->session->feed, replica, &share->slot) == TUNDISH_OK;
}

/* The next slice may be as large as this one, unless this one is of another size than the last. */
static void
note_bytes(struct worker *worker, struct share *share)
{
    uint32_t count = worker->session->plan->element_spec.count;

    must_in_debug(share->reserved);
    worker->expects = true;
    if (worker->expected_bytes == NULL)
        worker->expected_bytes = tnd_zalloc(count, sizeof *worker->expected_bytes);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t bytes = slot_values(&share->slot, i)->stored_bytes;

        worker->expects &= worker->expected_bytes[i] == bytes;
        worker->expected_bytes[i] = bytes;
    }
}

static tundish_status
make_whole(struct worker *worker, struct step *step, uint32_t replica)
{
    struct share *share = &step->shares[replica];
    struct health *health = &worker->session->counters.health;
    struct filled filled;
    tundish_status status;

    must_in_debug(!share->reserved && step->state == STEP_OPEN);
    step_name_slot(step, share);
    reserve_ahead(worker, share, replica);
    filled.reserved = share->reserved ? worker->expected_bytes : NULL;
    status = fill_make(share->fill, &worker->evaluation, worker->context,
                       &step->round.slices[replica], &share->slot, &filled);
    if (status != TUNDISH_OK)
        return status;
    if (share->reserved &&
        !fill_fits(share->fill, worker->evaluation.scratch, &filled, &share->slot)) {
        lane_cancel(feed_lane(worker->session->feed, replica), &share->slot);
        share->reserved = false;
    }
    if (health_is_due(health, worker->now_ns))
        health_look(health, filled.columns, worker->now_ns);
    if (!share->reserved)
        status = session_reserve_whole(worker, share, replica);
    if (status != TUNDISH_OK)
        return status;
    share->reserved = true;
    fill_copy(share->fill, &filled, &share->slot);
    note_bytes(worker, share);
    return TUNDISH_OK;
}

/* Slices that are cut from one batch have it made once. */
static tundish_status
make_slices(struct worker *worker, const struct part *part)
{
    struct evaluated_whole whole = { 0 };
    tundish_status status = TUNDISH_OK;

    must_in_debug(part->replica + part->more < worker->session->plan->replicas);
    worker->evaluation.whole = part->more > 0 ? &whole : NULL;
    for (uint32_t i = 0; i <= part->more && status == TUNDISH_OK; i++)
        status = make_whole(worker, part->step, part->replica + i);
    worker->evaluation.whole = NULL;
    return status;
}

tundish_status
session_make_part(struct worker *worker, const struct part *part)
{
    struct step *step = part->step;
    struct share *share = &step->shares[part->replica];
    struct health *health = &worker->session->counters.health;
    tundish_status status;

    must_in_debug(step->state == STEP_OPEN);
    if (!share->fill->in_place)
        return make_slices(worker, part);
    status = fill_part(share->fill, &worker->evaluation, &step->round.slices[part->replica],
                       part->begin, part->end, &share->slot);
    if (status == TUNDISH_OK && health_is_due(health, worker->now_ns))
        health_look(health,
                    fill_part_columns(share->fill, part->begin, part->end, &share->slot,
                                      worker->evaluation.scratch),
                    worker->now_ns);
    return status;
}

static bool
has_short_parts(const struct worker *worker)
{
    return worker->part_ns > 0 && worker->part_ns < UNTIMED_NS;
}

/* Are the stages of the next part timed? */
static void
choose_timing(struct worker *worker)
{
    struct evaluation_counters *counters = &worker->counters.evaluation;

    if (!counters->is_untimed)
        counters->untimed_parts = 0;
    counters->is_untimed = has_short_parts(worker) && counters->untimed_parts < UNTIMED_PARTS;
    counters->untimed_parts += counters->is_untimed;
    counters->now_ns = worker->now_ns;
}

/* Look at content for the order. Its time is the thread's, as that of a part. */
static void
make_look(struct worker *worker, struct order_look *look)
{
    int64_t began_ns = worker->now_ns;

    must_in_debug(look->state == LOOK_RUNS);
    worker->counters.evaluation.is_untimed = false;
    worker->counters.evaluation.now_ns = 0;
    evaluate_look(&worker->evaluation, look);
    scratch_reset(worker->evaluation.scratch);
    ring_lock(worker->session);
    ring_finish_look(worker, look);
    budget_end(&worker->memory);
    tnd_stats_add(&worker->counters.thread->busy, (uint64_t)(worker->now_ns - began_ns));
}

void *
session_work(void *argument)
{
    struct worker *worker = argument;
    struct session *session = worker->session;
    struct part part;

    pthread_setname_np(pthread_self(), "work"); /* as top -H and perf show it */
    if (session->options.pin)
        tnd_numa_bind_thread((uint32_t)(worker - session->workers));
    worker->now_ns = tnd_clock_ns();
    worker->waits = WAITS_FOR_NOTHING;
    ring_lock(session);
    while (ring_take(worker, &part)) {
        int64_t began_ns = worker->now_ns, busy_ns;
        uint64_t number;
        tundish_status status;

        if (part.look != NULL) {
            make_look(worker, part.look);
            continue;
        }
        number = part.step->number;
        choose_timing(worker);
        worker->part_waited_ns = 0;
        status = session_make_part(worker, &part);
        scratch_reset(worker->evaluation.scratch);
        ring_lock(session);
        ring_finish(worker, &part, status);
        budget_end(&worker->memory); /* only now: a trainer may wait for the step */
        busy_ns = worker->now_ns - began_ns - worker->part_waited_ns;
        worker->part_ns += (busy_ns - worker->part_ns) / PARTS_REMEMBERED;
        ring_note_made(worker, busy_ns);
        tnd_stats_add(&worker->counters.thread->busy, (uint64_t)busy_ns);
        stats_event(worker->counters.evaluation.track, began_ns, worker->now_ns,
                    TND_STATS_MAKES_PART, number);
    }
    return NULL;
}
