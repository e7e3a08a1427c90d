/* dealing.c - the account of the dealing thread's time. */
#include "session/dealing.h"

#include "core/clock.h"
#include "core/must.h"

void
dealing_count(struct session_dealing *dealing, struct tnd_stats_stream *stream, uint64_t number)
{
    dealing->now_ns = tnd_clock_ns();
    must_in_debug(dealing->deals_since_ns <= dealing->now_ns);
    if (dealing->deals_since_ns == 0)
        return;
    tnd_stats_add(&stream->deal_busy, (uint64_t)(dealing->now_ns - dealing->deals_since_ns));
    stats_event(dealing->counters.evaluation.track, dealing->deals_since_ns, dealing->now_ns,
                TND_STATS_DEALS, number);
    dealing->deals_since_ns = dealing->now_ns;
}

void
dealing_count_wait(struct session_dealing *dealing, struct tnd_stats_stream *stream,
                   int64_t began_ns)
{
    dealing->now_ns = tnd_clock_ns();
    must_in_debug(began_ns <= dealing->now_ns);
    if (dealing->deals_since_ns != 0)
        dealing->deals_since_ns = dealing->now_ns;
    tnd_stats_add(&stream->deal_wait, (uint64_t)(dealing->now_ns - began_ns));
    stats_event(dealing->counters.evaluation.track, began_ns, dealing->now_ns,
                TND_STATS_WAITS_STEPS, 0);
}
