/* order_skip.c - all but the first elements. */
#include "order/cardinality.h"
#include "order/order.h"

struct skip {
    struct order_iterator *input;
    uint64_t count;
    uint64_t left; /* still to pass over before the first element */
};

static struct skip *
state_of(struct order_iterator *iterator)
{
    return (struct skip *)iterator->state;
}

/* As in tf.data, skipping everything (a negative count) makes no iterator of the input. */
static tundish_status
skip_open(struct order_iterator *iterator)
{
    struct skip *skip = state_of(iterator);
    tundish_status status;
    int64_t count;

    status = order_int(iterator, "count", &count);
    if (status != TUNDISH_OK || count < 0)
        return status;
    skip->count = skip->left = (uint64_t)count;
    return order_open(iterator->node->inputs[0], iterator->instance, &skip->input);
}

/* Skip on the first pull, not on open: tf.data opens without reading. A failure within the skipped
 * elements is reported, and the next call goes on after it. */
static enum order_result
pass_over_first(struct skip *skip)
{
    enum order_result result = ORDER_OK;
    uint64_t passed;

    if (skip->input == NULL)
        return ORDER_END;
    if (skip->left > 0) {
        result = order_pass_over(skip->input, skip->left, &passed);
        skip->left -= passed;
    }
    return result;
}

static enum order_result
skip_next(struct order_iterator *iterator, uint64_t *words, size_t max, size_t *ret_count)
{
    struct skip *skip = state_of(iterator);
    enum order_result result = pass_over_first(skip);

    return result == ORDER_OK ? order_next(skip->input, words, max, ret_count) : result;
}

static enum order_result
skip_pass_over(struct order_iterator *iterator, uint64_t count, uint64_t *ret_passed)
{
    struct skip *skip = state_of(iterator);
    enum order_result result = pass_over_first(skip);

    *ret_passed = 0;
    return result == ORDER_OK ? order_pass_over(skip->input, count, ret_passed) : result;
}

static tundish_status
skip_count(struct order_iterator *iterator, uint64_t *ret_count)
{
    struct skip *skip = state_of(iterator);
    tundish_status status;
    uint64_t count;

    if (skip->input == NULL) {
        *ret_count = 0;
        return TUNDISH_OK;
    }
    status = skip->input->ops->count(skip->input, &count);
    if (status == TUNDISH_OK)
        *ret_count = count > skip->count ? count - skip->count : 0;
    return status;
}

static tundish_status
skip_at(struct order_iterator *iterator, const uint64_t *indices, size_t index_count,
        uint64_t *words)
{
    struct skip *skip = state_of(iterator);

    return order_at_stride(skip->input, indices, index_count, 1, skip->count, words);
}

static void
skip_close(struct order_iterator *iterator)
{
    order_close(state_of(iterator)->input);
}

static int64_t
skip_cardinality(const struct plan_node *node, const struct order_counting *counting)
{
    int64_t count = order_count(node->inputs[0], counting);
    int64_t skip = order_count_parameter(node, counting, "count");

    if (count == CARDINALITY_UNKNOWN)
        return count;
    if (count == CARDINALITY_INFINITE)
        return skip < 0 ? 0 : count;
    return skip < 0 || skip > count ? 0 : count - skip;
}

const struct order_ops order_skip = {
    .name = "skip",
    .by_position = true,
    .form = ORDER_PASSES,
    .selection = ORDER_CHOOSES,
    .alike = ORDER_ALIKE_COUNT,
    .search = ORDER_SEARCH_INPUT,
    .batch_size = ORDER_SIZE_INPUT,
    .state_bytes = sizeof(struct skip),
    .open = skip_open,
    .next = skip_next,
    .close = skip_close,
    .count = skip_count,
    .at = skip_at,
    .pass_over = skip_pass_over,
    .cardinality = skip_cardinality,
};
