/* pace.h - a trainer's pace, and its pauses: silences that are far longer than its steps, as when
 * it saves its state.
 *
 * One or two long steps in a row are a pause, counted when a usual step follows. Three in a row are
 * the trainer's new pace, and no pause.
 */
#ifndef DELIVER_PACE_H
#define DELIVER_PACE_H

#include <stdint.h>

struct pace {
    uint64_t pauses;
    uint64_t paused_ns; /* all together */
    uint64_t every;     /* batches between the last two; 0: there were no two */

    int64_t mean_step_ns;     /* without pauses; 0: there was no step */
    uint64_t paused_at_taken; /* the last time */
    uint32_t long_steps;      /* in a row, up to now */
    int64_t long_ns;          /* all together */
    uint64_t long_at_taken;   /* the first of them */
};

/* A step has ended, which took so long; `taken` batches have been taken in all. */
void pace_note(struct pace *pace, uint64_t taken, int64_t step_ns);

#endif
