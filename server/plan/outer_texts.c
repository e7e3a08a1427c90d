/* outer_texts.c - see outer_texts.h. */
#include "plan/outer_texts.h"

#include "source/source.h"

/* The source that a column comes from as it is, or NULL. */
static const struct plan_node *
source_of(const struct plan_node *node, int32_t *column)
{
    while (node->source == NULL) {
        if (node->input_count != 1 || node->body != NULL)
            return NULL;
        *column = node->schema.columns[*column].passed_from;
        if (*column < 0)
            return NULL;
        node = node->inputs[0];
    }
    return node;
}

struct outer_texts
plan_outer_texts(const struct plan_graph *graph, const char *name)
{
    struct outer_texts found = { 0 };
    const struct plan_node *source;
    int32_t column = -1;

    while (graph->outer != NULL && (column = schema_find(&graph->outer->schema, name)) < 0)
        graph = graph->outside;
    if (column < 0)
        return found;
    source = source_of(graph->outer, &column);
    if (source != NULL && source->source->texts != NULL)
        found.texts = source->source->texts(source->state, (uint32_t)column, &found.count);
    return found;
}
