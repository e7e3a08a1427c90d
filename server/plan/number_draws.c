/* number_draws.c - gives each ordinal the counter that it counts in.
 *
 * As in Keras, a layer has one counter, wherever it is called: in a function it counts on over the
 * datasets of all outer elements. The counters are the top's, so that a place can store them.
 */
#include "order/arguments.h"
#include "plan/build.h"

static void
number_draws(struct plan_graph *top, struct plan_graph *graph)
{
    for (uint32_t i = 0; i < graph->node_count; i++)
        if (graph->nodes[i]->order == &order_ordinal)
            ((struct ordinal_arguments *)graph->nodes[i]->arguments)->counter = top->draw_count++;
    if (graph == top)
        top->own_draw_count = top->draw_count;
    for (uint32_t i = 0; i < graph->node_count; i++)
        if (graph->nodes[i]->body != NULL)
            number_draws(top, graph->nodes[i]->body);
}

void
build_draws(struct plan *plan)
{
    number_draws(plan->graph, plan->graph);
}
