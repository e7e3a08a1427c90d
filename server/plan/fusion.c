/* fusion.c - shows each content stage those that follow it, so that some are evaluated as one. */
#include <stdlib.h>

#include "content/content.h"
#include "core/memory.h"
#include "order/arguments.h"
#include "plan/build.h"

static bool
is_content(const struct plan_node *node)
{
    return node->content != NULL && node->order == NULL && node->input_count == 1;
}

struct plan_node *
build_reader_of(const struct plan_graph *graph, const struct plan_node *node)
{
    for (uint32_t i = 0; i < graph->node_count; i++)
        if (graph->nodes[i]->input_count == 1 && graph->nodes[i]->inputs[0] == node)
            return graph->nodes[i];
    return NULL;
}

/* True for a node that the plan inserted between two stages: it does not change elements. */
static bool
is_between(const struct plan_node *node)
{
    return node->stage == NULL && node->body == NULL && node->content == NULL;
}

/* Collect the content stages from `first` on, at most as many as the graph has nodes. */
static uint32_t
find_row(const struct plan_graph *graph, struct plan_node *first, struct content_step *steps,
         struct plan_node **nodes)
{
    uint32_t count = 0;
    bool follows = true;

    for (struct plan_node *node = first; node != NULL; node = build_reader_of(graph, node)) {
        if (is_between(node)) {
            follows &= node->order == &order_ordinal;
            continue;
        }
        if (!is_content(node))
            break;
        nodes[count] = node;
        steps[count++] = (struct content_step){
            .stage = node->stage,
            .ops = node->content,
            .state = node->state,
            .input = &node->inputs[0]->schema,
            .output = &node->schema,
            .follows = follows,
        };
        follows = !node->content->draws;
    }
    return count;
}

/* The fused evaluation is attached to the last node of the row: that is the one whose columns are
 * asked for. */
static tundish_status
look_ahead(struct plan_builder *builder, struct plan_graph *graph, struct plan_node *node)
{
    struct content_step *steps = tnd_zalloc(graph->node_count, sizeof *steps);
    struct plan_node **nodes = tnd_zalloc(graph->node_count, sizeof(struct plan_node *));
    uint32_t count = find_row(graph, node, steps, nodes);
    struct content_fused fused = { 0 };
    tundish_status status =
        node->content->look_ahead(node->state, steps, count, builder->errors, &fused);

    if (fused.count > 0) {
        struct plan_node *last = nodes[fused.count - 1];

        last->first = node;
        last->fused = fused.ops;
        last->fused_state = fused.state;
    }
    free(nodes);
    free(steps);
    return status;
}

tundish_status
build_fusion(struct plan_builder *builder, struct plan_graph *graph)
{
    tundish_status status = TUNDISH_OK;

    for (uint32_t i = 0; i < graph->node_count && status == TUNDISH_OK; i++) {
        struct plan_node *node = graph->nodes[i];

        if (node->body != NULL)
            status = build_fusion(builder, node->body);
        else if (is_content(node) && node->content->look_ahead != NULL)
            status = look_ahead(builder, graph, node);
    }
    return status;
}
