/* patience.c - one deadline, which each sign of life puts off. */
#include "session/patience.h"

#include <stddef.h>

#include "core/clock.h"

static const int64_t LEAST_NS = 1000000000;

void
patience_begin(struct patience *patience)
{
    int64_t least_ns;

    if (patience == NULL)
        return;
    least_ns = LEAST_NS < patience->limit_ns ? LEAST_NS : patience->limit_ns;
    if (patience->deadline_ns == 0)
        patience_renew(patience);
    else if (tnd_clock_left_ns(patience->deadline_ns) < least_ns)
        patience->deadline_ns = tnd_clock_deadline_ns(least_ns);
}

void
patience_renew(struct patience *patience)
{
    if (patience != NULL)
        patience->deadline_ns = tnd_clock_deadline_ns(patience->limit_ns);
}

bool
patience_lasts(const struct patience *patience)
{
    return patience == NULL || tnd_clock_left_ns(patience->deadline_ns) > 0;
}
