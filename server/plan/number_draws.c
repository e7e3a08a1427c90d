/* number_draws.c - by which numbers stages draw: which ordinal numbers for each, and in which
 * counter it counts.
 *
 * As in Keras, a layer has one counter, wherever it is called: in a function it counts on over the
 * datasets of all outer elements. The counters are the top's, so that a place can store them.
 *
 * Stages that share their draws by a name are as one stage that all rows go through. In a chain the
 * first numbers a row, the others draw by that number. Parts of a concatenate count in one counter.
 * Inputs of a zip are pieces of one row, so each has a counter, and they come to the same numbers.
 * A stage that redraws numbers always, and in one counter with all that do, as calls of one layer.
 */
#include <stdlib.h>
#include <string.h>

#include "content/content.h"
#include "core/memory.h"
#include "order/arguments.h"
#include "order/planning.h"
#include "plan/build.h"

/* An ordinal, and what tells its counter from others: the name, and the inputs of zips that it is
 * in. */
struct numbered {
    struct ordinal_arguments *arguments;
    const char *name;
    uint64_t row_part;
};

struct numbering {
    struct plan_builder *builder;
    struct numbered *list;
    uint32_t count;
};

static bool
redraws(const struct spec_stage *stage)
{
    const struct spec_value *value = spec_get(stage, "redraw");

    return value != NULL && value->kind == SPEC_BOOL && value->boolean;
}

const char *
draws_name(const struct spec_stage *stage)
{
    const struct spec_value *name =
        stage_parameter(stage->info, "draws") < 0 ? NULL : spec_get(stage, "draws");

    return name != NULL && name->kind == SPEC_TEXT ? name->text : NULL;
}

static bool
same_name(const char *a, const char *b)
{
    return a != NULL && b != NULL && strcmp(a, b) == 0;
}

/* Does an element keep its words here, beside what is added after them? */
static bool
keeps_words(const struct plan_node *node)
{
    return node->input_count == 1 && node->body == NULL && node->source == NULL &&
           (node->order == NULL || node->order->form == ORDER_PASSES ||
            node->order->form == ORDER_NUMBERS);
}

const struct plan_node *
draws_ordinal(const struct spec_stage *stage, const struct plan_node *node)
{
    const char *name = redraws(stage) ? NULL : draws_name(stage);

    for (; name != NULL; node = node->inputs[0]) {
        const struct ordinal_arguments *ordinal =
            node->order == &order_ordinal ? node->arguments : NULL;

        if (ordinal != NULL && same_name(draws_name(ordinal->stage), name) &&
            !redraws(ordinal->stage))
            return node;
        if (!keeps_words(node))
            break;
    }
    return NULL;
}

static uint32_t
counter_of(struct numbering *numbering, const struct numbered *one)
{
    struct plan_graph *top = numbering->builder->plan->graph;

    for (uint32_t i = 0; i < numbering->count; i++)
        if (same_name(numbering->list[i].name, one->name) &&
            numbering->list[i].row_part == one->row_part)
            return numbering->list[i].arguments->counter;
    return top->draw_count++;
}

static void
number_ordinal(struct numbering *numbering, struct plan_node *node, uint64_t row_part)
{
    struct ordinal_arguments *arguments = node->arguments;
    struct numbered one = {
        .arguments = arguments,
        .name = draws_name(arguments->stage),
        .row_part = redraws(arguments->stage) ? 0 : row_part,
    };

    arguments->counter = counter_of(numbering, &one);
    numbering->list = tnd_grow(numbering->list, numbering->count, sizeof *numbering->list);
    numbering->list[numbering->count++] = one;
}

/* Number the ordinals at and before `node`: those of its graph, or those in the bodies there. */
static void
number_before(struct numbering *numbering, struct plan_node *node, uint64_t row_part,
              bool in_bodies)
{
    if (node->order == &order_ordinal && !in_bodies)
        number_ordinal(numbering, node, row_part);
    for (uint32_t i = 0; i < node->input_count; i++)
        number_before(numbering, node->inputs[i],
                      node->order != NULL && node->order->form == ORDER_ZIPS
                          ? row_part * (PLAN_WIDTH_MAX + 1) + i + 1
                          : row_part,
                      in_bodies);
    if (node->body == NULL || !in_bodies)
        return;
    number_before(numbering, node->body->root, row_part, false);
    number_before(numbering, node->body->root, row_part, true);
}

/* How many ordinals at and before `node` count there. */
static uint32_t
count_ordinals(const struct plan_node *node, uint32_t counter)
{
    const struct ordinal_arguments *arguments = node->arguments;
    uint32_t count = node->order == &order_ordinal && arguments->counter == counter;

    for (uint32_t i = 0; i < node->input_count; i++)
        count += count_ordinals(node->inputs[i], counter);
    return node->body != NULL ? count + count_ordinals(node->body->root, counter) : count;
}

/* A cache sets back what is counted before it once its pass is kept, since a job that resumes makes
 * that pass again: nobody else may count there. */
static tundish_status
check_cache(struct numbering *numbering, const struct plan_node *node)
{
    const struct plan_graph *top = numbering->builder->plan->graph;
    tundish_status status = TUNDISH_OK;

    if (node->order == NULL || !node->order->remembers || node->input_count == 0)
        return status;
    for (uint32_t i = 0; i < numbering->count && status == TUNDISH_OK; i++) {
        const struct numbered *one = &numbering->list[i];
        uint32_t before = count_ordinals(node, one->arguments->counter);

        if (before > 0 && before < count_ordinals(top->root, one->arguments->counter))
            status =
                order_complain(numbering->builder->errors, node,
                               "%s: stages before it and after it, or beside it, share the "
                               "draws '%s', but a pass that is kept draws no more: use another "
                               "name",
                               node->name, one->name);
    }
    return status;
}

static void
mark_order(struct plan_node *ordinal)
{
    struct ordinal_arguments *arguments = ordinal->arguments;

    arguments->one_by_one = count_ordinals(ordinal->inputs[0], arguments->counter) > 0;
}

/* True if a stage at or before `node` counts with stages elsewhere. */
static bool
mark_replays(const struct plan_graph *top, struct plan_node *node)
{
    const struct ordinal_arguments *arguments = node->arguments;

    if (node->order == &order_ordinal)
        mark_order(node);
    node->replays |=
        node->order == &order_ordinal && count_ordinals(top->root, arguments->counter) > 1;
    for (uint32_t i = 0; i < node->input_count; i++)
        node->replays |= mark_replays(top, node->inputs[i]);
    if (node->body != NULL)
        node->replays |= mark_replays(top, node->body->root);
    return node->replays;
}

/* Find the word that each stage draws by. */
static void
find_words(struct plan_graph *graph)
{
    for (uint32_t i = 0; i < graph->node_count; i++) {
        struct plan_node *node = graph->nodes[i];
        const struct plan_node *ordinal;

        if (node->body != NULL)
            find_words(node->body);
        if (node->order != NULL || node->stage == NULL || node->input_count == 0 ||
            !content_draws(node->content, node->stage))
            continue;
        ordinal = draws_ordinal(node->stage, node->inputs[0]);
        node->draw_word = (ordinal != NULL ? ordinal : node->inputs[0])->width - 1;
    }
}

tundish_status
build_draws(struct plan_builder *builder)
{
    struct plan_graph *top = builder->plan->graph;
    struct numbering numbering = { .builder = builder };
    tundish_status status = TUNDISH_OK;

    number_before(&numbering, top->root, 0, false);
    top->own_draw_count = top->draw_count;
    number_before(&numbering, top->root, 0, true);
    find_words(top);
    for (uint32_t i = 0; i < top->node_count && status == TUNDISH_OK && numbering.count > 0; i++)
        status = check_cache(&numbering, top->nodes[i]);
    mark_replays(top, top->root);
    free(numbering.list);
    return status;
}
