/* shard_edges.c - finds where FILE sharding deals, from the end of the stream to its sources
 * (auto_shard.cc). */
#include "plan/shard_edges.h"

#include "core/memory.h"
#include "order/arguments.h"
#include "order/order.h"
#include "source/source.h"

static bool
graph_reads_files(const struct plan_graph *graph)
{
    for (uint32_t i = 0; i < graph->node_count; i++) {
        const struct plan_node *node = graph->nodes[i];

        if ((node->source != NULL && node->source->reads_files) ||
            (node->body != NULL && graph_reads_files(node->body)))
            return true;
    }
    return false;
}

static void
add_edge(struct edges *edges, struct edge edge)
{
    edges->list = tnd_realloc(edges->list, edges->count + 1, sizeof *edges->list);
    edges->list[edges->count++] = edge;
}

/* How the search goes on from a node. It passes through content stages. */
static enum order_search
search_of(const struct plan_node *node)
{
    if (node->input_count == 0)
        return ORDER_SEARCH_STOPS;
    return node->order != NULL ? node->order->search : ORDER_SEARCH_INPUT;
}

/* True for a function. A window counts: in tf.data it is window and a flat_map of batch. */
static bool
is_function(const struct plan_node *node)
{
    return node->body != NULL || search_of(node) == ORDER_SEARCH_WINDOW;
}

/* True for a function over values in memory, usually a list of file names. */
static bool
runs_on_list(const struct plan_node *node)
{
    return node->body != NULL && node->inputs[0]->source != NULL &&
           node->inputs[0]->source->order.is_list;
}

/* TensorFlow treats datasets of datasets in a peculiar way: before a function that reads no files,
 * it looks for one that runs on a list, and deals the elements of that one, whether files or rows.
 */
static bool
find_list_before(struct plan_node *function, struct edge *ret_edge)
{
    for (struct plan_node *node = function;
         search_of(node) == ORDER_SEARCH_INPUT || search_of(node) == ORDER_SEARCH_WINDOW;
         node = node->inputs[0])
        if (runs_on_list(node->inputs[0])) {
            *ret_edge = (struct edge){ .reader = node, .deals_elements = true };
            return true;
        }
    return false;
}

static bool
find_edges(struct plan_node *node, struct edges *edges)
{
    for (;; node = node->inputs[0]) {
        struct edge edge = { .reader = node };

        if ((node->body != NULL && graph_reads_files(node->body)) ||
            (is_function(node) && find_list_before(node, &edge))) {
            add_edge(edges, edge);
            return true;
        }
        if (search_of(node) == ORDER_SEARCH_STOPS)
            return false;
        if (search_of(node) != ORDER_SEARCH_INPUTS)
            continue;
        for (uint32_t i = 0; i < node->input_count; i++)
            if (!find_edges(node->inputs[i], edges))
                return false;
        return true;
    }
}

bool
shard_edges_find(struct plan_node *root, struct edges *ret_edges)
{
    bool found = find_edges(root, ret_edges);

    if (!found)
        /* One branch without files makes the whole search fail: edges of other branches must not be
         * dealt. */
        ret_edges->count = 0;
    return found;
}
