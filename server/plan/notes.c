/* notes.c - see notes.h. */
#include "plan/notes.h"

#include <stdlib.h>
#include <string.h>

#include "content/content.h"
#include "core/memory.h"
#include "order/arguments.h"
#include "order/order.h"
#include "plan/build.h"
#include "plan/rebatch.h"
#include "source/source.h"

struct notes {
    plan_say *say;
    void *context;
};

/* A stage that the plan has put in stands for the one before it. */
static const struct spec_stage *
written(const struct plan_node *node)
{
    while (node->stage == NULL && node->input_count > 0)
        node = node->inputs[0];
    return node->stage;
}

static void
note(const struct notes *notes, char *sentence)
{
    notes->say(notes->context, sentence);
    free(sentence);
}

/* The nearest stage at or before `node` that draws another order in each epoch, or NULL. A cache
 * keeps one order. */
static const struct plan_node *
reshuffling(const struct plan_node *node)
{
    const struct plan_node *found = NULL;

    if (node->order != NULL && node->order->remembers)
        return NULL;
    if (node->order != NULL && node->order->shuffles_in != NULL && !node->seeds_fixed)
        return node;
    for (uint32_t i = 0; i < node->input_count && found == NULL; i++)
        found = reshuffling(node->inputs[i]);
    return found;
}

static void
note_cut(const struct notes *notes, const struct plan_node *node)
{
    const struct plan_node *shuffle;
    const struct spec_stage *stage;

    if (node->stage == NULL || node->order == NULL || !node->order->by_position)
        return;
    shuffle = reshuffling(node->inputs[0]);
    stage = shuffle != NULL ? written(shuffle) : NULL;
    if (stage != NULL)
        note(notes, tnd_sprintf("%s (line %u) comes after %s (line %u), whose order is another one "
                                "in each epoch, so that it is for other elements each time: where "
                                "it parts training from validation, these mix. "
                                "reshuffle_each_iteration: false in line %u keeps the order",
                                node->name, node->stage->line, stage->info->name, stage->line,
                                stage->line));
}

static bool
names(const struct spec_value *columns, const char *text)
{
    if (columns->kind != SPEC_LIST)
        return columns->text != NULL && strcmp(columns->text, text) == 0;
    for (uint32_t i = 0; i < columns->count; i++)
        if (names(&columns->items[i], text))
            return true;
    return false;
}

/* Are these for columns of which none is the other's? */
static bool
are_apart(const struct spec_value *a, const struct spec_value *b)
{
    if (a == NULL || b == NULL)
        return false;
    if (a->kind != SPEC_LIST)
        return a->text != NULL && !names(b, a->text);
    for (uint32_t i = 0; i < a->count; i++)
        if (!are_apart(&a->items[i], b))
            return false;
    return true;
}

static bool
have_one_seed(const struct spec_stage *a, const struct spec_stage *b)
{
    const struct spec_value *first = spec_get(a, "seed"), *second = spec_get(b, "seed");

    return first != NULL && second != NULL && first->kind == SPEC_INTEGER &&
           second->kind == SPEC_INTEGER && first->integer == second->integer;
}

static bool
draws(const struct plan_node *node)
{
    return node->order == NULL && node->stage != NULL && node->content != NULL &&
           content_draws(node->content, node->stage);
}

/* A stage of the same kind before this one, for other columns of the same rows. */
static void
note_apart(const struct notes *notes, const struct plan_node *node)
{
    const struct plan_node *other = node;

    if (!draws(node) || draws_name(node->stage) != NULL)
        return;
    while (other->input_count == 1 && other->inputs[0]->body == NULL) {
        other = other->inputs[0];
        if (!draws(other) || other->stage->info != node->stage->info ||
            have_one_seed(other->stage, node->stage) ||
            !are_apart(spec_get(other->stage, "columns"), spec_get(node->stage, "columns")))
            continue;
        note(notes, tnd_sprintf("%s in line %u and in line %u draw apart for the columns of one "
                                "row: an image and its mask need draws: NAME in both stages, or "
                                "one stage with both columns",
                                node->name, other->stage->line, node->stage->line));
        return;
    }
}

/* The first stage that draws in this body or deeper, or NULL. */
static const struct spec_stage *
drawing(const struct plan_graph *body)
{
    const struct spec_stage *found = NULL;

    for (uint32_t i = 0; i < body->node_count && found == NULL; i++) {
        const struct plan_node *node = body->nodes[i];

        if (draws(node))
            found = node->stage;
        else if (node->body != NULL)
            found = drawing(node->body);
    }
    return found;
}

static void
note_race(const struct notes *notes, const struct plan_node *node)
{
    const struct spec_stage *stage = node->body != NULL ? node->stage : NULL;
    const struct spec_value *calls =
        stage == NULL || stage_parameter(stage->info, "num_parallel_calls") < 0
            ? NULL
            : spec_get(stage, "num_parallel_calls");
    const struct spec_stage *draws_there;

    if (calls == NULL || calls->kind != SPEC_INTEGER || calls->integer == 1)
        return;
    draws_there = drawing(node->body);
    if (draws_there != NULL)
        note(notes, tnd_sprintf("%s (line %u) draws inside %s (line %u) with num_parallel_calls, "
                                "where TensorFlow's threads draw in an order that differs from run "
                                "to run; here rows draw in the order in which they come",
                                draws_there->info->name, draws_there->line, stage->info->name,
                                stage->line));
}

static void
note_graph(const struct notes *notes, const struct plan_graph *graph)
{
    for (uint32_t i = 0; i < graph->node_count; i++) {
        const struct plan_node *node = graph->nodes[i];

        /* A body's datasets begin again with each outer element, their shuffles, too. */
        if (graph->outside == NULL)
            note_cut(notes, node);
        note_apart(notes, node);
        note_race(notes, node);
        if (node->body != NULL)
            note_graph(notes, node->body);
    }
}

/* A scalar column is not a batch. */
static void
note_rows(const struct notes *notes, const struct plan *plan)
{
    const struct plan_node *root = plan->user_root;
    bool is_row = false;

    for (uint32_t i = 0; i < root->schema.count; i++)
        is_row |= root->schema.columns[i].rank == 0;
    if (is_row && !rebatch_has_batches(root) &&
        (root->source == NULL || !root->source->of_replicas))
        note(notes, tnd_sprintf("no stage of stream '%s' makes batches, so each step is one row: "
                                "add `batch: N`",
                                plan->stream->name));
}

static void
note_uneven(const struct notes *notes, const struct plan *plan)
{
    int64_t batch = plan->global_batch;
    int64_t slices = (int64_t)plan->options.worker_count * plan->replicas;
    int64_t each = batch / slices + (batch % slices != 0), last;

    if (!plan->rebatched || plan->rule != REBATCH_SPLIT || batch < 0 || batch % slices == 0)
        return;
    last = batch - (slices - 1) * each;
    note(notes, tnd_sprintf("of a batch of %lld rows the first of %lld replicas gets %lld in each "
                            "step, and the last %lld: make batches a multiple of the replicas",
                            (long long)batch, (long long)slices, (long long)each,
                            (long long)(last > 0 ? last : 0)));
}

void
plan_notes(const struct plan *plan, plan_say *say, void *context)
{
    const struct notes notes = { say, context };

    note_rows(&notes, plan);
    note_uneven(&notes, plan);
    note_graph(&notes, plan->graph);
}
