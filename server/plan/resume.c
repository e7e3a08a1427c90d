/* resume.c - which stage dominates the cost of resuming. */
#include "plan/resume.h"

#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "order/rewind.h"
#include "plan/build.h"

/* The cost of moving one stage to a checkpoint, cheapest first. */
enum cost {
    COST_NOTHING,
    COST_WINDOW,   /* the window is computed from its last draws */
    COST_COUNTING, /* references are made again and counted */
    COST_LOOKING,  /* content is evaluated again to decide the order */
    COST_MAKING    /* all rows are made again */
};

/* A parameter of a source, or NULL: it has none by that name. */
static const struct spec_value *
parameter(const struct plan_node *node, const char *name)
{
    const struct stage_info *info = node->stage != NULL ? node->stage->info : NULL;

    for (uint32_t i = 0; node->source != NULL && info != NULL && i < info->parameter_count; i++)
        if (strcmp(info->parameters[i].name, name) == 0)
            return node->stage->arguments[i];
    return NULL;
}

/* True for a program that can begin at any row. */
static bool
can_seek(const struct plan_node *node)
{
    const struct spec_value *seek = parameter(node, "seek");

    return seek != NULL && seek->boolean;
}

/* True for a source that makes all rows again: a program that cannot. */
static bool
runs_again(const struct plan_node *node)
{
    return node->source != NULL && node->input_count == 0 && node->order->remembers &&
           !can_seek(node) && (node->order->pass_over == NULL || parameter(node, "seek") != NULL);
}

/* True for a source that reads compressed files, which cannot be entered in the middle. */
static bool
is_packed(const struct plan_node *node)
{
    const struct spec_value *value = parameter(node, "compression_type");

    return value != NULL && value->kind == SPEC_TEXT && value->text[0] != '\0';
}

/* True for a stage that passes over elements by counting those of its inputs one by one. */
static bool
counts_through(const struct plan_node *node)
{
    return node->order->counts_through && !(node->body != NULL && order_can_reopen(node->body));
}

static enum cost
node_cost(const struct plan_node *node)
{
    if (runs_again(node) || plan_is_cache_in_file(node) || is_packed(node))
        return COST_MAKING;
    if (order_reads_content(node))
        return COST_LOOKING;
    if (node->order == NULL)
        return COST_NOTHING;
    if (node->replays)
        return COST_COUNTING;
    if (node->order->shuffles_in != NULL)
        return order_can_rewind(node->inputs[0]) ? COST_WINDOW : COST_COUNTING;
    return node->order->pass_over != NULL && !counts_through(node) ? COST_NOTHING : COST_COUNTING;
}

/* The first of the most expensive nodes, or `found` if none costs more. */
static const struct plan_node *
most_expensive(const struct plan_graph *graph, const struct plan_node *found)
{
    for (uint32_t i = 0; i < graph->node_count; i++) {
        const struct plan_node *node = graph->nodes[i];

        if (found == NULL || node_cost(node) > node_cost(found))
            found = node;
        if (node->body != NULL)
            found = most_expensive(node->body, found);
    }
    return found;
}

/* One that can seek, if any. */
static const struct plan_node *
seeker(const struct plan_graph *graph)
{
    const struct plan_node *found = NULL;

    for (uint32_t i = 0; i < graph->node_count && found == NULL; i++) {
        const struct plan_node *node = graph->nodes[i];

        found = can_seek(node) ? node : node->body != NULL ? seeker(node->body) : NULL;
    }
    return found;
}

static char *
where(const struct plan_node *node)
{
    return node->stage != NULL
               ? tnd_sprintf("%s (line %u)", node->stage->info->name, node->stage->line)
               : tnd_strdup(node->name);
}

static char *
making_sentence(const struct plan_node *node, const char *stage)
{
    if (runs_again(node) || can_seek(node))
        return tnd_sprintf("%s runs again from the epoch's start and its rows are skipped: "
                           "resuming takes as long as writing them",
                           stage);
    if (plan_is_cache_in_file(node))
        return tnd_sprintf("the rows in the file of %s are skipped, and computed again if the file "
                           "is incomplete: resuming takes as long as that",
                           stage);
    return tnd_sprintf(
        "%s unpacks its files again from the epoch's start: resuming takes as long as that", stage);
}

/* The node of the graph itself that is `node`, or in whose function that is. NULL: none. */
static const struct plan_node *
find_outermost(const struct plan_graph *graph, const struct plan_node *node)
{
    const struct plan_node *found = NULL;

    for (uint32_t i = 0; i < graph->node_count && found == NULL; i++)
        if (graph->nodes[i] == node ||
            (graph->nodes[i]->body != NULL && find_outermost(graph->nodes[i]->body, node) != NULL))
            found = graph->nodes[i];
    return found;
}

/* Stages of the stream itself note how many elements pass (order/landmarks.h). */
static bool
is_noted(const struct plan *plan, const struct plan_node *node)
{
    const struct plan_node *outermost = find_outermost(plan->graph, node);

    return outermost != NULL && order_is_noted(outermost);
}

enum plan_resume
plan_resume_cost(const struct plan *plan, char **ret_sentence)
{
    const struct plan_node *node = most_expensive(plan->graph, NULL), *sought = NULL;
    enum cost cost = node_cost(node);
    const char *noted;
    char *stage;

    /* It is not sought behind a stage that pulls its elements again, nor among several nodes. */
    if (cost != COST_NOTHING || plan->options.worker_count > 1)
        sought = seeker(plan->graph);
    if (sought != NULL && cost < COST_MAKING) {
        node = sought;
        cost = COST_MAKING;
    }
    stage = where(node);
    noted = is_noted(plan, node) ? ", but for rows noted in the cache folder" : "";

    if (cost == COST_NOTHING)
        *ret_sentence = tnd_strdup("at once: every stage supports seeking");
    else if (cost == COST_WINDOW)
        *ret_sentence = tnd_sprintf(
            "the contents of the buffer of %s are recomputed: references only, tens of millions "
            "per second, and at most about fifteen times the buffer, wherever the place is",
            stage);
    else if (cost == COST_COUNTING)
        *ret_sentence = tnd_sprintf("the order is replayed from the epoch's start, for %s: "
                                    "references only, tens of millions per second%s",
                                    stage, noted);
    else if (cost == COST_LOOKING)
        *ret_sentence = tnd_sprintf(
            "the order is replayed from the epoch's start, and %s reads its columns again%s: "
            "resuming takes as long as reading them",
            stage, noted);
    else
        *ret_sentence = making_sentence(node, stage);
    free(stage);
    if (cost == COST_NOTHING)
        return RESUME_AT_ONCE;
    return cost <= COST_COUNTING ? RESUME_REFERENCES : RESUME_CONTENT;
}

char *
plan_draws_sentence(const struct plan *plan)
{
    char *stage, *sentence;

    if (plan->own_draws == NULL)
        return NULL;
    stage = where(plan->own_draws);
    sentence =
        tnd_sprintf("%s draws random numbers by the count of rows that its own worker has read, as "
                    "in TensorFlow: all workers draw the same numbers, and with another number of "
                    "nodes a row gets others. A place stores the count and is valid for the same "
                    "number of nodes (auto_shard: DATA numbers the rows of all workers)",
                    stage);
    free(stage);
    return sentence;
}

const char *
plan_resume_name(enum plan_resume cost)
{
    static const char *const names[] = { "at_once", "references", "content" };

    return names[cost];
}
