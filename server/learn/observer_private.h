/* observer_private.h - shared by the parts of observing. */
#ifndef LEARN_OBSERVER_PRIVATE_H
#define LEARN_OBSERVER_PRIVATE_H

#include <string.h>

#include "learn/observer.h"

enum { SIDES = 3 }; /* key, weights, labels */

/* One column of a stage that is being learned. */
struct observed {
    const struct analyzer_ops *ops;
    void *state;
    char *name;
    uint32_t stage;          /* its index */
    struct column_spec spec; /* of the column; its name is not used */
    bool is_single;          /* Keras' numeric layers see float32, whatever the column is */
    tundish_dtype side_dtypes[SIDES];
    int32_t sides[SIDES]; /* columns of the stage's input, or -1 */
};

/* Its values in the elements of a task. */
struct observation {
    const struct observed *observed;
    struct samples samples;
};

/* May the node be part of this pass's plan? */
bool observer_lets_follow(const struct observer *observer, const struct plan_node *node,
                          const struct stage_config *config);

/* Does the stage name a column beside its own that is missing? */
bool observer_lacks_sides(const struct observer *observer, const struct spec_stage *stage);

/* Are all the columns there that the stage learns from? */
bool observer_has_columns(const struct observer *observer, const struct stage_config *config);

/* The observer whose plan is being made: the plan calls one thing after the other, in one thread,
 * and from observer_planning's setting to the observer stage's opening nothing else comes. */
extern _Thread_local struct observer *observer_planning;

/* The plan of this pass ends before the stage. */
tundish_status observer_block(struct observer *observer, int64_t stage);

extern const struct content_ops observer_stage_ops;

#endif
