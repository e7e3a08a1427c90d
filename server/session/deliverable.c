/* deliverable.c - see deliverable.h. */
#include "session/deliverable.h"

#include "batch/dealer.h"
#include "session/checkpoint/place_contents.h"
#include "shm/layout.h"

static uint32_t
line_of(const struct plan *plan, const struct plan_node *node)
{
    return node->stage != NULL ? node->stage->line : plan->stream->line;
}

static uint32_t
column_of(const struct plan *plan, const struct plan_node *node)
{
    return node->stage != NULL ? node->stage->column : plan->stream->column;
}

/* The node whose element has the column's rank already unknown, or NULL: it is known, or comes of
 * several. */
static const struct plan_node *
rank_from(const struct plan_node *node, uint32_t *column)
{
    const struct plan_node *from = node->body != NULL       ? node->body->root
                                   : node->input_count == 1 ? node->inputs[0]
                                                            : NULL;
    int32_t passed = node->schema.columns[*column].passed_from;

    if (from == NULL || (node->body == NULL && passed < 0))
        return NULL;
    if (node->body == NULL)
        *column = (uint32_t)passed;
    return *column < from->schema.count && from->schema.columns[*column].rank == RANK_UNKNOWN
               ? from
               : NULL;
}

static tundish_status
complain_of_rank(const struct plan *plan, uint32_t column, struct spec_errors *errors)
{
    const char *name = plan->element_spec.columns[column].name;
    const struct plan_node *node = plan->user_root, *from;
    bool may_expand;

    while ((from = rank_from(node, &column)) != NULL)
        node = from;
    may_expand =
        node->stage != NULL && stage_parameter(node->stage->info, "expand_animations") >= 0;
    return spec_complain(errors, line_of(plan, node), column_of(plan, node),
                         "%s: column '%s' has an unknown number of dimensions, and a batch has "
                         "none without: %s",
                         node->name, name,
                         may_expand ? "set expand_animations: false, or use reshape after it"
                                    : "use reshape after it, or select other columns");
}

static tundish_status
check_ranks(const struct plan *plan, struct spec_errors *errors)
{
    tundish_status status = TUNDISH_OK;

    for (uint32_t i = 0; i < plan->element_spec.count; i++)
        if (plan->element_spec.columns[i].rank == RANK_UNKNOWN && i < plan->user_root->schema.count)
            status = complain_of_rank(plan, i, errors);
    return status;
}

static tundish_status
check_columns(const struct plan *plan, struct spec_errors *errors)
{
    const struct plan_node *root = plan->user_root;

    if (plan->element_spec.count <= TND_COLUMNS_MAX)
        return TUNDISH_OK;
    return spec_complain(errors, line_of(plan, root), column_of(plan, root),
                         "%u columns are delivered after this stage, and a batch has at most %d: "
                         "select those that are needed, or put columns together in a map",
                         plan->element_spec.count, TND_COLUMNS_MAX);
}

/* A place stores two words for each stage that counts, in a function or at the top. */
static tundish_status
check_state(const struct plan *plan, struct spec_errors *errors)
{
    enum { STAGES_MAX = PLACE_STATE_MAX / 2 };
    const struct plan_graph *graph = plan->graph;
    size_t counted = graph->draw_count - graph->own_draw_count;

    for (uint32_t i = 0; i < graph->node_count; i++) {
        const struct plan_node *node = graph->nodes[i];

        counted += dealer_counts(node);
        if (counted > STAGES_MAX)
            return spec_complain(errors, line_of(plan, node), column_of(plan, node),
                                 "%s: this is random stage %zu, and a place stores the state of at "
                                 "most %d: leave some out",
                                 node->name, counted, STAGES_MAX);
    }
    return TUNDISH_OK;
}

tundish_status
deliverable_check(const struct plan *plan, struct spec_errors *errors)
{
    tundish_status ranks = check_ranks(plan, errors);
    tundish_status columns = check_columns(plan, errors);
    tundish_status state = check_state(plan, errors);

    return ranks != TUNDISH_OK ? ranks : columns != TUNDISH_OK ? columns : state;
}
