/* helper_steps.h - the steps in which a helper made parts, so that they can be named if it turns
 * out that its parts are not to be trusted.
 *
 * They are kept as ranges. Beyond HELPER_RANGES_MAX the nearest are joined, so that more steps are
 * named than there were: `is_rough` says so.
 */
#ifndef HELPERS_HELPER_STEPS_H
#define HELPERS_HELPER_STEPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HELPER_RANGES_MAX = 1024 };

struct helper_step {
    uint64_t epoch, number;
};

/* Both ends are in it. */
struct helper_range {
    struct helper_step first, last;
};

/* Zeros: none. */
struct helper_steps {
    struct helper_range *list; /* in order */
    uint32_t count, room;
    uint64_t steps; /* the steps that were added, without those that joining brought in */
    bool is_rough;
};

void helper_steps_add(struct helper_steps *steps, struct helper_step step);
void helper_steps_close(struct helper_steps *steps);

/* "epoch 0 step 3 to 17, 19, epoch 1 step 0": the ranges from this one on, as many as there is room
 * for. Returns the first that is left out, or the count. */
uint32_t helper_steps_text(const struct helper_steps *steps, uint32_t from, char *text,
                           size_t room);

#endif
