/* announce.c - see announce.h. */
#include "order/announce.h"

#include "order/rewind.h"

/* Datasets after those that are read by turns; and of a long cycle, how many of those. */
enum { AHEAD = 8, CYCLE_MOST = 64 };

/* Its elements cost little, and are the same whenever they are pulled. */
static bool
is_list(const struct plan_node *node)
{
    if (node->source != NULL)
        return node->order->is_list;
    for (uint32_t i = 0; i < node->input_count; i++)
        if (!is_list(node->inputs[i]))
            return false;
    return node->content == NULL && node->body == NULL && !node->order->remembers;
}

static bool
has_far_sources(const struct plan_graph *body)
{
    for (uint32_t i = 0; i < body->node_count; i++)
        if (body->nodes[i]->source != NULL && body->nodes[i]->order->expect != NULL)
            return true;
    return false;
}

void
announce_open(struct announce *announce, const struct order_iterator *function,
              uint64_t cycle_length)
{
    const struct plan_node *input = function->node->inputs[0];
    struct order_counts counts;

    if (!is_list(input) || !has_far_sources(function->node->body))
        return;
    announce->services = *function->instance->services;
    announce->services.counters = NULL;
    announce->instance = order_instance_open(function->instance->graph, function->instance->scope,
                                             &announce->services);
    order_counts_save(function->instance, &counts);
    order_counts_restore(announce->instance, &counts);
    order_counts_close(&counts);
    announce->cycle_length = cycle_length < CYCLE_MOST ? cycle_length : CYCLE_MOST;
    if (order_open(input, announce->instance, &announce->input) != TUNDISH_OK)
        announce_close(announce);
}

/* Tell the sources of the dataset that an element stands for, whose words are taken over. False:
 * they need not be told. */
static bool
tell(const struct order_iterator *function, const uint64_t *words)
{
    const struct plan_node *input = function->node->inputs[0];
    struct order_scope *scope = NULL;
    struct order_instance *body;
    bool helps = false;

    if (order_scope_open(function->instance, input, words, &scope) != TUNDISH_OK)
        return false;
    body = order_instance_open_body(function, scope);
    for (uint32_t i = 0; i < body->graph->node_count; i++) {
        const struct plan_node *node = body->graph->nodes[i];
        struct order_iterator *source = NULL;

        if (node->source == NULL || node->order->expect == NULL ||
            order_open(node, body, &source) != TUNDISH_OK)
            continue;
        helps |= source->ops->expect(source);
        order_close(source);
    }
    order_instance_close(body);
    order_scope_close(scope, input);
    return helps;
}

/* False: the copy is at its end. */
static bool
tell_next(struct announce *announce, const struct order_iterator *function)
{
    const struct plan_node *input = function->node->inputs[0];
    uint64_t words[PLAN_WIDTH_MAX];
    size_t count;

    if (order_next(announce->input, words, 1, &count) != ORDER_OK)
        return false;
    if (announce->told++ < announce->taken)
        run_words_release(words, 1, input->width, input->run_words);
    else
        (void)tell(function, words);
    return true;
}

/* At first the datasets of the cycle alone: nothing takes from the link what the first batch needs.
 */
static uint64_t
count_wanted(const struct announce *announce)
{
    uint64_t before = announce->taken - 1;

    return before + announce->cycle_length + (before < AHEAD ? before : AHEAD);
}

void
announce_step(struct announce *announce, const struct order_iterator *function,
              const uint64_t *words)
{
    const struct plan_node *input = function->node->inputs[0];
    bool helps = announce->input != NULL;

    if (!helps)
        return;
    /* The first says whether any is far away: a list of files that are here is not gone through
     * twice. */
    if (announce->taken++ == 0) {
        run_words_retain(words, 1, input->width, input->run_words);
        helps = tell(function, words);
    }
    while (helps && announce->told < count_wanted(announce))
        helps = tell_next(announce, function);
    if (!helps)
        announce_close(announce);
}

void
announce_close(struct announce *announce)
{
    order_close(announce->input);
    order_instance_close(announce->instance);
    announce->input = NULL;
    announce->instance = NULL;
}
