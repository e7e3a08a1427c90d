/* observer.c - the columns that a pass learns from. */
#include "learn/observer.h"

#include <stdlib.h>

#include "content/learned/learned.h"
#include "core/memory.h"
#include "core/parallel_for.h"
#include "learn/observer_private.h"

static struct observer *
observer_of(struct plan_learning *learning)
{
    return (struct observer *)(void *)learning;
}

/* Stop the plan at `stage`. The status only ends planning; plan_pass reads `blocked` and plans
 * again. */
tundish_status
observer_block(struct observer *observer, int64_t stage)
{
    observer->blocked = stage;
    return TUNDISH_E_PIPELINE;
}

/* The plan opens content stages without a context, so observer_stage_open finds its observer here.
 * Set just before that call, on the same thread. */
_Thread_local struct observer *observer_planning;

/* The plan asks before it opens each node: open it as usual, put the observing stage there instead,
 * or end the plan here. */
static tundish_status
before(struct plan_learning *learning, const struct plan_node *node,
       const struct stage_config *config, const struct content_ops **ret_ops)
{
    struct observer *observer = observer_of(learning);
    /* Nodes that the plan inserted have no stage, and stages of inner datasets are not in the list.
     */
    int64_t index = node->stage == NULL ? -1 : node->stage - observer->stages;

    if (node->source != NULL || index < 0 || index >= observer->stage_count)
        return TUNDISH_OK;
    if (!observer_lets_follow(observer, node, config))
        return observer_block(observer, index);
    if (node->order != NULL || node->content == NULL || !learned_is_needed(node->stage) ||
        observer->is_learned[index])
        return TUNDISH_OK;
    if (observer_lacks_sides(observer, node->stage))
        return observer_block(observer, index);
    observer_planning = observer;
    *ret_ops = &observer_stage_ops;
    return TUNDISH_OK;
}

void
observer_open(struct observer *observer)
{
    observer->missing = tnd_zalloc(1, sizeof *observer->missing);
    observer->is_observed = tnd_zalloc((size_t)observer->stage_count + 1, sizeof(bool));
    observer->blocked = -1;
    observer->learning = (struct plan_learning){ .before = before, .missing = observer->missing };
}

void
observer_close(struct observer *observer)
{
    for (uint32_t i = 0; i < observer->observed_count; i++) {
        struct observed *observed = observer->observed[i];

        observed->ops->close(observed->state);
        free(observed->state);
        free(observed->name);
        free(observed);
    }
    free(observer->observed);
    free(observer->is_observed);
    if (observer->missing != NULL)
        spec_names_close(observer->missing);
    free(observer->missing);
}

const char *
observer_name_of(const struct observer *observer, uint32_t i)
{
    return observer->observed[i]->name;
}

uint32_t
observer_stage_of(const struct observer *observer, uint32_t i)
{
    return observer->observed[i]->stage;
}

tundish_status
observer_feed(const struct observations *observations)
{
    tundish_status status = TUNDISH_OK;

    for (uint32_t i = 0; i < observations->count && status == TUNDISH_OK; i++) {
        const struct observation *observation = &observations->list[i];

        if (observation->observed->ops->feed != NULL)
            status = observation->observed->ops->feed(observation->observed->state,
                                                      &observation->samples);
    }
    return status;
}

/* Columns are independent, so several threads may finish them. */
static tundish_status
finish_column(void *context, uint32_t column)
{
    struct observed *observed = ((struct observer *)context)->observed[column];

    return observed->ops->finish(observed->state);
}

tundish_status
observer_finish(struct observer *observer)
{
    return tnd_parallel_for(observer->observed_count, observer->thread_count, finish_column,
                            observer);
}
