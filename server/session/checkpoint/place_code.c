/* place_code.c - see place_code.h. */
#include "session/checkpoint/place_code.h"

#include <stdio.h>

#include "content/content.h"
#include "core/hash_farm.h"
#include "core/memory.h"
#include "order/ops.h"
#include "source/source.h"

uint64_t
place_code_of(const struct plan_node *node)
{
    uint64_t (*hash)(const void *state) = node->source != NULL    ? node->source->code_hash
                                          : node->content != NULL ? node->content->code_hash
                                                                  : NULL;

    return hash != NULL ? hash(node->state) : 0;
}

static uint64_t
chain_code(uint64_t hash, const struct plan_graph *graph)
{
    for (uint32_t i = 0; i < graph->node_count; i++) {
        uint64_t own = place_code_of(graph->nodes[i]);

        if (own != 0)
            hash = tnd_hash_farm_chain(hash, &own, sizeof own);
        if (graph->nodes[i]->body != NULL)
            hash = chain_code(hash, graph->nodes[i]->body);
    }
    return hash;
}

uint64_t
place_code(const struct plan *plan)
{
    return chain_code(0, plan->graph);
}

static bool
comes_from(const struct plan_node *node, const struct plan_node *from)
{
    bool found = node == from || (node->body != NULL && comes_from(node->body->root, from));

    for (uint32_t i = 0; i < node->input_count && !found; i++)
        found = comes_from(node->inputs[i], from);
    return found;
}

bool
place_code_decides(const struct plan_graph *graph, const struct plan_node *node)
{
    bool found = false;

    for (uint32_t i = 0; i < graph->node_count && !found; i++) {
        const struct plan_node *reader = graph->nodes[i];
        enum order_content_use use =
            reader->order != NULL ? reader->order->content_use : ORDER_READS_CONTENT_NEVER;

        if (use == ORDER_READS_CONTENT_ALWAYS ||
            (use == ORDER_READS_CONTENT_FOR_ROWS && reader->cuts_content))
            found = comes_from(reader, node) ||
                    (graph->outside != NULL && comes_from(graph->outer, node));
        if (reader->body != NULL && !found)
            found = place_code_decides(reader->body, node);
    }
    return found;
}

static void
print_names(FILE *file, const struct plan_graph *graph, const char **between)
{
    for (uint32_t i = 0; i < graph->node_count; i++) {
        const struct plan_node *node = graph->nodes[i];

        if (place_code_of(node) != 0) {
            fprintf(file, "%s%s (line %u)", *between, node->name, node->stage->line);
            *between = ", ";
        }
        if (node->body != NULL)
            print_names(file, node->body, between);
    }
}

char *
place_code_names(const struct plan *plan)
{
    const char *between = "";
    char *text = NULL;
    size_t bytes = 0;
    FILE *file = open_memstream(&text, &bytes);

    tnd_must_have(file != NULL);
    print_names(file, plan->graph, &between);
    tnd_must_have(fclose(file) == 0);
    return text;
}
