/* order_concatenate.c - one input after the other. As in tf.data, the iterator of an input is made
 * when its turn comes: reshuffling before it counts iterators. */
#include "order/cardinality.h"
#include "order/columns.h"

struct concatenate {
    struct order_iterator *input; /* NULL: could not be opened; the next call goes on after it */
    uint32_t at;
};

static struct concatenate *
state_of(struct order_iterator *iterator)
{
    return (struct concatenate *)iterator->state;
}

static tundish_status
concatenate_open(struct order_iterator *iterator)
{
    return order_open(iterator->node->inputs[0], iterator->instance, &state_of(iterator)->input);
}

/* The current input has ended: open the next one. */
static enum order_result
next_input(struct order_iterator *iterator)
{
    struct concatenate *concatenate = state_of(iterator);
    const struct plan_node *node = iterator->node;

    order_drop(&concatenate->input);
    if (++concatenate->at >= node->input_count)
        return ORDER_END;
    return order_open(node->inputs[concatenate->at], iterator->instance, &concatenate->input) ==
                   TUNDISH_OK
               ? ORDER_OK
               : ORDER_FAILED;
}

static enum order_result
concatenate_pass_over(struct order_iterator *iterator, uint64_t count, uint64_t *ret_passed)
{
    struct concatenate *concatenate = state_of(iterator);
    enum order_result result = ORDER_OK;

    *ret_passed = 0;
    while (result == ORDER_OK && *ret_passed < count) {
        uint64_t passed = 0;

        result = ORDER_END;
        if (concatenate->input != NULL)
            result = order_pass_over(concatenate->input, count - *ret_passed, &passed);
        *ret_passed += passed;
        if (result == ORDER_END)
            result = next_input(iterator);
    }
    return result;
}

static enum order_result
concatenate_next(struct order_iterator *iterator, uint64_t *words, size_t max, size_t *ret_count)
{
    struct concatenate *concatenate = state_of(iterator);
    const struct plan_node *node = iterator->node;

    while (concatenate->at < node->input_count) {
        const struct plan_node *input = node->inputs[concatenate->at];
        enum order_result result = ORDER_END;

        if (concatenate->input != NULL)
            result = order_next(concatenate->input, words, max, ret_count);
        if (result == ORDER_OK) {
            order_spread(words, *ret_count, input->width, node->width, input->first_word);
            for (size_t i = 0; i < *ret_count; i++)
                /* Word 0 of a branch says which input the element is from. */
                words[i * node->width] = concatenate->at;
        }
        if (result != ORDER_END)
            return result;
        result = next_input(iterator);
        if (result != ORDER_OK)
            return result;
    }
    return ORDER_END;
}

static void
concatenate_close(struct order_iterator *iterator)
{
    order_close(state_of(iterator)->input);
}

static tundish_status
concatenate_columns(const struct order_planning *planning, struct plan_node *node)
{
    return order_merge_columns(planning, node, node->input_count);
}

static int64_t
concatenate_cardinality(const struct plan_node *node, const struct order_counting *counting)
{
    int64_t all = 0;

    for (uint32_t i = 0; i < node->input_count; i++) {
        int64_t count = order_count(node->inputs[i], counting);

        if (count == CARDINALITY_INFINITE)
            return count;
        if (count < 0 || all < 0 || __builtin_add_overflow(all, count, &all))
            all = CARDINALITY_UNKNOWN;
    }
    return all;
}

const struct order_ops order_concatenate = {
    .name = "concatenate",
    .form = ORDER_BRANCHES,
    .alike = ORDER_ALIKE_COUNT,
    .search = ORDER_SEARCH_INPUTS,
    .batch_size = ORDER_SIZE_INPUTS,
    .state_bytes = sizeof(struct concatenate),
    .open = concatenate_open,
    .next = concatenate_next,
    .close = concatenate_close,
    .pass_over = concatenate_pass_over,
    .gathered = order_gathered_united,
    .columns = concatenate_columns,
    .cardinality = concatenate_cardinality,
};
