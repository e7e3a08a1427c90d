/* order_prefetch.c - passes its input through: the server reads ahead by itself, and prefetch never
 * changes the order. */
#include "order/cardinality.h"
#include "order/order.h"

static struct order_iterator **
input_of(struct order_iterator *iterator)
{
    return (struct order_iterator **)iterator->state;
}

static tundish_status
prefetch_open(struct order_iterator *iterator)
{
    return order_open(iterator->node->inputs[0], iterator->instance, input_of(iterator));
}

static enum order_result
prefetch_next(struct order_iterator *iterator, uint64_t *words, size_t max, size_t *ret_count)
{
    return order_next(*input_of(iterator), words, max, ret_count);
}

static enum order_result
prefetch_pass_over(struct order_iterator *iterator, uint64_t count, uint64_t *ret_passed)
{
    return order_pass_over(*input_of(iterator), count, ret_passed);
}

static tundish_status
prefetch_count(struct order_iterator *iterator, uint64_t *ret_count)
{
    struct order_iterator *input = *input_of(iterator);

    return input->ops->count(input, ret_count);
}

static tundish_status
prefetch_at(struct order_iterator *iterator, const uint64_t *indices, size_t index_count,
            uint64_t *words)
{
    struct order_iterator *input = *input_of(iterator);

    return input->ops->at(input, indices, index_count, words);
}

static void
prefetch_close(struct order_iterator *iterator)
{
    order_close(*input_of(iterator));
}

const struct order_ops order_prefetch = {
    .name = "prefetch",
    .form = ORDER_PASSES,
    .selection = ORDER_ONLY_ORDERS,
    .alike = ORDER_ALIKE_ELEMENTS,
    .search = ORDER_SEARCH_INPUT,
    .batch_size = ORDER_SIZE_INPUT,
    .state_bytes = sizeof(struct order_iterator *),
    .open = prefetch_open,
    .next = prefetch_next,
    .close = prefetch_close,
    .count = prefetch_count,
    .at = prefetch_at,
    .pass_over = prefetch_pass_over,
    .cardinality = order_count_input,
};
