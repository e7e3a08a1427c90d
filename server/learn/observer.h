/* observer.h - stages that are still to be learned, while they are: they look at their columns and
 * give nothing.
 *
 * One pass over the data learns for as many stages as it can: those whose columns do not come from
 * a stage that is being learned in the same pass. The results of such a stage are missing for the
 * stages after it; a stage that needs them ends the pass's plan (observer.blocked).
 */
#ifndef LEARN_OBSERVER_H
#define LEARN_OBSERVER_H

#include "learn/analyzers/analyzer.h"
#include "plan/plan.h"

struct observed; /* one column of one stage */

struct observer {
    struct plan_learning learning;   /* for plan_options */
    const struct spec_stage *stages; /* of the plan's dataset */
    uint32_t stage_count;
    bool *is_learned;               /* of each: by an earlier pass */
    struct artifact_folder *folder; /* where results go */
    int cache_folder;
    uint32_t thread_count;
    struct terms_memory *memory;

    struct spec_names *missing;
    int64_t blocked;         /* index of the stage that ended the plan, or -1 */
    bool *is_observed;       /* of each stage: learned by this pass */
    uint32_t observed_count; /* columns being learned from */
    struct observed **observed;
};

void observer_open(struct observer *observer); /* the first group is the caller's to set before */
void observer_close(struct observer *observer);

/* The values of the observed columns in the elements of one task. Lies in the task's scratch. */
struct observations {
    uint32_t thread;
    uint32_t count, capacity;
    struct observation *list;
};

/* Add up the observations, in the order of tasks. */
tundish_status observer_feed(const struct observations *observations);

/* The name of column i that is learned from, and the index of its stage. */
const char *observer_name_of(const struct observer *observer, uint32_t i);
uint32_t observer_stage_of(const struct observer *observer, uint32_t i);

/* Write all artifacts. */
tundish_status observer_finish(struct observer *observer);

#endif
