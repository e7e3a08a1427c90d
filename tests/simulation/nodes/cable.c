/* cable.c - see cable.h. */
#include "cable.h"

#include "fibers.h"

int64_t
cable_arrival(const struct network *network, struct cable *from, struct cable *to,
              size_t byte_count, int64_t earliest_ns)
{
    int64_t now_ns = fibers_now_ns();
    int64_t takes_ns = (int64_t)((double)byte_count / network->bytes_per_ns), due_ns;

    if (from->sends_from_ns < now_ns)
        from->sends_from_ns = now_ns;
    from->sends_from_ns += takes_ns;
    due_ns = from->sends_from_ns + network->latency_ns +
             (int64_t)fibers_draw((uint64_t)network->jitter_ns + 1);
    if (due_ns < to->receives_from_ns + takes_ns)
        due_ns = to->receives_from_ns + takes_ns;
    if (due_ns < earliest_ns)
        due_ns = earliest_ns;
    to->receives_from_ns = due_ns;
    return due_ns;
}
