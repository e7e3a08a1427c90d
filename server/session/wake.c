/* wake.c - whom to wake. */
#include "session/wake.h"

#include "core/must.h"

void
wake_open(struct wake *wake, uint32_t worker_count, uint32_t lane_count)
{
    must_in_debug(worker_count > 0 && lane_count > 0);
    *wake = (struct wake){ .worker_count = worker_count, .has_one_lane = lane_count == 1 };
}

void
wake_on_made(struct wake *wake, int64_t part_ns, int64_t busy_ns, int64_t now_ns)
{
    must_in_debug(busy_ns >= 0);
    if (busy_ns > WAKE_LONG_NS && now_ns + WAKE_CALM_TIMES * busy_ns > wake->calm_from_ns)
        wake->calm_from_ns = now_ns + WAKE_CALM_TIMES * busy_ns;
    wake->has_short_parts = part_ns > 0 && part_ns < WAKE_SHORT_NS && now_ns > wake->calm_from_ns;
}

bool
wake_on_wait(struct wake *wake)
{
    must_in_debug(wake->idle_workers < wake->worker_count);
    wake->idle_workers++;
    if (wake->a_worker_polls || wake_has_enough(wake, 1))
        return false;
    wake->a_worker_polls = true;
    return true;
}

void
wake_on_return(struct wake *wake, bool polled)
{
    must_in_debug(wake->idle_workers > 0 && (!polled || wake->a_worker_polls));
    wake->idle_workers--;
    if (polled)
        wake->a_worker_polls = false;
}

bool
wake_due_dealer(struct wake *wake)
{
    bool is_due = wake->dealer_is_due;

    wake->dealer_is_due = false;
    return is_due;
}
