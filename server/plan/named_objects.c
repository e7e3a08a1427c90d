/* named_objects.c - which nodes of a graph are one dataset object.
 *
 * A named dataset that is mentioned several times is one object, as a Python variable is. Each
 * mention has nodes and iterators of its own, but TensorFlow's seed generator belongs to the
 * object: the k-th iterator that is made gets the k-th pair of seeds, whichever mention makes it.
 * So the random nodes of all mentions count their iterators together. The counts depend on which
 * mention is read when, so nothing may be leapt over there.
 *
 * A stage that remembers sets the counts before it back to those of the pass that it keeps. If it
 * stands before some mentions only, the others go on from other counts, and a place has only one:
 * each mention counts for itself.
 */
#include <stdlib.h>

#include "order/ops.h"
#include "plan/build.h"

/* How many nodes at and before `node` are of the object. */
static uint32_t
count_mentions(const struct plan_node *node, const struct spec_stage *object)
{
    uint32_t count = node->seeds_for == object;

    for (uint32_t i = 0; i < node->input_count; i++)
        count += count_mentions(node->inputs[i], object);
    return count;
}

static bool
is_kept_apart(const struct plan_graph *graph, const struct spec_stage *object)
{
    uint32_t all = count_mentions(graph->root, object);

    for (uint32_t i = 0; i < graph->node_count; i++) {
        const struct plan_node *node = graph->nodes[i];
        uint32_t before;

        if (node->order == NULL || !node->order->remembers)
            continue;
        before = count_mentions(node, object);
        if (before > 0 && before < all)
            return true;
    }
    return false;
}

static struct plan_node *
find_mention(const struct plan_graph *graph, uint32_t before, const struct spec_stage *object)
{
    for (uint32_t i = 0; i < before; i++)
        if (graph->nodes[i]->seeds_for == object)
            return graph->nodes[i];
    return NULL;
}

void
build_objects(struct plan_graph *graph)
{
    for (uint32_t i = 0; i < graph->node_count; i++) {
        struct plan_node *node = graph->nodes[i], *first;

        if (node->seeds_for == NULL || node->seeds_fixed)
            continue;
        first = find_mention(graph, i, node->seeds_for);
        if (first == NULL || is_kept_apart(graph, node->seeds_for))
            continue;
        node->number = first->number;
        node->replays = first->replays = true;
    }
}
