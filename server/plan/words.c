/* words.c - finds the columns of sources of which stages only make integers, word by word
 * (column/words.h): their texts may be left out; and sources whose blank records nobody takes. */
#include "content/content.h"
#include "core/memory.h"
#include "order/order.h"
#include "plan/build.h"
#include "source/source.h"

/* Does the stage leave the column's texts alone, or take them by their words? The first maker of
 * integers is kept. */
static bool
takes_words(const struct plan_node *node, uint32_t column, struct words_maker *maker)
{
    struct words_maker own = { 0 };

    if (node->order != NULL)
        return node->order->form == ORDER_PASSES && node->content == NULL;
    if (node->content == NULL || node->content->takes_words == NULL ||
        !node->content->takes_words(node->state, column, &own))
        return false;
    if (maker->make == NULL)
        *maker = own;
    return true;
}

/* The node whose elements are those of this graph, or NULL. */
static const struct plan_node *
function_of(const struct plan_graph *graph)
{
    const struct plan_graph *outside = graph->outside;

    for (uint32_t i = 0; outside != NULL && i < outside->node_count; i++)
        if (outside->nodes[i]->body == graph)
            return outside->nodes[i];
    return NULL;
}

/* Does the stage go on with all rows, one by one or in batches? */
static bool
keeps_rows(const struct plan_node *node)
{
    return node->order == NULL ? node->content != NULL
                               : node->content == NULL && (node->order->form == ORDER_PASSES ||
                                                           node->order->form == ORDER_BATCHES);
}

/* Does every stage that the column comes to, until it is gone? */
static bool
are_words_enough(const struct plan_graph *graph, const struct plan_node *node, uint32_t column,
                 struct words_maker *maker)
{
    const struct plan_node *reader, *function = NULL;
    bool are_enough;

    if (node == graph->root && (function = function_of(graph)) != NULL)
        return are_words_enough(graph->outside, function, column, maker);
    reader = build_reader_of(graph, node);
    if (reader == NULL)
        return false;
    are_enough = takes_words(reader, column, maker);
    if (!are_enough && !keeps_rows(reader))
        return false;
    for (uint32_t i = 0; i < reader->schema.count; i++)
        if (reader->schema.columns[i].passed_from == (int32_t)column &&
            !are_words_enough(graph, reader, i, maker))
            are_enough = false;
    return are_enough;
}

/* Is each element a text of that column alone, and does a stage that passes over blank ones take
 * it, after none that could tell them? */
static bool
are_blank_passed(const struct plan_graph *graph, const struct plan_node *node, uint32_t column)
{
    const struct plan_node *reader, *function = NULL;

    if (node == graph->root && (function = function_of(graph)) != NULL)
        return are_blank_passed(graph->outside, function, column);
    reader = build_reader_of(graph, node);
    if (reader == NULL || node->schema.count != 1 || reader->source != NULL)
        return false;
    if (reader->order == NULL)
        return reader->content->passes_blank != NULL &&
               reader->content->passes_blank(reader->state, column);
    return reader->content == NULL &&
           (reader->order->form == ORDER_PASSES || reader->order->form == ORDER_BATCHES) &&
           are_blank_passed(graph, reader, column);
}

void
build_words(struct plan_graph *graph)
{
    for (uint32_t i = 0; i < graph->node_count; i++) {
        struct plan_node *node = graph->nodes[i];

        if (node->body != NULL)
            build_words(node->body);
        if (node->source == NULL)
            continue;
        if (node->source->leave_out_blank != NULL && are_blank_passed(graph, node, 0))
            node->source->leave_out_blank(node->state);
        node->words = tnd_zalloc(node->schema.count + 1, sizeof *node->words);
        for (uint32_t k = 0; k < node->schema.count; k++)
            node->words[k].are_enough = node->schema.columns[k].dtype == TUNDISH_STRING &&
                                        are_words_enough(graph, node, k, &node->words[k].maker);
    }
}
