/* order_enumerate.c - add a number to each element, as its last word.
 *
 * `enumerate` starts from its parameter in every iterator. The plan puts `ordinal` before random
 * stages; it counts on over all iterators, and in a function over the datasets of all outer
 * elements, as the counter of a Keras layer does. So each epoch draws different numbers.
 */
#include "core/must.h"
#include "order/arguments.h"
#include "order/cardinality.h"
#include "order/order.h"
#include "order/planning.h"

struct enumerate {
    struct order_iterator *input;
    uint64_t start;
    uint64_t own_next;
    uint64_t *next; /* own_next, or the counter of those that draw */
};

static struct enumerate *
state_of(struct order_iterator *iterator)
{
    return (struct enumerate *)iterator->state;
}

static tundish_status
enumerate_open(struct order_iterator *iterator)
{
    struct enumerate *enumerate = state_of(iterator);
    tundish_status status;
    int64_t start;

    status = order_int(iterator, "start", &start);
    if (status != TUNDISH_OK)
        return status;
    enumerate->start = (uint64_t)start;
    enumerate->own_next = (uint64_t)start;
    enumerate->next = &enumerate->own_next;
    return order_open(iterator->node->inputs[0], iterator->instance, &enumerate->input);
}

static tundish_status
ordinal_open(struct order_iterator *iterator)
{
    struct enumerate *enumerate = state_of(iterator);
    const struct ordinal_arguments *arguments = iterator->node->arguments;

    must(arguments->counter < iterator->instance->draw_count);
    enumerate->next = &iterator->instance->draws[arguments->counter];
    return order_open(iterator->node->inputs[0], iterator->instance, &enumerate->input);
}

static enum order_result
enumerate_next(struct order_iterator *iterator, uint64_t *words, size_t max, size_t *ret_count)
{
    struct enumerate *enumerate = state_of(iterator);
    uint32_t width = iterator->node->width;
    enum order_result result;

    result = order_next(enumerate->input, words, max, ret_count);
    order_spread(words, *ret_count, width - 1, width, 0);
    for (size_t i = 0; i < *ret_count; i++)
        words[i * width + width - 1] = (*enumerate->next)++;
    return result;
}

/* An element that is numbered again gets its second number before the next gets its first. */
static enum order_result
ordinal_next(struct order_iterator *iterator, uint64_t *words, size_t max, size_t *ret_count)
{
    const struct ordinal_arguments *arguments = iterator->node->arguments;

    return enumerate_next(iterator, words, arguments->one_by_one ? 1 : max, ret_count);
}

static enum order_result
enumerate_pass_over(struct order_iterator *iterator, uint64_t count, uint64_t *ret_passed)
{
    struct enumerate *enumerate = state_of(iterator);
    enum order_result result = order_pass_over(enumerate->input, count, ret_passed);

    *enumerate->next += *ret_passed;
    return result;
}

static tundish_status
enumerate_count(struct order_iterator *iterator, uint64_t *ret_count)
{
    struct enumerate *enumerate = state_of(iterator);

    return enumerate->input->ops->count(enumerate->input, ret_count);
}

/* Random access numbers by index from `start`, so it does not depend on earlier pulls. */
static tundish_status
enumerate_at(struct order_iterator *iterator, const uint64_t *indices, size_t index_count,
             uint64_t *words)
{
    struct enumerate *enumerate = state_of(iterator);
    uint32_t width = iterator->node->width;
    tundish_status status;

    status = enumerate->input->ops->at(enumerate->input, indices, index_count, words);
    if (status != TUNDISH_OK)
        return status;
    order_spread(words, index_count, width - 1, width, 0);
    for (size_t i = 0; i < index_count; i++)
        words[i * width + width - 1] = enumerate->start + indices[i];
    return TUNDISH_OK;
}

static void
enumerate_close(struct order_iterator *iterator)
{
    order_close(state_of(iterator)->input);
}

static tundish_status
enumerate_columns(const struct order_planning *planning, struct plan_node *node)
{
    struct schema *input = &node->inputs[0]->schema;

    if (schema_find(input, "index") >= 0)
        return order_complain(planning->errors, node,
                              "enumerate: there is a column 'index' already");
    schema_add(&node->schema, "index", TUNDISH_INT64);
    schema_pass_all(&node->schema, input);
    node->depth = node->inputs[0]->depth;
    return TUNDISH_OK;
}

const struct order_ops order_enumerate = {
    .name = "enumerate",
    .by_position = true,
    .form = ORDER_NUMBERS,
    .selection = ORDER_KEEPS,
    .alike = ORDER_ALIKE_COUNT,
    .adds_word = true,
    .state_bytes = sizeof(struct enumerate),
    .open = enumerate_open,
    .next = enumerate_next,
    .close = enumerate_close,
    .count = enumerate_count,
    .at = enumerate_at,
    .pass_over = enumerate_pass_over,
    .columns = enumerate_columns,
    .cardinality = order_count_input,
};

const struct order_ops order_ordinal = {
    .name = "ordinal",
    .form = ORDER_PASSES,
    .alike = ORDER_ALIKE_COUNT,
    .search = ORDER_SEARCH_INPUT,
    .adds_word = true,
    .state_bytes = sizeof(struct enumerate),
    .arguments_bytes = sizeof(struct ordinal_arguments),
    .open = ordinal_open,
    .next = ordinal_next,
    .close = enumerate_close,
    .pass_over = enumerate_pass_over,
    .counts_elements = true,
    .cardinality = order_count_input,
};
