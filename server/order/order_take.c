/* order_take.c - the first elements. It never pulls more than those. */
#include "order/cardinality.h"
#include "order/order.h"
#include "order/planning.h"

struct take {
    struct order_iterator *input;
    uint64_t left;
};

static struct take *
state_of(struct order_iterator *iterator)
{
    return (struct take *)iterator->state;
}

/* As in tf.data, taking none makes no iterator of the input. */
static tundish_status
take_open(struct order_iterator *iterator)
{
    struct take *take = state_of(iterator);
    tundish_status status;
    int64_t count;

    status = order_int(iterator, "count", &count);
    if (status != TUNDISH_OK || count == 0)
        return status;
    take->left = count < 0 ? UINT64_MAX : (uint64_t)count;
    return order_open(iterator->node->inputs[0], iterator->instance, &take->input);
}

static enum order_result
take_next(struct order_iterator *iterator, uint64_t *words, size_t max, size_t *ret_count)
{
    struct take *take = state_of(iterator);
    enum order_result result;

    if (take->left == 0)
        return ORDER_END;
    if (max > take->left)
        max = (size_t)take->left;
    result = order_next(take->input, words, max, ret_count);
    if (take->left != UINT64_MAX)
        take->left -= *ret_count;
    return result;
}

static enum order_result
take_pass_over(struct order_iterator *iterator, uint64_t count, uint64_t *ret_passed)
{
    struct take *take = state_of(iterator);
    uint64_t wanted = count < take->left ? count : take->left;
    enum order_result result = ORDER_OK;

    *ret_passed = 0;
    if (wanted > 0)
        result = order_pass_over(take->input, wanted, ret_passed);
    if (take->left != UINT64_MAX)
        take->left -= *ret_passed;
    return result == ORDER_OK && wanted < count ? ORDER_END : result;
}

/* Random access counts the whole pass, so it asks for the parameter: `left` shrinks with each pull.
 */
static tundish_status
take_count(struct order_iterator *iterator, uint64_t *ret_count)
{
    struct take *take = state_of(iterator);
    tundish_status status;
    int64_t limit;
    uint64_t count;

    if (take->input == NULL) {
        *ret_count = 0;
        return TUNDISH_OK;
    }
    status = order_int(iterator, "count", &limit);
    if (status == TUNDISH_OK)
        status = take->input->ops->count(take->input, &count);
    if (status == TUNDISH_OK)
        *ret_count = limit >= 0 && (uint64_t)limit < count ? (uint64_t)limit : count;
    return status;
}

static tundish_status
take_at(struct order_iterator *iterator, const uint64_t *indices, size_t index_count,
        uint64_t *words)
{
    struct take *take = state_of(iterator);

    return take->input->ops->at(take->input, indices, index_count, words);
}

static void
take_close(struct order_iterator *iterator)
{
    order_close(state_of(iterator)->input);
}

static bool
take_is_endless(const struct plan_node *node)
{
    return order_literal(node, "count", -1) < 0 && order_is_endless(node->inputs[0]);
}

static int64_t
take_cardinality(const struct plan_node *node, const struct order_counting *counting)
{
    int64_t count = order_count(node->inputs[0], counting);
    int64_t limit = order_count_parameter(node, counting, "count");

    if (limit < 0 || (count == CARDINALITY_UNKNOWN && !counting->at_most))
        return count;
    if (count == CARDINALITY_UNKNOWN)
        return limit;
    return count == CARDINALITY_INFINITE || limit < count ? limit : count;
}

const struct order_ops order_take = {
    .name = "take",
    .by_position = true,
    .form = ORDER_PASSES,
    .selection = ORDER_CHOOSES,
    .alike = ORDER_ALIKE_UNCUT,
    .search = ORDER_SEARCH_INPUT,
    .batch_size = ORDER_SIZE_INPUT,
    .state_bytes = sizeof(struct take),
    .open = take_open,
    .next = take_next,
    .close = take_close,
    .count = take_count,
    .at = take_at,
    .pass_over = take_pass_over,
    .is_endless = take_is_endless,
    .cardinality = take_cardinality,
};
