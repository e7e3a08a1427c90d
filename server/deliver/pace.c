/* pace.c - tell pauses from steps. */
#include "deliver/pace.h"

/* A step is long if it takes as long as this many, and so long: steps are seen in whole looks, a
 * tenth of a second apart, so shorter silences tell nothing. */
enum { LONG_AS = 5, NEW_PACE_STEPS = 3 };
#define LONG_NS INT64_C(500000000)

static void
count_pause(struct pace *pace)
{
    if (pace->pauses > 0 && pace->long_at_taken > pace->paused_at_taken)
        pace->every = pace->long_at_taken - pace->paused_at_taken;
    pace->pauses++;
    pace->paused_ns += (uint64_t)pace->long_ns;
    pace->paused_at_taken = pace->long_at_taken;
}

static void
note_long(struct pace *pace, uint64_t taken, int64_t step_ns)
{
    if (pace->long_steps == 0)
        pace->long_at_taken = taken;
    pace->long_steps++;
    pace->long_ns += step_ns;
    if (pace->long_steps < NEW_PACE_STEPS)
        return;
    pace->mean_step_ns = pace->long_ns / NEW_PACE_STEPS;
    pace->long_steps = 0;
    pace->long_ns = 0;
}

void
pace_note(struct pace *pace, uint64_t taken, int64_t step_ns)
{
    if (pace->mean_step_ns > 0 && step_ns >= LONG_NS && step_ns >= LONG_AS * pace->mean_step_ns) {
        note_long(pace, taken, step_ns);
        return;
    }
    if (pace->long_steps > 0)
        count_pause(pace);
    pace->long_steps = 0;
    pace->long_ns = 0;
    pace->mean_step_ns += pace->mean_step_ns == 0 ? step_ns : (step_ns - pace->mean_step_ns) / 8;
}
