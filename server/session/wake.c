/* wake.c - whom to wake. */
#include "session/wake.h"

void
wake_open(struct wake *wake, uint32_t worker_count, uint32_t lane_count)
{
    *wake = (struct wake){ .worker_count = worker_count, .has_one_lane = lane_count == 1 };
}

struct wake_whom
wake_a_worker(const struct wake *wake)
{
    bool polls = wake->a_worker_polls;

    return (struct wake_whom){ .sleeper = !polls || !wake_is_for_one(wake), .poller = polls };
}

bool
wake_on_push(const struct wake *wake)
{
    return wake->starved == 0 && !wake_has_enough(wake, 1);
}

bool
wake_on_take(int64_t part_ns, bool parts_are_left)
{
    return part_ns > WAKE_WORTH_NS || parts_are_left;
}

void
wake_on_made(struct wake *wake, int64_t part_ns, int64_t busy_ns, int64_t now_ns)
{
    if (busy_ns > WAKE_LONG_NS && now_ns + WAKE_CALM_TIMES * busy_ns > wake->calm_from_ns)
        wake->calm_from_ns = now_ns + WAKE_CALM_TIMES * busy_ns;
    wake->has_short_parts = part_ns > 0 && part_ns < WAKE_SHORT_NS && now_ns > wake->calm_from_ns;
}

void
wake_on_drop(struct wake *wake, uint32_t left)
{
    wake->dealer_is_due |= left <= wake->dealer_wakes_at;
}

void
wake_on_look(struct wake *wake)
{
    wake->missed_room = false;
}

void
wake_on_missed(struct wake *wake)
{
    wake->missed_room = true;
}

bool
wake_must_look_again(const struct wake *wake)
{
    return wake->missed_room;
}

void
wake_on_looked(struct wake *wake, bool has_room)
{
    if (!has_room) {
        wake->starved = WAKE_STARVED;
        return;
    }
    wake->starved -= wake->starved > 0;
    wake->worker_is_due |= wake->missed_room;
}

void
wake_on_none(struct wake *wake)
{
    wake->starved = 0;
}

bool
wake_on_wait(struct wake *wake)
{
    wake->idle_workers++;
    if (wake->a_worker_polls || wake_has_enough(wake, 1))
        return false;
    wake->a_worker_polls = true;
    return true;
}

void
wake_on_return(struct wake *wake, bool polled)
{
    wake->idle_workers--;
    if (polled)
        wake->a_worker_polls = false;
}

struct wake_whom
wake_due(struct wake *wake)
{
    struct wake_whom whom = { 0 };

    if (wake->worker_is_due)
        whom = wake_a_worker(wake);
    whom.dealer = wake->dealer_is_due;
    wake->dealer_is_due = wake->worker_is_due = false;
    return whom;
}

bool
wake_due_dealer(struct wake *wake)
{
    bool is_due = wake->dealer_is_due;

    wake->dealer_is_due = false;
    return is_due;
}
