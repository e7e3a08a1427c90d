/* rewind.c - saves, restores and extrapolates the counts of dataset objects. */
#include "order/rewind.h"

#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "order/arguments.h"

/* Where nothing draws there are none. */
static void
copy_draws(uint64_t *to, const uint64_t *from, uint32_t count)
{
    if (count > 0)
        memcpy(to, from, count * sizeof *to);
}

void
order_counts_save(const struct order_instance *instance, struct order_counts *ret_counts)
{
    uint32_t count = instance->graph->node_count;

    *ret_counts = (struct order_counts){
        .node_count = count,
        .draw_count = instance->draw_count,
        .iterators = tnd_alloc(count * sizeof *ret_counts->iterators),
        .elements = tnd_alloc(count * sizeof *ret_counts->elements),
        .draws = tnd_alloc(instance->draw_count * sizeof *ret_counts->draws),
    };
    memcpy(ret_counts->iterators, instance->iterator_counts, count * sizeof(uint64_t));
    memcpy(ret_counts->elements, instance->element_counts, count * sizeof(uint64_t));
    copy_draws(ret_counts->draws, instance->draws, instance->draw_count);
}

void
order_counts_close(struct order_counts *counts)
{
    free(counts->iterators);
    free(counts->elements);
    free(counts->draws);
    *counts = (struct order_counts){ 0 };
}

void
order_counts_restore(struct order_instance *instance, const struct order_counts *counts)
{
    memcpy(instance->iterator_counts, counts->iterators, counts->node_count * sizeof(uint64_t));
    memcpy(instance->element_counts, counts->elements, counts->node_count * sizeof(uint64_t));
    copy_draws(instance->draws, counts->draws, instance->draw_count);
}

static size_t
add_count(uint64_t *one, uint64_t **ret_counts, size_t count)
{
    if (ret_counts != NULL)
        ret_counts[count] = one;
    return count + 1;
}

static size_t
list_draws(const struct order_instance *instance, const struct plan_node *node,
           uint64_t **ret_counts, size_t count)
{
    const struct ordinal_arguments *ordinal =
        node->order == &order_ordinal ? node->arguments : NULL;

    if (ordinal != NULL)
        count = add_count(&instance->draws[ordinal->counter], ret_counts, count);
    for (uint32_t i = 0; node->body != NULL && i < node->body->node_count; i++)
        count = list_draws(instance, node->body->nodes[i], ret_counts, count);
    return count;
}

static size_t
list_before(const struct order_instance *instance, const struct plan_node *node,
            uint64_t **ret_counts, size_t count)
{
    count = add_count(&instance->iterator_counts[node->number], ret_counts, count);
    count = add_count(&instance->element_counts[node->number], ret_counts, count);
    if (instance->graph->outside == NULL)
        count = list_draws(instance, node, ret_counts, count);
    for (uint32_t i = 0; i < node->input_count; i++)
        count = list_before(instance, node->inputs[i], ret_counts, count);
    return count;
}

size_t
order_counts_before(const struct order_instance *instance, const struct plan_node *node,
                    uint64_t **ret_counts)
{
    return list_before(instance, node, ret_counts, 0);
}

static void
add_counts(uint64_t *counts, const uint64_t *before, uint32_t count, uint64_t times)
{
    for (uint32_t i = 0; i < count; i++)
        counts[i] += times * (counts[i] - before[i]);
}

/* Each pass adds the same to every count, so `times` more passes add `times` the difference. */
void
order_counts_add_passes(struct order_instance *instance, const struct order_counts *before,
                        uint64_t times)
{
    add_counts(instance->iterator_counts, before->iterators, before->node_count, times);
    add_counts(instance->element_counts, before->elements, before->node_count, times);
    add_counts(instance->draws, before->draws, before->draw_count, times);
}

static bool
remembers_elements(const struct plan_node *node)
{
    return node->order != NULL && node->order->remembers;
}

bool
order_can_rewind(const struct plan_node *node)
{
    return !order_any(node, remembers_elements) && !order_any(node, order_reads_content);
}

bool
order_can_reopen(const struct plan_graph *body)
{
    return order_can_rewind(body->root) && !order_numbers_draws(body);
}

/* How similar the passes through a node are, from least to most. */
enum alike {
    NOT_ALIKE,
    SAME_COUNT,    /* as many elements */
    SAME_ELEMENTS, /* the same ones, in any order */
    SAME_ORDER
};

static enum alike
least_alike(const struct plan_node *node, enum alike (*of)(const struct plan_node *))
{
    enum alike least = SAME_ORDER;

    for (uint32_t i = 0; i < node->input_count; i++) {
        enum alike one = of(node->inputs[i]);

        least = one < least ? one : least;
    }
    return least;
}

static enum alike
at_most(enum alike alike, enum alike limit)
{
    return alike < limit ? alike : limit;
}

static bool
has_body(const struct plan_node *node)
{
    return node->body != NULL;
}

/* A stage of the body may decide by what was drawn there, which is other in each pass. */
static bool
looks_at_draws(const struct plan_graph *body)
{
    return order_numbers_draws(body) && order_any(body->root, order_reads_content);
}

/* A pass of a random source has the same elements in another order. A stage that counts nothing and
 * draws nothing repeats its pass exactly. Otherwise the similarity is that of the least similar
 * input, limited by what the stage does. */
static enum alike
alike(const struct plan_node *node)
{
    enum alike inputs;

    if (node->source != NULL)
        return node->random ? SAME_ELEMENTS : SAME_ORDER;
    if (!order_shows_lookahead(node))
        return SAME_ORDER;
    inputs = least_alike(node, alike);
    if (node->order == NULL)
        return inputs;
    switch (node->order->alike) {
    case ORDER_ALIKE_ELEMENTS:
        return at_most(inputs, SAME_ELEMENTS);
    case ORDER_ALIKE_FUNCTION:
        return inputs >= SAME_ELEMENTS && !looks_at_draws(node->body) ? SAME_ELEMENTS : NOT_ALIKE;
    case ORDER_ALIKE_UNCUT:
        return order_any(node, has_body) ? NOT_ALIKE : at_most(inputs, SAME_COUNT);
    case ORDER_ALIKE_COUNT:
        return at_most(inputs, SAME_COUNT);
    case ORDER_NOT_ALIKE:
        break;
    }
    return NOT_ALIKE;
}

bool
order_passes_are_alike(const struct plan_node *node)
{
    return !order_any(node, remembers_elements) && alike(node) != NOT_ALIKE;
}
