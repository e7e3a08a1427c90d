/* content_budget.c - see content_budget.h. */
#include "batch/content_budget.h"

#include "core/memory_room.h"
#include "order/order.h"

static bool
has_content(const struct plan_node *node)
{
    if (node->content != NULL)
        return true;
    for (uint32_t i = 0; i < node->input_count; i++)
        if (has_content(node->inputs[i]))
            return true;
    return false;
}

/* True if the order needs content: a stage looks at it, or a function evaluates its outer elements.
 */
static bool
is_looked_at(const struct plan_graph *graph)
{
    for (uint32_t i = 0; i < graph->node_count; i++) {
        const struct plan_node *node = graph->nodes[i];

        if (order_reads_content(node))
            return true;
        if (node->body != NULL && (has_content(node->inputs[0]) || is_looked_at(node->body)))
            return true;
    }
    return false;
}

/* Without memory_limit the budget is half of the free memory. If the order evaluates content too,
 * it and the workers get half of the budget each. */
static struct budget *
open_part(const struct plan *plan, uint32_t thread_count, uint64_t divisor)
{
    uint64_t bytes = plan->stream->deliver.memory_limit;
    struct tnd_memory_room room;

    if (bytes != 0)
        return budget_open(bytes / divisor, thread_count, "memory_limit");
    tnd_memory_room(&room);
    return budget_open(room.bytes / 2 / divisor, thread_count, room.why);
}

struct budget *
content_budget_open(const struct plan *plan, uint32_t thread_count)
{
    return open_part(plan, thread_count, is_looked_at(plan->graph) ? 2 : 1);
}

struct budget *
content_budget_open_for_order(const struct plan *plan)
{
    return is_looked_at(plan->graph) ? open_part(plan, 1, 2) : NULL;
}
