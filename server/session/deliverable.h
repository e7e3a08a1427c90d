/* deliverable.h - limits of what lanes and places hold. They are checked before anything runs, for
 * `plan` to say what serving would. */
#ifndef SESSION_DELIVERABLE_H
#define SESSION_DELIVERABLE_H

#include "plan/plan.h"

/* Can trainers be given this plan's batches, and their places? An error names the stage that makes
 * it impossible. */
tundish_status deliverable_check(const struct plan *plan, struct spec_errors *errors);

#endif
