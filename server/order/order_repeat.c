/* order_repeat.c - the input, several times.
 *
 * The number of iterators that this stage makes of its input is observable: an earlier shuffle
 * draws new seeds for each. tf.data's RepeatDataset makes one more than it needs, at the end of the
 * last epoch too, unless the count is 1. A shuffle directly before it repeats by itself, as in
 * tf.data's fused ShuffleAndRepeat (the rewrite does not apply inside functions).
 */
#include "order/cardinality.h"
#include "order/planning.h"
#include "order/rewind.h"

struct repeat {
    struct order_iterator *input;
    int64_t count; /* -1: endless */
    int64_t epoch;
    bool fused;
    bool any_in_epoch; /* this epoch has had an element */
};

static struct repeat *
state_of(struct order_iterator *iterator)
{
    return (struct repeat *)iterator->state;
}

static tundish_status
open_input(struct order_iterator *iterator)
{
    struct repeat *repeat = state_of(iterator);

    repeat->any_in_epoch = false;
    return order_open(iterator->node->inputs[0], iterator->instance, &repeat->input);
}

static tundish_status
repeat_open(struct order_iterator *iterator)
{
    struct repeat *repeat = state_of(iterator);
    const struct plan_node *input = iterator->node->inputs[0];
    tundish_status status;

    status = order_int(iterator, "count", &repeat->count);
    if (status != TUNDISH_OK)
        return status;
    if (repeat->count < 0)
        repeat->count = -1;
    if (repeat->count == 0)
        return TUNDISH_OK;
    repeat->fused = input->order != NULL && input->order->repeat != NULL &&
                    iterator->instance->graph->outside == NULL;
    if (repeat->count < 0 && !repeat->fused)
        return TUNDISH_OK; /* ForeverRepeat makes its first iterator on the first element */
    status = open_input(iterator);
    if (status == TUNDISH_OK && repeat->fused)
        repeat->input->ops->repeat(repeat->input, repeat->count);
    return status;
}

/* The input has ended: open the next epoch. A failure to open it is final. */
static enum order_result
next_epoch(struct order_iterator *iterator)
{
    struct repeat *repeat = state_of(iterator);
    bool was_empty = !repeat->any_in_epoch;

    order_drop(&repeat->input);
    repeat->epoch++;
    if (repeat->fused || repeat->count == 1 || (repeat->count < 0 && was_empty)) {
        repeat->count = 0;
        return ORDER_END;
    }
    if (open_input(iterator) != TUNDISH_OK) {
        repeat->count = 0;
        return ORDER_FAILED;
    }
    /* Finite repeat opens the input once more than it reads it: the extra iterator counts for
     * reshuffling. */
    if (repeat->epoch == repeat->count) {
        order_drop(&repeat->input);
        repeat->count = 0;
        return ORDER_END;
    }
    return ORDER_OK;
}

/* An epoch of `length` elements, which began with the counts `before`, has just ended. Leap over
 * all following epochs that can be skipped. This is exact because all passes have the same number
 * of elements and add the same to the counts. */
static uint64_t
leap(struct order_iterator *iterator, const struct order_counts *before, uint64_t length,
     uint64_t wanted)
{
    struct repeat *repeat = state_of(iterator);
    uint64_t epochs = length > 0 && wanted > 0 ? (wanted - 1) / length : 0;

    if (repeat->count > 0 && epochs > (uint64_t)(repeat->count - repeat->epoch - 1))
        epochs = (uint64_t)(repeat->count - repeat->epoch - 1);
    if (epochs == 0 || repeat->fused || !order_passes_are_alike(iterator->node->inputs[0]))
        return 0;
    order_counts_add_passes(iterator->instance, before, epochs);
    repeat->epoch += (int64_t)epochs;
    return epochs * length;
}

/* Pass over one epoch at a time, so that an input that can leap does. One complete epoch tells the
 * length of all the others. The first one does not count: part of it may have been read before. */
static enum order_result
pass_over_epochs(struct order_iterator *iterator, uint64_t count, uint64_t *ret_passed)
{
    struct repeat *repeat = state_of(iterator);
    struct order_counts before = { 0 };
    enum order_result result = ORDER_OK;

    while (result == ORDER_OK && *ret_passed < count) {
        uint64_t passed;

        result = order_pass_over(repeat->input, count - *ret_passed, &passed);
        *ret_passed += passed;
        repeat->any_in_epoch |= passed > 0;
        if (result != ORDER_END)
            break;
        if (before.node_count > 0)
            *ret_passed += leap(iterator, &before, passed, count - *ret_passed);
        order_counts_close(&before);
        order_counts_save(iterator->instance, &before);
        result = next_epoch(iterator);
    }
    order_counts_close(&before);
    return result;
}

static enum order_result
repeat_pass_over(struct order_iterator *iterator, uint64_t count, uint64_t *ret_passed)
{
    struct repeat *repeat = state_of(iterator);

    *ret_passed = 0;
    if (repeat->count == 0)
        return ORDER_END;
    if (repeat->input == NULL && open_input(iterator) != TUNDISH_OK) {
        repeat->count = 0;
        return ORDER_FAILED;
    }
    return pass_over_epochs(iterator, count, ret_passed);
}

static enum order_result
repeat_next(struct order_iterator *iterator, uint64_t *words, size_t max, size_t *ret_count)
{
    struct repeat *repeat = state_of(iterator);
    enum order_result result;

    if (repeat->count == 0)
        return ORDER_END;
    if (repeat->input == NULL && open_input(iterator) != TUNDISH_OK) {
        repeat->count = 0;
        return ORDER_FAILED;
    }
    do {
        result = order_next(repeat->input, words, max, ret_count);
        if (result == ORDER_OK)
            repeat->any_in_epoch = true;
        if (result != ORDER_END)
            return result;
        result = next_epoch(iterator);
    } while (result == ORDER_OK);
    return result;
}

static void
repeat_close(struct order_iterator *iterator)
{
    order_close(state_of(iterator)->input);
}

static bool
repeat_is_endless(const struct plan_node *node)
{
    return order_literal(node, "count", 1) < 0 || order_is_endless(node->inputs[0]);
}

static int64_t
repeat_cardinality(const struct plan_node *node, const struct order_counting *counting)
{
    int64_t count = order_count(node->inputs[0], counting);

    return order_count_times(count, order_count_parameter(node, counting, "count"));
}

const struct order_ops order_repeat = {
    .name = "repeat",
    .form = ORDER_PASSES,
    .selection = ORDER_ONLY_ORDERS,
    .alike = ORDER_ALIKE_ELEMENTS,
    .search = ORDER_SEARCH_INPUT,
    .batch_size = ORDER_SIZE_INPUT,
    .state_bytes = sizeof(struct repeat),
    .open = repeat_open,
    .next = repeat_next,
    .close = repeat_close,
    .pass_over = repeat_pass_over,
    .is_endless = repeat_is_endless,
    .cardinality = repeat_cardinality,
};
